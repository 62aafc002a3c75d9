package server

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/leadership-journal/journald/view"
)

// lifeSign is how long the projector's loop may take to come round before the process counts as dead.
const lifeSign = 15 * time.Second

// livez asks nobody but the process itself: what a restart can't help is no reason for one.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request) error {
	ticked := s.opts.Projector.Status().Ticked
	if ticked.IsZero() {
		ticked = s.began
	}
	if age := time.Since(ticked); age > lifeSign {
		plain(w, http.StatusServiceUnavailable, fmt.Sprintf("the projector's loop has not come round for %s\n", age.Round(time.Second)))
		return nil
	}
	plain(w, http.StatusOK, "ok\n")
	return nil
}

// check is one line of readiness.
type check struct {
	name   string
	ok     bool
	weak   bool // not ok means degraded, not unready
	detail string
}

// readyz is 200 where the log can be reached and the fold has caught up. A backend that is down is told, and is no
// reason to send events elsewhere.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	query, err := parseQuery(r.URL.RawQuery, "verbose")
	if err != nil {
		return err
	}
	checks := []check{s.checkLog(), s.checkFold(), s.checkRole(), s.checkDurability(), s.checkTargets()}
	status, word := http.StatusOK, "ready"
	for _, c := range checks {
		switch {
		case !c.ok && !c.weak:
			status, word = http.StatusServiceUnavailable, "not ready"
		case !c.ok && status == http.StatusOK:
			word = "ready, degraded"
		}
	}
	if !query.Has("verbose") {
		plain(w, status, word+"\n")
		return nil
	}
	var b strings.Builder
	for _, c := range append(checks, s.checkView()) {
		fmt.Fprintf(&b, "%s %s: %s\n", c.mark(), c.name, c.detail)
	}
	b.WriteString(word + "\n")
	plain(w, status, b.String())
	return nil
}

func (c *check) mark() string {
	switch {
	case c.ok:
		return "[+]"
	case c.weak:
		return "[!]"
	}
	return "[-]"
}

func (s *Server) checkLog() check {
	size, err := s.sampler.read()
	if err != nil {
		s.log.Debug("the log can't be reached", "error", err)
		return check{name: "log", detail: "can't be reached"}
	}
	return check{name: "log", ok: true, detail: fmt.Sprintf("newest record %d, %d of %d bytes", size.Last, size.Bytes, size.MaxBytes)}
}

func (s *Server) checkFold() check {
	status := s.opts.Projector.Status()
	if !status.CaughtUp {
		return check{name: "fold", detail: fmt.Sprintf("catching up, at record %d", status.Applied)}
	}
	return check{name: "fold", ok: true, detail: fmt.Sprintf("at record %d", status.Applied)}
}

// checkView says at which record the view is and what its hash is then, to be compared with a replay of the journal. It
// costs as much as writing the view down, during which nothing is folded.
func (s *Server) checkView() check {
	var sequence uint64
	var hash string
	s.opts.Projector.Read(func(v *view.View) { sequence, hash = v.Sequence(), v.Hash() })
	return check{name: "view", ok: true, detail: fmt.Sprintf("sequence %d, viewHash %s", sequence, hash)}
}

func (s *Server) checkRole() check {
	status := s.opts.Projector.Status()
	word := "another instance acts"
	if status.Active {
		word = "this instance acts"
	}
	return check{name: "projector", ok: true, detail: fmt.Sprintf("%s, epoch %d", word, status.Epoch)}
}

func (s *Server) checkDurability() check {
	verified, detail := s.opts.Durability()
	return check{name: "durability", ok: verified, weak: true, detail: detail}
}

func (s *Server) checkTargets() check {
	behind := map[string]int{}
	s.opts.Projector.Read(func(v *view.View) {
		for _, g := range v.Groups() {
			for _, c := range g.Components {
				for _, t := range c.Targets {
					if t.State == view.Failing || t.State == view.Drifted || t.State == view.Unclear {
						behind[t.State]++
					}
				}
			}
		}
	})
	if len(behind) == 0 {
		return check{name: "targets", ok: true, weak: true, detail: "none fails"}
	}
	return check{name: "targets", weak: true, detail: fmt.Sprintf("%d failing, %d drifted, %d unknown",
		behind[view.Failing], behind[view.Drifted], behind[view.Unclear])}
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // whoever asked may be gone
}
