package candidate

import (
	"context"
	"sync"

	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/health"
	"github.com/leadership-journal/journald/journal"
)

// reporter tells the journal how the candidate's checks go. It has nothing to do with what the candidate leads: a check
// that hangs, or a journal that is away, holds up nothing else.
type reporter struct {
	member *member
	runner *health.Runner

	mu     sync.Mutex
	filter *health.Filter
	failed map[string]bool // by check: its last run
	told   uint64          // sequence of the newest report that the journal has to know of; 0: none
}

func newReporter(m *member, checks []health.Check) (*reporter, error) {
	runner, err := health.New(checks...)
	if err != nil {
		return nil, err
	}
	return &reporter{member: m, runner: runner, filter: health.NewFilter(1), failed: map[string]bool{}}, nil
}

func (r *reporter) run(ctx context.Context) { r.runner.Run(ctx, r.report) }

// stand takes note of what the journal knows: of this incarnation, where it is current.
func (r *reporter) stand(s *client.Standing, current bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.filter.Threshold(s.Policy.Health.SuccessThreshold)
	if current && s.Health == "unknown" && r.told != 0 && s.Sequence >= r.told { // it lost sight of the candidate
		r.anew()
	}
}

// away says that the journal could not be reached: when it is back it is told of passing runs again.
func (r *reporter) away() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.anew()
}

func (r *reporter) anew() {
	r.told = 0
	r.filter.Anew()
}

func (r *reporter) report(ctx context.Context, result health.Result) {
	m := r.member
	m.rest.passing(r.runner.Passing())
	if result.Pass {
		m.lease.passed(result.Run)
	}
	if !r.tells(result) {
		return
	}
	status := "pass"
	if !result.Pass {
		status = "fail"
	}
	ack, err := m.publish(ctx, "", &journal.Health{
		Candidate: m.cfg.Name, Incarnation: m.cfg.Incarnation, Check: result.Check, Status: status, Reason: result.Reason, Run: result.Run,
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told = ack.Sequence; err != nil {
		r.anew()
		if ctx.Err() == nil {
			m.logger.Error("a run of a check could not be told", "check", result.Check, "error", err)
		}
	}
}

// tells notes a run, and says whether the journal is told of it.
func (r *reporter) tells(result health.Result) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch failed := r.failed[result.Check]; {
	case !result.Pass && !failed:
		r.member.logger.Warn("a check fails", "check", result.Check, "reason", result.Reason)
	case result.Pass && failed:
		r.member.logger.Info("a check passes again", "check", result.Check)
	}
	r.failed[result.Check] = !result.Pass
	return r.filter.Tell(result)
}
