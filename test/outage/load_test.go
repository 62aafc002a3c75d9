package outage_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leadership-journal/journald/internal/testenv/journald"
	"github.com/leadership-journal/journald/journal"
)

const (
	size          = 100             // components of a world
	busy          = size / 2        // of them get one new leader after another, the others one at the beginning of the outage
	period        = time.Second     // from one to the next: busy times two events each second
	answerTimeout = 5 * time.Second // after which a service counts its answer as lost
	again         = 100 * time.Millisecond
)

// componentNames are the components of every world, the busy ones first.
func componentNames() []string {
	names := make([]string, size)
	for n := range names {
		names[n] = fmt.Sprintf("c-%03d", n)
	}
	return names
}

// leaderOf is the n-th leader of a component.
func leaderOf(name string, n int) journal.LeaderInfo {
	return journal.LeaderInfo{
		Session: fmt.Sprintf("%s-%d", name, n), Candidate: name, Address: fmt.Sprintf("http://%s:8081/%d", name, n),
	}
}

// load is services that tell one journald of each new leader, the grant and the confirmation in one request. What is not
// answered is sent again with the same ids until it is.
type load struct {
	group  string
	url    string
	client *journald.Client

	mu      sync.Mutex
	acked   map[string]uint64 // sequences of what was acknowledged, by event id
	newest  map[string]int    // number of the leader that was acknowledged last, by component
	lost    int               // answers that did not come, or were refusals that were not final
	longest time.Duration     // from the first attempt to the acknowledgement
	failed  error

	stop  chan struct{} // closed: what is under way is finished, and no more begins
	once  sync.Once
	ended sync.WaitGroup
}

func newLoad(group string, p *journald.Process) *load {
	return &load{
		group: group, url: p.URL(), client: journald.NewClient(),
		acked: map[string]uint64{}, newest: map[string]int{}, stop: make(chan struct{}),
	}
}

// begin has every component get a new leader, and the busy ones one after another until finish.
func (l *load) begin(t *testing.T) {
	began := time.Now()
	for n, name := range componentNames() {
		first := began.Add(period * time.Duration(n%busy) / busy)
		l.ended.Go(func() {
			if err := l.run(t.Context(), name, first, n < busy); err != nil {
				l.note(func() { l.failed = errors.Join(l.failed, fmt.Errorf("%s: %w", name, err)) })
			}
		})
	}
	t.Cleanup(l.finish)
}

// finish returns when all that was begun is acknowledged.
func (l *load) finish() {
	l.once.Do(func() { close(l.stop) })
	l.ended.Wait()
}

// run keeps to the schedule: what an answer took long for is made up for.
func (l *load) run(ctx context.Context, name string, next time.Time, goesOn bool) error {
	for {
		select {
		case <-time.After(time.Until(next)):
		case <-l.stop:
			return nil
		}
		if err := l.change(ctx, name); err != nil || !goesOn {
			return err
		}
		next = next.Add(period)
	}
}

// change has a component get its next leader. Nobody else does so at the same time.
func (l *load) change(ctx context.Context, name string) error {
	n := l.must()[name] + 1
	events := l.events(name, n)
	began := time.Now()
	for {
		err := l.send(ctx, name, n, events)
		if err == nil {
			took := time.Since(began)
			l.note(func() { l.longest = max(l.longest, took) })
			return nil
		}
		if ctx.Err() != nil || journald.Final(err) {
			return err
		}
		l.note(func() { l.lost++ })
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
}

func (l *load) send(ctx context.Context, name string, n int, events []journal.Event) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	acks, err := l.client.Publish(ctx, l.url, "", events...)
	if err != nil {
		return err
	}
	l.note(func() {
		l.newest[name] = n
		for i := range events {
			l.acked[events[i].ID] = acks[i].Sequence
		}
	})
	return nil
}

// events are the grant and the confirmation of a leader.
func (l *load) events(name string, n int) []journal.Event {
	leader := leaderOf(name, n)
	all := []journal.Event{
		{Data: &journal.Grant{Candidate: leader.Candidate, Session: leader.Session}},
		{Data: &journal.Confirm{Candidate: leader.Candidate, Session: leader.Session, Address: leader.Address, Attempt: 1}},
	}
	for i := range all {
		e := &all[i]
		e.ID = fmt.Sprintf("%s-%s-%d", e.Data.Kind(), name, n)
		e.Source, e.Group, e.Component, e.Time = "candidate/"+name, l.group, name, time.Now().UTC()
	}
	return all
}

func (l *load) note(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// must is what targets have to show by now, or something newer: the number of a leader, by component.
func (l *load) must() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.newest)
}

// lacking are the components that are not shown with the leader of their number, or a later one, sorted.
func lacking(must map[string]int, shown map[string]journal.LeaderInfo) (names []string) {
	for name, n := range must {
		if numberOf(name, shown[name]) < n {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// numberOf is the number of a component's leader, 0 where it never had this one.
func numberOf(name string, leader journal.LeaderInfo) (n int) {
	if _, err := fmt.Sscanf(leader.Session, name+"-%d", &n); err != nil {
		return 0
	}
	if was := leaderOf(name, n); leader.Session != was.Session || leader.Candidate != was.Candidate || leader.Address != was.Address {
		return 0
	}
	return n
}
