package projector

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

const (
	toldAgain = time.Minute // how often the log hears of what goes on and on
	mostTold  = 4096        // things that it is remembered of when they were told
)

// sightings tells the log of what was seen that should not be, and of what may not have been seen. Somebody who writes
// an object over and over does not fill it.
type sightings struct {
	logger *slog.Logger

	mu   sync.Mutex
	told map[string]*telling
}

// telling is when something was told last, and how often it was not since.
type telling struct {
	at     time.Time
	untold int
}

func newSightings(logger *slog.Logger) *sightings {
	return &sightings{logger: logger, told: map[string]*telling{}}
}

// folded is what there is to tell of the anomalies that a record showed, to be called when nobody waits for it.
func (s *sightings) folded(r *journal.Record, result view.Result, now time.Time) (tell []func()) {
	g, c := result.Group, result.Component
	if g == nil {
		return nil
	}
	all := shownBy(g.Anomalies, r.Sequence)
	if c != nil {
		all = append(all[:len(all):len(all)], shownBy(c.Anomalies, r.Sequence)...)
	}
	for _, a := range all {
		logger, name := s.logger.With("group", g.Name, "sequence", r.Sequence), g.Name
		if c != nil {
			logger, name = logger.With("component", c.Name), name+"/"+c.Name
		}
		if d, ok := r.Event.Data.(*journal.Watch); ok {
			logger, name = logger.With("target", d.Target, "revision", d.Revision), name+"@"+d.Target
		}
		tell = append(tell, func() { s.anomaly(logger, a, name, now) })
	}
	return tell
}

// shownBy are the newest anomalies, as long as a record is the last that they name.
func shownBy(all []view.Anomaly, sequence uint64) []view.Anomaly {
	i := len(all)
	for i > 0 && slices.Max(all[i-1].Sequences) == sequence {
		i--
	}
	return all[i:]
}

func (s *sightings) anomaly(logger *slog.Logger, a view.Anomaly, name string, now time.Time) {
	say := logger.Debug
	untold, tell := s.seldom("anomaly\x00"+name+"\x00"+a.Name, now)
	if tell {
		say = logger.Warn
	}
	say("an anomaly was seen", "anomaly", a.Name, "detail", a.Detail, "untold", untold)
}

// gap tells that something may have been missed: a watch began, or begins anew.
func (s *sightings) gap(group, target string, o Observation, first bool, now time.Time) {
	logger := of(s.logger.With("group", group, "target", target), o.Component)
	if first {
		logger.Debug("a watch begins")
		return
	}
	say := logger.Debug
	untold, tell := s.seldom("gap\x00"+group+"\x00"+target, now)
	if tell {
		say = logger.Info
	}
	say("a watch begins anew, and may have missed something", "untold", untold)
}

// seldom says whether something is to be told, and how often it was not since it last was.
func (s *sightings) seldom(what string, now time.Time) (untold int, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.told[what]
	if t != nil && now.Sub(t.at) < toldAgain {
		t.untold++
		return t.untold, false
	}
	if len(s.told) >= mostTold {
		clear(s.told)
	}
	s.told[what] = &telling{at: now}
	if t != nil {
		untold = t.untold
	}
	return untold, true
}
