package candidate

import (
	"time"

	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/journal"
)

// giveUp has another process give a term up, again and again until it does or the term is over, and tells the journal.
func (t *tenure) giveUp(y client.Yield) {
	m := t.member
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		err := m.callbacks.OnYield(t.term.ctx, t.term, y)
		if err == nil {
			break
		}
		if t.term.ctx.Err() != nil {
			return
		}
		m.logger.Error("the process could not be made to yield", "component", t.term.Component, "session", t.term.Session,
			"error", err, "retryIn", pause)
		if !sleep(t.term.ctx, pause) {
			return
		}
	}
	m.rest.begin(t.term.Component)
	revoke := &journal.Revoke{Session: t.term.Session, Candidate: m.cfg.Name, Reason: "yielded"}
	if _, err := m.publish(t.open, t.term.Component, revoke); err != nil && t.open.Err() == nil {
		m.logger.Error("the revoke was refused", "component", t.term.Component, "session", t.term.Session, "error", err)
	}
	m.say(func(m *member) { m.ended(t, ErrTermOver, true) })
	m.fit(t.term.Component)
}

// fit tells the other process when it may contend again.
func (m *member) fit(component string) {
	if m.callbacks.OnFit == nil || !m.rest.over(m.life, component) {
		return
	}
	for pause := shortestPause; m.life.Err() == nil; pause = min(2*pause, 10*time.Second) {
		err := m.callbacks.OnFit(m.life, component)
		if err == nil {
			return
		}
		m.logger.Error("the process could not be told that it may contend again", "component", component, "error", err, "retryIn", pause)
		sleep(m.life, pause)
	}
}
