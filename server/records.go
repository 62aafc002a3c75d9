package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/internal/nearest"
	"github.com/leadership-journal/journald/internal/nesting"
	"github.com/leadership-journal/journald/internal/records"
	"github.com/leadership-journal/journald/journal"
)

// longestName is what the contract allows. A longer one would make a request that NATS takes for an attack: it ends the
// connection for good.
const longestName = 128

// filter says which records are meant.
type filter struct{ group, component, kind string }

func filterOf(query url.Values) (filter, error) {
	f := filter{query.Get("group"), query.Get("component"), query.Get("kind")}
	if f.kind != "" && !slices.Contains(journal.Kinds(), f.kind) {
		return f, badQuery("kind", strconv.Quote(f.kind)+" is no kind of event"+nearest.Hint(f.kind, journal.Kinds()))
	}
	if f.component != "" && f.group == "" {
		return f, badQuery("component", "goes together with group")
	}
	for key, name := range map[string]string{"group": f.group, "component": f.component} {
		if len(name) > longestName {
			return f, badQuery(key, fmt.Sprintf("has %d characters; no name has more than %d", len(name), longestName))
		}
	}
	return f, nil
}

func (f filter) subjects() []string {
	if f == (filter{}) {
		return nil
	}
	return []string{records.Subject(f.group, f.component, f.kind)}
}

// matches says whether a record is meant. Its subject counts, so that what is no valid event is found too.
func (f filter) matches(r *journal.Record) bool {
	if f == (filter{}) {
		return true
	}
	want, got := strings.Split(records.Subject(f.group, f.component, f.kind), "."), strings.Split(r.Subject, ".")
	for i := range want {
		if i >= len(got) || want[i] != "*" && want[i] != got[i] {
			return false
		}
	}
	return len(want) == len(got)
}

func (s *Server) getEvents(w http.ResponseWriter, r *http.Request) error {
	query, err := parseQuery(r.URL.RawQuery, "group", "component", "kind", "from", "to", "limit", "cursor")
	if err != nil {
		return err
	}
	f, err := filterOf(query)
	if err != nil {
		return err
	}
	limit, err := limitOf(query)
	if err != nil {
		return err
	}
	q, to, err := s.span(query)
	if err != nil {
		return err
	}
	q.Subjects, q.Page = f.subjects(), limit+1
	page := api.Records{Records: []api.Record{}}
	err = s.opts.Reader.Each(r.Context(), q, func(record *journal.Record) bool {
		switch {
		case to.sequence > 0 && record.Sequence > to.sequence, !to.time.IsZero() && record.Time.After(to.time):
			return false
		case len(page.Records) == limit:
			page.Next = cursor(strconv.FormatUint(record.Sequence, 10))
			return false
		}
		page.Records = append(page.Records, s.show(record))
		return true
	})
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, &page)
	return nil
}

// span is where to begin and where to end.
func (s *Server) span(query url.Values) (q records.Query, to when, err error) {
	from, err := parseWhen("from", query.Get("from"), s.now())
	if err != nil {
		return q, to, err
	}
	if to, err = parseWhen("to", query.Get("to"), s.now()); err != nil {
		return q, to, err
	}
	q.From, q.Since = from.sequence, from.time
	place, err := sequenceCursor(query)
	if place > 0 {
		q.From, q.Since = place, time.Time{}
	}
	return q, to, err
}

func (s *Server) getEvent(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r.URL.RawQuery); err != nil {
		return err
	}
	sequence, err := strconv.ParseUint(r.PathValue("sequence"), 10, 64)
	if err != nil || sequence == 0 {
		return refuse(http.StatusBadRequest, "bad-sequence", "a record is named by its sequence, a number from 1")
	}
	found, err := s.opts.Log.Read(r.Context(), sequence, 1)
	if err != nil {
		return err
	}
	if len(found) == 0 || found[0].Sequence != sequence {
		return refuse(http.StatusNotFound, "no-record", "the journal has no record "+strconv.FormatUint(sequence, 10))
	}
	record := s.show(&found[0])
	answer(w, http.StatusOK, &record)
	return nil
}

// show is a record for those who ask.
func (s *Server) show(r *journal.Record) api.Record {
	out := api.Record{Sequence: r.Sequence, Time: r.Time, Subject: r.Subject}
	if r.Event.Data != nil {
		out.Kind = r.Event.Data.Kind()
	}
	out.Verdict, out.Reason, _ = s.opts.Projector.Verdict(r.Sequence)
	if r.Err != nil && out.Reason == "" {
		out.Reason = r.Err.Error()
	}
	if value := jsontext.Value(r.Raw); !nesting.TooDeep(r.Raw) && value.IsValid() {
		out.Event = value
	} else if out.Text = string(r.Raw); !utf8.Valid(r.Raw) {
		out.Text = strings.ToValidUTF8(out.Text, "\uFFFD")
	}
	return out
}
