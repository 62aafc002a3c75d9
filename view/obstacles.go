package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Obstacle is something that keeps a candidate from taking a component over.
type Obstacle struct {
	Name   string    `json:"name"`            // one of the words below
	Detail string    `json:"detail,omitzero"` // what shows it, where the word alone does not say it
	Until  time.Time `json:"until,omitzero"`  // when time ends it; zero: time alone does not
}

// String is the obstacle in words.
func (o Obstacle) String() string {
	text := strings.ReplaceAll(o.Name, "-", " ")
	if !o.Until.IsZero() {
		text += " until " + o.Until.UTC().Format(time.RFC3339)
	}
	if o.Detail != "" {
		text += " (" + o.Detail + ")"
	}
	return text
}

// The names of obstacles.
const (
	leads         = "leads"
	notJoined     = "not-joined"
	excluded      = "excluded"
	failing       = "fail"
	unknownHealth = "unknown"
	lastRunFailed = "last-run-failed"
	silent        = "silent"
	lapsed        = "lapsed"
	stopping      = "stopping"
	heldDown      = "held-down"
)

// Obstacles says everything that keeps a candidate from taking a component over at now; nothing where it is fit to.
func (g *Group) Obstacles(c *Component, k *Candidate, now time.Time, live Liveness) []Obstacle {
	d := decision{g: g, c: c, now: now, live: live}
	var all []Obstacle
	add := func(holds bool, name, detail string, until time.Time) {
		if holds {
			all = append(all, Obstacle{name, detail, until})
		}
	}
	never := time.Time{}
	add(c.Term != nil && c.Term.Candidate == k.Name, leads, "", never)
	add(!k.mayLead(c), notJoined, "", never)
	add(k.Excluded, excluded, "", k.ExcludedUntil)
	add(k.Rank == "fail", failing, k.complaint(), never)
	add(k.Rank == "", unknownHealth, k.unheard(), never)
	add(k.Rank == "pass" && k.failed, lastRunFailed, k.complaint(), never)
	add(k.Silent != nil, silent, k.silence(), never)
	add(k.mute() || !d.heard(k), lapsed, "its lease lapsed, and it has not spoken since", never)
	stop := c.stoppedBy(g, k)
	add(stop.After(now), stopping, "it led before, and has not said that it stopped", stop)
	until, held := g.HeldDownAt(k, now)
	add(held && !g.waived(c, k), heldDown, "it gave leadership up", until)
	return all
}

// complaint is what the check says that failed most often in a row, or empty where none has.
func (k *Candidate) complaint() string {
	name, worst := k.WorstCheck()
	if worst == nil {
		return ""
	}
	return fmt.Sprintf("%s failed %d times in a row: %s", name, worst.Fails, worst.Reason)
}

// WorstCheck is the check that failed most often in a row, nil where the last run of each passed.
func (k *Candidate) WorstCheck() (name string, worst *Check) {
	for _, one := range slices.Sorted(maps.Keys(k.Checks)) {
		if c := k.Checks[one]; c.Fails > 0 && (worst == nil || c.Fails > worst.Fails) {
			name, worst = one, c
		}
	}
	return name, worst
}

func (k *Candidate) unheard() string {
	if text := k.complaint(); text != "" {
		return text
	}
	return "not every check has passed since it joined or was silent"
}

func (k *Candidate) silence() string {
	if k.Silent == nil {
		return ""
	}
	return "its agent has not been heard since " + stamp(k.Silent.Since)
}
