package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leadership-journal/journald/candidate"
	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/internal/reason"
	"github.com/leadership-journal/journald/policy"
)

// Run takes part until ctx ends: then leading is stopped through its hook, what stopped is released, the candidate leaves,
// and Run returns nil, within the stopWithin of the configuration. It returns an error where it can't go on, such as
// [candidate.ErrReplaced], or where leading has not stopped in that time; the process should end then.
//
// Where journald elects, an earlier agent may have been killed while the process led: before anything else the hook
// onRevoked is called for each component, until it succeeds.
func Run(ctx context.Context, cfg *Settled, c client.Client, logger *slog.Logger) error {
	a := &agent{Settled: cfg, logger: logger.With("candidate", cfg.Candidate, "group", cfg.Group)}
	a.life, a.end = context.WithCancel(context.WithoutCancel(ctx))
	defer a.end()
	if cfg.Election == policy.Managed {
		for _, component := range cfg.Components {
			if err := a.stop(ctx, a.notice("onRevoked", component, "the agent has started")); err != nil {
				return nil // told to end, and nothing has begun
			}
		}
	}
	return candidate.Run(ctx, candidate.Config{
		Client: c, Name: cfg.Candidate, Components: cfg.Components, Address: cfg.Address, Properties: cfg.Properties, Priority: cfg.Priority,
		Labels: cfg.Labels, Beside: cfg.Election == policy.External, Checks: cfg.checks, Probe: a.beforeRenewal(),
		StopWithin: time.Duration(cfg.StopWithin), Logger: logger,
	}, a.callbacks())
}

type agent struct {
	*Settled
	logger *slog.Logger

	life context.Context // of the candidate, after whose end nothing is told the journal
	end  context.CancelFunc
}

func (a *agent) callbacks() candidate.Callbacks {
	c := candidate.Callbacks{
		OnYield: func(ctx context.Context, t *candidate.Term, y client.Yield) error {
			n := a.noticeOf("onYield", t)
			n.Reason, n.To = y.Reason, y.To
			return a.Hooks.OnYield.call(ctx, n)
		},
	}
	if a.Election == policy.Managed {
		c.OnGranted = a.lead
		return c
	}
	c.OnFit = func(ctx context.Context, component string) error {
		return a.Hooks.OnFit.call(ctx, a.notice("onFit", component, ""))
	}
	return c
}

// beforeRenewal is the write before each renewal, nil where there is none. A disk that hangs holds the renewal up. One that
// says what is wrong with it does not: whether to go on leading is for the journal to decide, which is told by the checks.
func (a *agent) beforeRenewal() func(context.Context) error {
	if a.probe == nil {
		return nil
	}
	return func(ctx context.Context) error {
		err := a.probe(ctx)
		if err != nil && ctx.Err() == nil {
			a.logger.Debug("the write before a renewal failed at once", "error", err)
			return nil
		}
		return err
	}
}

func (a *agent) notice(hook, component, reason string) Notice {
	return Notice{Hook: hook, Group: a.Group, Candidate: a.Candidate, Component: component, Reason: reason}
}

func (a *agent) noticeOf(hook string, t *candidate.Term) Notice {
	n := a.notice(hook, t.Component, "")
	n.Session = t.Session
	if epoch, err := t.Epoch(a.life); err == nil { // of a term that has ended before its epoch was known there is none
		n.Epoch = epoch
	}
	return n
}

const (
	startTries   = 3
	shortestWait = 100 * time.Millisecond
	longestWait  = 5 * time.Second
)

// lead has the process lead while the term lasts. One that can't be made to gives the term up.
func (a *agent) lead(ctx context.Context, t *candidate.Term) error {
	var telling sync.WaitGroup
	defer telling.Wait()
	tell := func(ready bool, reason string) {
		telling.Go(func() {
			if err := t.Ready(ctx, ready, reason); err != nil && ctx.Err() == nil {
				a.logger.Error("the journal could not be told whether the leader is ready", "component", t.Component, "error", err)
			}
		})
	}
	err := a.start(ctx, t, tell)
	if err == nil {
		tell(true, "")
		<-ctx.Done()
		err = context.Cause(ctx)
	}
	n := a.noticeOf("onRevoked", t)
	n.Reason = reason.Of(err)
	return errors.Join(err, a.stop(a.life, n))
}

// start has the process begin to lead. The journal is told where that fails: it is not ready then.
func (a *agent) start(ctx context.Context, t *candidate.Term, tell func(ready bool, reason string)) error {
	n := a.noticeOf("onGranted", t)
	wait := shortestWait
	for try := 1; ; try++ {
		err := a.Hooks.OnGranted.call(ctx, n)
		if err == nil || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		a.logger.Error("the process could not be made to lead", "component", t.Component, "try", try, "error", err)
		if try == startTries {
			return err
		}
		tell(false, reason.Of(err))
		if !sleep(ctx, wait) {
			return context.Cause(ctx)
		}
		wait *= 2
	}
}

// stop has the process stop leading, and returns when it has. There is no giving up but with ctx, whose cause is returned
// then.
func (a *agent) stop(ctx context.Context, n Notice) error {
	for wait := shortestWait; ; wait = min(2*wait, longestWait) {
		err := a.Hooks.OnRevoked.call(ctx, n)
		if err == nil {
			return nil
		}
		a.logger.Error("the process could not be made to stop leading", "component", n.Component, "error", err, "retryIn", wait)
		if !sleep(ctx, wait) {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
