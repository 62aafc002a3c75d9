package health

import (
	"context"
	"sync"
	"time"

	"github.com/leadership-journal/journald/internal/reason"
)

// Result is what one run said.
type Result struct {
	Check  string
	Run    uint64 // rises with every result of a runner, whichever check it is of
	Pass   bool
	Reason string // why it failed: one line of at most 1,000 bytes
}

// Last is how a check stands.
type Last struct {
	Result           // of the newest run; Run is 0 before the first one
	Since  time.Time // of the first of the runs that went alike
}

// Runner runs checks, each by itself.
type Runner struct {
	watches []*watch
	queue   queue

	mu   sync.Mutex
	run  uint64
	last []Last
}

// New makes a runner. Its error names everything that is wrong with the checks. With no checks nothing ever fails.
func New(checks ...Check) (*Runner, error) {
	if err := validate(checks); err != nil {
		return nil, err
	}
	r := &Runner{last: make([]Last, len(checks)), queue: newQueue()}
	for i, c := range checks {
		r.last[i].Check = c.Name
		r.watches = append(r.watches, &watch{Check: c, runner: r, index: i})
	}
	return r, nil
}

// stagger is between the first runs of two checks, or less where their periods are short.
const stagger = 100 * time.Millisecond

// Run runs the checks until ctx ends, which ends the runs that are under way. It returns when these have returned, or a
// second later; it does not wait for one that was past its deadline. It is called once.
//
// Results are reported one after the other, in the order of their numbers. A report that takes its time delays no check:
// results wait, the newest 1,024 of them, and where there are more the oldest are dropped. Report has to return soon after
// its context ends; results that wait then are dropped.
func (r *Runner) Run(ctx context.Context, report func(context.Context, Result)) {
	var all sync.WaitGroup
	for i, w := range r.watches {
		offset := time.Duration(i) * min(stagger, w.Period/time.Duration(len(r.watches)))
		all.Go(func() { w.attend(ctx, offset) })
	}
	all.Go(func() { r.queue.deliver(ctx, report) })
	all.Wait()
}

// Last is how every check stands, in the order in which they were given. It never waits for a check, nor for a report.
func (r *Runner) Last() []Last {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Last(nil), r.last...)
}

// Passing says whether the last run of every check passed. Before the first run of each has ended it is false.
func (r *Runner) Passing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.last {
		if !l.Pass {
			return false
		}
	}
	return true
}

// note takes a result in, and has it reported. One that comes when ctx has ended says only that.
func (r *Runner) note(index int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run++
	result := Result{Check: r.last[index].Check, Run: r.run, Pass: err == nil}
	if err != nil {
		result.Reason = reason.Of(err)
	}
	l := &r.last[index]
	if l.Run == 0 || l.Pass != result.Pass {
		l.Since = time.Now()
	}
	l.Result = result
	r.queue.add(result)
}
