package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// waitDone waits for what an order is for: a transfer until the new leader is shown everywhere. The others are done once
// they are applied.
const waitDone = "done"

// order takes an operator's order of one kind. The answer names the verdict, so that it is always waited for; an order
// that would be refused is not stored, and one that is refused all the same, since something came between, is answered
// alike.
//
// A request may name the event's id, as one of POST /v1/events may, and is then harmless to repeat: it is the id that the
// journal and the fold tell repeated events by, which a header would only have to be turned into.
func (s *Server) order(kind string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		how, err := orderingOf(r.URL.RawQuery)
		if err != nil {
			return err
		}
		in, err := readOrder(w, r, kind, s.now())
		if err != nil {
			return err
		}
		extend(w, how.timeout+appendTimeout+writeTimeout)
		tried, err := s.tryOut(r.Context(), &in.events[0])
		if err != nil {
			return err
		}
		if how.dry {
			answer(w, http.StatusOK, tried)
			return nil
		}
		done, err := s.carryOut(r.Context(), in, tried, how)
		if err != nil {
			return err
		}
		answer(w, http.StatusCreated, done)
		return nil
	}
}

// ordering is how an order is to be answered.
type ordering struct {
	dry     bool
	wait    string
	timeout time.Duration
}

func orderingOf(raw string) (how ordering, err error) {
	query, err := parseQuery(raw, "dryRun", "wait", "timeout")
	if err != nil {
		return how, err
	}
	if how.timeout, err = timeoutOf(query); err != nil {
		return how, err
	}
	switch how.wait = query.Get("wait"); how.wait {
	case waitNot:
		how.wait = waitApplied
	case waitApplied, waitDone:
	default:
		return how, badQuery("wait", "is neither applied nor done")
	}
	if !query.Has("dryRun") {
		return how, nil
	}
	if how.dry, err = strconv.ParseBool(query.Get("dryRun")); err != nil {
		return how, badQuery("dryRun", "is neither true nor false")
	}
	return how, nil
}

// readOrder reads the body: the members of the event's data, and its id where it has one.
func readOrder(w http.ResponseWriter, r *http.Request, kind string, now time.Time) (*input, error) {
	if form, err := formOf(r.Header.Get("Content-Type")); err != nil {
		return nil, err
	} else if form != formAuto {
		return nil, refuse(http.StatusUnsupportedMediaType, "media-type", "an order is one JSON object; send it as application/json")
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	event, err := decodeOrder(body, kind, now)
	if err != nil {
		return nil, err
	}
	event.Group, event.Component = r.PathValue("group"), r.PathValue("component")
	if err := flat(event.Validate()); err != nil {
		return nil, invalid(indexed{-1, err})
	}
	return &input{events: []journal.Event{event}, size: len(body)}, nil
}

// spoken is the body of an order.
type spoken struct {
	ID   string         `json:"id"`
	Data jsontext.Value `json:",embed"`
}

func decodeOrder(body []byte, kind string, now time.Time) (journal.Event, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}") // what is missing is named
	}
	var said spoken
	if err := json.Unmarshal(body, &said); err != nil {
		return journal.Event{}, invalid(indexed{-1, unreadable(err)})
	}
	if len(said.Data) == 0 {
		said.Data = jsontext.Value("{}")
	}
	data, err := journal.DecodeData(kind, said.Data, json.RejectUnknownMembers(true))
	if err != nil {
		return journal.Event{}, invalid(indexed{-1, flat(err)})
	}
	if until := untilOf(data); !until.IsZero() && !until.After(now) {
		return journal.Event{}, invalid(indexed{-1, &journal.FieldError{
			Field: "until", Problem: fmt.Sprintf("has passed already: it is %s", now.UTC().Format(time.RFC3339))}})
	}
	event := journal.Event{ID: said.ID, Source: journal.SourceOf(data), Time: now.UTC(), Data: data}
	if event.Source == "" {
		event.Source = "operator/unnamed" // Validate says that the actor is missing
	}
	return event, fill(&event)
}

func untilOf(data journal.Data) time.Time {
	switch d := data.(type) {
	case *journal.Exclude:
		return d.Until
	case *journal.Pause:
		return d.Until
	}
	return time.Time{}
}

// tryOut says what would come of an order, with all that was acknowledged before it.
func (s *Server) tryOut(ctx context.Context, e *journal.Event) (*api.Rehearsal, error) {
	if err := s.reachEnd(ctx); err != nil {
		return nil, err
	}
	r := &api.Rehearsal{Kind: e.Data.Kind(), Group: e.Group, Component: e.Component, Actor: actorOf(e.Data)}
	var tried *view.Rehearsal
	err := error(nil)
	s.opts.Projector.ReadLive(func(v *view.View, now time.Time, live view.Liveness) {
		if err = addressed(v, e); err == nil {
			r.AsOf = v.Sequence()
			tried, err = v.Rehearse(e, now, live)
		}
	})
	if err != nil {
		return nil, err
	}
	r.Verdict, r.Reason, r.Prospects, r.Decided = tried.Verdict, tried.Reason, tried.Prospects, []api.Decided{}
	for i := range tried.Decided {
		r.Decided = append(r.Decided, decidedOf(&tried.Decided[i], tried.Prospects)...)
	}
	s.advise(e, r)
	return r, nil
}

// reachEnd waits until everything is folded that is stored by now.
func (s *Server) reachEnd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	last, err := s.opts.Log.Last(ctx)
	if err == nil {
		err = s.opts.Projector.Wait(ctx, last)
	}
	if err == nil {
		return nil
	}
	r := refuse(http.StatusServiceUnavailable, "unavailable", "the journal can't be read to its end; nothing was stored; try again")
	r.cause, r.retryAfter = err, time.Second
	return r
}

// addressed says whether the group, and the component of a transfer, are there: an order to what nobody ever spoke of is
// a slip of the pen.
func addressed(v *view.View, e *journal.Event) error {
	g := v.Group(e.Group)
	if g == nil {
		return noGroup()
	}
	if e.Component != "" && g.Components[e.Component] == nil {
		return noComponent(g)
	}
	return nil
}

func actorOf(data journal.Data) string {
	switch d := data.(type) {
	case *journal.Transfer:
		return d.Actor
	case *journal.Exclude:
		return d.Actor
	case *journal.Include:
		return d.Actor
	case *journal.Pause:
		return d.Actor
	case *journal.Resume:
		return d.Actor
	}
	return ""
}

// decidedOf is a proposal in words, record by record.
func decidedOf(p *view.Proposal, prospects []view.Prospect) (all []api.Decided) {
	holder := ""
	for _, one := range prospects {
		if one.Component == p.Component {
			holder = one.Holder
		}
	}
	for _, data := range p.Data {
		d := api.Decided{Kind: data.Kind(), Component: p.Component}
		switch e := data.(type) {
		case *journal.Yield:
			d.Candidate, d.To, d.Reason = holder, e.To, e.Reason
		case *journal.Hold:
			d.Candidate, d.Reason = holder, e.Reason
		case *journal.Grant:
			d.Candidate = e.Candidate
		case *journal.Revoke:
			d.Candidate, d.Reason = e.Candidate, e.Reason
		case *journal.Alert:
			d.Name, d.Reason = e.Name, e.Reason
		case *journal.Clear:
			d.Name, d.Reason = e.Name, e.Reason
		case *journal.Include:
			d.Candidate, d.Reason = e.Candidate, e.Reason
		case *journal.Resume:
			d.Reason = e.Reason
		case *journal.Stale:
			d.Candidate = e.Candidate
		}
		all = append(all, d)
	}
	return all
}

// carryOut stores an order and waits for what it was asked to.
func (s *Server) carryOut(ctx context.Context, in *input, tried *api.Rehearsal, how ordering) (*api.Order, error) {
	if tried.Verdict == view.Invalid {
		return nil, refusedOrder("nothing was stored: ", tried)
	}
	acks, err := s.append(ctx, in)
	if err != nil {
		return nil, err
	}
	if err := s.sameOrder(ctx, &in.events[0], &acks[0]); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, how.timeout)
	defer cancel()
	ctx, stop := mergeDone(ctx, s.streams)
	defer stop()
	if err := s.awaitApplied(ctx, acks); err != nil {
		return nil, unfinished(err, acks, "the order is stored, but it was not applied within "+how.timeout.String(),
			"the order is stored, but this journald stops; ask another one what became of it")
	}
	if acks[0].Verdict == view.Invalid {
		tried.Reason, tried.Advice = acks[0].Reason, "something came between; ?dryRun=true says how things stand now"
		r := refusedOrder("record "+strconv.FormatUint(acks[0].Sequence, 10)+" has no effect: ", tried)
		r.Events = acks
		return nil, r
	}
	done := &api.Order{Kind: tried.Kind, Group: tried.Group, Component: tried.Component, Actor: tried.Actor, Ack: acks[0]}
	if _, transfers := in.events[0].Data.(*journal.Transfer); transfers {
		return done, s.handOver(ctx, in, tried, how, done)
	}
	s.opts.Projector.Read(func(v *view.View) { done.AsOf = v.Sequence() })
	return done, nil
}

// refusedOrder says why an order has no effect, and what to do.
func refusedOrder(outcome string, tried *api.Rehearsal) *refusal {
	detail := outcome + tried.Reason
	if tried.Advice != "" {
		detail += "; " + tried.Advice
	}
	return refuse(http.StatusConflict, "refused", detail)
}

// sameOrder refuses an id that was used for another order a moment ago: what was asked for now is not stored.
func (s *Server) sameOrder(ctx context.Context, e *journal.Event, ack *api.Ack) error {
	if !ack.Duplicate {
		return nil
	}
	records, err := s.opts.Log.Read(ctx, ack.Sequence, 1)
	if err != nil {
		return err
	}
	if len(records) == 1 && sameEvent(&records[0].Event, e) {
		return nil
	}
	return refuse(http.StatusConflict, "id-reused", fmt.Sprintf("nothing was stored: %s has used the id %q for record %d, which says "+
		"something else; leave the id out, or take a new one", e.Source, e.ID, ack.Sequence))
}

func sameEvent(a, b *journal.Event) bool {
	if a.Data == nil || a.Group != b.Group || a.Component != b.Component || a.Data.Kind() != b.Data.Kind() {
		return false
	}
	one, errOne := json.Marshal(a.Data, json.Deterministic(true))
	other, errOther := json.Marshal(b.Data, json.Deterministic(true))
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}
