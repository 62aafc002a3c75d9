package candidate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/view"
)

const group = "demo"

// world is a journald in memory: its log, its liveness keys and its projector's core, which acts at once. It lives in the
// virtual time of a synctest bubble.
type world struct {
	mu       sync.Mutex
	core     *projector.Core
	records  []journal.Record
	ids      map[string]uint64
	verdicts map[uint64]view.Result
	keys     map[alive.Key]alive.Entry
	revision uint64
	policy   policy.Policy
	skew     time.Duration // of the log's clock
	frozen   bool          // the core is not asked
	log      []string      // what happened
	began    time.Time
	wake     *time.Timer
	changed  chan struct{} // closed and replaced after every change
}

// newWorld is one with a group that lives by a policy.
func newWorld(t *testing.T, p policy.Policy) *world {
	w := &world{
		ids: map[string]uint64{}, verdicts: map[uint64]view.Result{}, keys: map[alive.Key]alive.Entry{}, policy: p, began: time.Now(), changed: make(chan struct{}),
	}
	w.core = newCore(p)
	w.wake = time.AfterFunc(time.Hour, func() { w.locked(func() {}) })
	t.Cleanup(func() { w.wake.Stop() })
	w.locked(w.takeOver)
	return w
}

func newCore(p policy.Policy) *projector.Core {
	return projector.NewCore(projector.Options{
		Instance: "journald-0", Random: rand.New(rand.NewPCG(1, 1)), PerComponent: func(string, journal.Target) bool { return false },
		Settings: projector.Settings{Defaults: p, Groups: map[string]projector.Group{group: {Policy: p}}},
	})
}

// takeOver has the core act, as if it had just been started.
func (w *world) takeOver() {
	epoch := w.store(&journal.Event{
		ID: newID(), Source: "projector/journald-0", Group: "_", Time: time.Now(), Data: &journal.Takeover{Instance: "journald-0"},
	})
	w.core.Lead(epoch)
	w.core.Listen()
	for k, e := range w.keys {
		w.heard(k, e)
	}
}

// restart has another instance take over, which knows of the past what the log says.
func (w *world) restart() {
	w.core = newCore(w.policy)
	for i := range w.records {
		w.core.Apply(&w.records[i])
	}
	w.takeOver()
}

func (w *world) heard(k alive.Key, e alive.Entry) {
	w.core.Heard(projector.Beat{
		Group: k.Group, Candidate: k.Candidate, Incarnation: e.Incarnation, Revision: e.Revision, Until: e.Until, Lease: time.Duration(e.Lease),
	}, time.Since(w.began))
}

// locked changes the world, and has the core do what follows from it.
func (w *world) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	for !w.frozen && w.poll() {
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// poll does what the core asks for, and says whether that was anything.
func (w *world) poll() bool {
	work := w.core.Poll(time.Now(), time.Since(w.began))
	for _, b := range work.Batches {
		var last uint64
		for i := range b.Events {
			last = w.store(&b.Events[i])
		}
		w.core.Appended(b.ID, last)
	}
	for _, e := range work.Expiries {
		key := alive.Key{Group: e.Holder.Group, Candidate: e.Holder.Candidate}
		_, err := w.write(key, alive.Heartbeat{Incarnation: e.Holder.Incarnation, Until: e.Until, Lease: policy.Duration(e.Lease)}, e.Revision)
		w.core.Expired(e, err == nil, time.Since(w.began))
	}
	if !work.Wake.IsZero() {
		w.wake.Reset(max(time.Until(work.Wake), 0))
	}
	return len(work.Batches)+len(work.Expiries) > 0
}

// store appends and folds one event.
func (w *world) store(e *journal.Event) uint64 {
	if sequence, ok := w.ids[e.Source+"|"+e.ID]; ok {
		return sequence
	}
	r := journal.Record{Sequence: uint64(len(w.records) + 1), Time: time.Now().Add(w.skew), Event: *e}
	w.records, w.ids[e.Source+"|"+e.ID] = append(w.records, r), r.Sequence
	w.verdicts[r.Sequence] = w.core.Apply(&r)
	w.say("%d %s: %s %s %+v: %s %s", r.Sequence, e.Source, e.Data.Kind(), e.Component, e.Data, w.verdicts[r.Sequence].Verdict, w.verdicts[r.Sequence].Reason)
	return r.Sequence
}

func (w *world) write(k alive.Key, beat alive.Heartbeat, revision uint64) (uint64, error) {
	found, ok := w.keys[k]
	if found.Revision != revision {
		c := &alive.Conflict{Key: k}
		if ok {
			c.Found = &found
		}
		return 0, c
	}
	w.revision++
	w.say("key %s: %+v, revision %d", k.Candidate, beat, w.revision)
	w.keys[k] = alive.Entry{Heartbeat: beat, Revision: w.revision}
	w.heard(k, w.keys[k])
	return w.revision, nil
}

// publish is for what others say.
func (w *world) publish(component string, data journal.Data) {
	w.locked(func() {
		w.store(&journal.Event{ID: newID(), Source: journal.SourceOf(data), Group: group, Component: component, Time: time.Now(), Data: data})
	})
}

// read hands out the group as it stands.
func (w *world) read(f func(g *view.Group)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w.core.View().Group(group))
}

// said are the records of one kind.
func (w *world) said(t *testing.T, kind string) (records []journal.Record) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.records {
		if r.Event.Data.Kind() == kind {
			records = append(records, r)
		}
	}
	require.NotEmpty(t, records, kind)
	return records
}

// await waits until something holds of the group, and everybody has done what they do about it.
func (w *world) await(t *testing.T, what string, holds func(g *view.Group) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for {
		w.mu.Lock()
		changed, ok := w.changed, holds(w.core.View().Group(group))
		w.mu.Unlock()
		if ok {
			synctest.Wait()
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			w.tell(t)
			require.Fail(t, "it never came to it", what)
		}
	}
}

// link is one candidate's way to a world, which can be disturbed.
type link struct {
	*world
	mu    sync.Mutex
	cut   bool          // nothing gets through, in neither direction
	lossy bool          // what was asked for is done, and the answer lost
	slow  time.Duration // that an answer takes
}

var errLost = errors.New("the connection broke")

func (l *link) set(cut, lossy bool) {
	l.mu.Lock()
	l.cut, l.lossy, l.slow = cut, lossy, 0
	l.mu.Unlock()
	l.locked(func() {})
}

// slowDown has every answer take its time.
func (l *link) slowDown(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow = d
}

func (l *link) state() (cut, lossy bool, slow time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut, l.lossy, l.slow
}

// ask does something at the world's side.
func (l *link) ask(ctx context.Context, do func()) error {
	cut, _, slow := l.state()
	if cut {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	l.locked(do)
	if slow > 0 && !sleep(ctx, slow) {
		return context.Cause(ctx)
	}
	if cut, lossy, _ := l.state(); cut || lossy {
		return errLost
	}
	return nil
}

func (l *link) Group() string { return group }
func (l *link) Close() error  { return nil }

func (l *link) Append(ctx context.Context, events ...journal.Event) ([]client.Ack, error) {
	var acks []client.Ack
	err := l.ask(ctx, func() {
		for i := range events {
			_, duplicate := l.ids[events[i].Source+"|"+events[i].ID]
			sequence := l.store(&events[i])
			result := l.verdicts[sequence]
			acks = append(acks, client.Ack{Sequence: sequence, Duplicate: duplicate, Verdict: result.Verdict, Reason: result.Reason})
		}
	})
	return acks, err
}

func (l *link) Renew(ctx context.Context, key alive.Key, beat alive.Heartbeat, revision uint64) (newer uint64, err error) {
	lost := l.ask(ctx, func() { newer, err = l.write(key, beat, revision) })
	return newer, errors.Join(lost, err)
}

func (l *link) Follow(ctx context.Context, candidate string, tell func(client.Standing) error) error {
	for {
		l.world.mu.Lock()
		changed, standing := l.changed, standingOf(l.core.View(), candidate)
		l.world.mu.Unlock()
		if cut, _, _ := l.state(); !cut {
			if err := tell(standing); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func standingOf(v *view.View, candidate string) client.Standing {
	s := client.Standing{Sequence: v.Sequence(), Candidate: candidate, Policy: policy.Default()}
	g := v.Group(group)
	if g == nil {
		return s
	}
	s.Policy = g.Policy
	if k := g.Candidates[candidate]; k != nil {
		s.Incarnation, s.Joined, s.Health = k.Incarnation, k.Joined != 0, cmp.Or(k.Rank, "unknown")
	}
	for name, c := range g.Components {
		t := c.Term
		if t == nil || t.Candidate != candidate {
			continue
		}
		term := client.Term{
			Component: name, Epoch: t.Epoch, Session: t.Session, Incarnation: t.Incarnation, Confirmed: t.Confirmed, Released: t.Released,
		}
		if y := t.Yield; y != nil {
			term.Yield = &client.Yield{Sequence: y.Sequence, Reason: y.Reason, To: y.To, Ordered: y.Ordered}
		}
		s.Terms = append(s.Terms, term)
	}
	return s
}

func managed() policy.Policy {
	p := policy.Default()
	p.Election = policy.Managed
	return p
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// elapse lets virtual time pass.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// tell tells what has happened, for whoever looks into a failure.
func (w *world) tell(t *testing.T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.log {
		t.Log(line)
	}
}

// say notes something that happened.
func (w *world) say(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%9.3f "+format, append([]any{time.Since(w.began).Seconds()}, args...)...))
}

func keyOf(name string) alive.Key { return alive.Key{Group: group, Candidate: name} }
