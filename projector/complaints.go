package projector

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// complaints tells the log of pushes that fail, and of those that succeed again: of the first failure of a kind at a
// target, and of the end of the last one. What fails for long, or in thousands of objects at once, does not fill it;
// every attempt has its record in the journal, and is logged for debugging.
type complaints struct {
	logger *slog.Logger

	mu      sync.Mutex
	targets map[place]*ailing
}

// place is a target.
type place struct{ group, target string }

// ailing is a target at which something fails.
type ailing struct {
	failing map[string]*failure // by component; empty: the object that shows all of them
	kinds   map[string]*kind
}

// kind is a way to fail, in which some objects fail at present.
type kind struct {
	failing int
	told    bool
}

// failure is that of one object, or of one component that the layout can't hold.
type failure struct {
	kind  string
	since time.Time
	times int
}

// mostKinds bounds how many ways to fail are told of one target, where errors name what they are about.
const mostKinds = 8

func newComplaints(logger *slog.Logger) *complaints {
	return &complaints{logger: logger, targets: map[place]*ailing{}}
}

// forget has everything told again: this instance begins to act.
func (c *complaints) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.targets = map[place]*ailing{}
}

// pushed tells of one attempt that was ended by nothing but its outcome.
func (c *complaints) pushed(ctx context.Context, push Push, receipt Receipt, err error, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := place{push.Object.Group, push.Object.Target}
	if err == nil && len(receipt.Rejected) == 0 && c.targets[at] == nil && !c.logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	logger := c.logger.With("group", at.group, "target", named(at.target), "sequence", push.Document.Sequence)
	switch {
	case errors.Is(err, ErrConflict): // somebody else wrote meanwhile, nothing is wrong
		of(logger, push.Object.Component).Debug("a push met another write", "error", err)
	case err != nil:
		c.failed(logger, at, push.Object.Component, err, now)
	default:
		c.succeeded(logger.With("revision", receipt.Revision), at, push, receipt, now)
	}
}

func (c *complaints) succeeded(logger *slog.Logger, at place, push Push, receipt Receipt, now time.Time) {
	of(logger, push.Object.Component).Debug("a push succeeded", "wrote", receipt.Wrote, "changed", receipt.Changed)
	c.recovered(logger, at, push.Object.Component, now)
	for name := range push.Document.Entries {
		if rule := receipt.Rejected[name]; rule != nil {
			c.failed(logger, at, name, rule, now)
		} else {
			c.recovered(logger, at, name, now)
		}
	}
}

// of adds a component, where it is about one.
func of(logger *slog.Logger, component string) *slog.Logger {
	if component == "" {
		return logger
	}
	return logger.With("component", component)
}

func (c *complaints) failed(logger *slog.Logger, at place, component string, err error, now time.Time) {
	a := c.targets[at]
	if a == nil {
		a = &ailing{failing: map[string]*failure{}, kinds: map[string]*kind{}}
		c.targets[at] = a
	}
	f := a.failing[component]
	if f == nil {
		f = &failure{since: now}
		a.failing[component] = f
	}
	f.times++
	say := of(logger, component).Debug
	if a.turn(f, kindOf(err)) {
		say = of(logger, component).Warn
	}
	say("a push failed", "failures", f.times, "error", err)
}

// turn has a failure be of a kind from here on, and says whether the log has to be told of it.
func (a *ailing) turn(f *failure, to string) bool {
	if f.kind == to {
		return false
	}
	a.leave(f)
	f.kind = to
	k := a.kinds[to]
	if k != nil {
		k.failing++
		return false
	}
	told := len(a.kinds) < mostKinds
	a.kinds[to] = &kind{failing: 1, told: told}
	return told
}

// leave takes a failure out of its kind, and says whether it was the last one of a kind that was told.
func (a *ailing) leave(f *failure) bool {
	k := a.kinds[f.kind]
	if k == nil {
		return false
	}
	if k.failing--; k.failing > 0 {
		return false
	}
	delete(a.kinds, f.kind)
	return k.told
}

// recovered ends a failure, if there is one. The log is told when it was the last of its kind.
func (c *complaints) recovered(logger *slog.Logger, at place, component string, now time.Time) {
	a := c.targets[at]
	if a == nil || a.failing[component] == nil {
		return
	}
	f := a.failing[component]
	delete(a.failing, component)
	say := of(logger, component).Debug
	if a.leave(f) {
		say = of(logger, component).Info
	}
	if len(a.failing) == 0 {
		delete(c.targets, at)
	}
	say("pushes succeed again", "failures", f.times, "after", now.Sub(f.since).Round(time.Millisecond), "stillFailing", len(a.failing))
}

// kindOf is an error without the numbers in it, such as ports and revisions, that make two of a kind look different.
func kindOf(err error) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, bounded(err.Error()))
}

func named(target string) string {
	if target == "" {
		return BuiltIn
	}
	return target
}
