package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
	"github.com/leadership-journal/journald/view/compare"
)

// handover follows an order to hand leadership over. All that it knows comes from the view, which may have gone several
// steps between two looks.
type handover struct {
	event    *journal.Event
	sequence uint64 // of the order
	from     string // who led when it was given; empty: not known, since the order was given before
	to       string // empty: whoever is best
	applied  bool   // the order itself, not a repetition of it
}

// handOver waits until the new leader is shown, where the order is to be waited for, and says who leads.
func (s *Server) handOver(ctx context.Context, in *input, tried *api.Rehearsal, how ordering, done *api.Order) error {
	h := &handover{event: &in.events[0], sequence: done.Sequence, applied: done.Verdict == view.Applied}
	h.to = h.event.Data.(*journal.Transfer).To
	if h.applied && !done.Duplicate && len(tried.Prospects) > 0 {
		h.from = tried.Prospects[0].Holder
	}
	for {
		changed := s.opts.Projector.Changed()
		var waits string
		var err error
		s.opts.Projector.Read(func(v *view.View) { waits, err = h.look(v, done) })
		if how.wait != waitDone {
			return nil
		}
		if err != nil || waits == "" {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return unfinished(ctx.Err(), []api.Ack{done.Ack}, "the order stands, and is not carried out within "+how.timeout.String()+": "+waits,
				"the order stands, but this journald stops; ask another one what becomes of it: "+waits)
		}
	}
}

// look fills in who leads, and says what is still waited for, or nothing; an error where it was in vain.
func (h *handover) look(v *view.View, done *api.Order) (waits string, err error) {
	g := v.Group(h.event.Group)
	c := g.Components[h.event.Component]
	done.AsOf, done.Leader, done.Targets = v.Sequence(), leaderOf(g, c), targetsOf(g, c)
	t := c.Term
	switch order := c.Handover; {
	case order != nil && order.Transfer != nil && (order.Transfer.Sequence == h.sequence || !h.applied):
		return "the projector has not decided on it yet", nil
	case t == nil:
		return "nobody holds the term; the holder has let go", nil
	case t.Epoch < h.sequence && t.Yield != nil:
		return told(t), nil
	case t.Epoch < h.sequence && h.applied:
		return "", h.inVain(done, "it could not be carried out any more when it was decided; ?dryRun=true says how things stand now")
	case h.to != "" && t.Candidate != h.to || h.to == "" && t.Candidate == h.from:
		return "", h.inVain(done, t.Candidate+" holds the term, as epoch "+strconv.FormatUint(t.Epoch, 10)+
			"; the election chose so; say the order again, or exclude whoever must not lead")
	case !t.Confirmed || c.Intent == nil || c.Intent.Epoch != t.Epoch:
		return t.Candidate + " holds the term and has not confirmed where it is", nil
	}
	if done.Published = published(v, h.event); !done.Published {
		return t.Candidate + " is confirmed, and not every target shows it: " + behind(done.Targets), nil
	}
	return "", nil
}

func told(t *view.Term) string {
	text := t.Candidate + " was told by record " + strconv.FormatUint(t.Yield.Sequence, 10) + " to yield"
	if t.Yield.To != "" {
		text += " to " + t.Yield.To
	}
	if t.Released {
		return text + ", and has stopped; its term is still open"
	}
	return text + ", and has not let go"
}

// inVain says that the order came to nothing.
func (h *handover) inVain(done *api.Order, why string) error {
	r := refuse(http.StatusConflict, "overtaken", fmt.Sprintf("the order of record %d came to nothing: %s", h.sequence, why))
	r.Events = []api.Ack{done.Ack}
	return r
}

// behind are the targets that are not in sync.
func behind(targets []api.TargetState) string {
	var words []string
	for _, t := range targets {
		if t.State != view.InSync && t.State != compare.Observed {
			words = append(words, strings.TrimSuffix(t.Name+" "+t.State+" "+t.Error, " "))
		}
	}
	return list(words)
}
