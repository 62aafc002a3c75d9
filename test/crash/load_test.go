package crash_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/internal/testenv/journald"
	"github.com/leadership-journal/journald/journal"
)

// load is services that publish all the time, one for each component, each of them one request after the other. What
// is not answered is sent again with the same ids until it is.
type load struct {
	t          *testing.T
	client     *client
	seats      *seats
	publishers []*publisher

	mu      sync.Mutex
	acked   map[string]uint64 // sequences of what was acknowledged, by message id
	lost    int               // answers that did not come
	refused map[int]int       // answers that were not 201, by status
	hashes  map[uint64]string // of views that instances said they had, by sequence
	failed  error

	stop   chan struct{} // closed: what is under way is finished, and no more begins
	ending sync.Once
	ended  sync.WaitGroup
}

// publisher is the service that leads one component. It alone speaks of it, so it knows what must be shown.
type publisher struct {
	group, component string
	steady           bool // it never withdraws
	rng              *rand.Rand

	events    int    // sent so far
	session   string // of the open term
	confirmed bool   // in this term
	attempt   uint64
	number    int                 // of the newest address
	shown     *journal.LeaderInfo // what targets must show
	changed   uint64              // sequence of what said so
}

// groups and their components: every second component never withdraws.
func newLoad(t *testing.T, s *seats, seed uint64, components int, groups ...string) *load {
	t.Helper()
	l := &load{
		t: t, client: newClient(), seats: s, acked: map[string]uint64{}, refused: map[int]int{}, hashes: map[uint64]string{},
		stop: make(chan struct{}),
	}
	for _, group := range groups {
		for n := range components {
			l.publishers = append(l.publishers, &publisher{
				group: group, component: fmt.Sprintf("c-%d", n), steady: n%2 == 0,
				rng: rand.New(rand.NewPCG(seed, uint64(len(l.publishers)))),
			})
		}
	}
	t.Cleanup(func() { l.finish() })
	return l
}

// begin has everybody publish until finish.
func (l *load) begin() {
	ctx := l.t.Context()
	for _, p := range l.publishers {
		l.ended.Go(func() {
			if err := l.run(ctx, p); err != nil {
				l.fail(fmt.Errorf("%s/%s: %w", p.group, p.component, err))
			}
		})
	}
}

// finish returns when all that was begun is acknowledged.
func (l *load) finish() {
	l.ending.Do(func() { close(l.stop) })
	l.ended.Wait()
}

// settle finishes, and fails the test where a service was refused.
func (l *load) settle() {
	l.t.Helper()
	l.finish()
	require.NoError(l.t, l.failed)
}

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = errors.Join(l.failed, err)
}

// counts are the events that were acknowledged so far, the answers that were lost, and those that were refusals.
func (l *load) counts() (acked, lost int, refused map[int]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked), l.lost, maps.Clone(l.refused)
}

// total is how much was acknowledged so far.
func (l *load) total() int {
	acked, _, _ := l.counts()
	return acked
}

// more waits until so many more events are acknowledged.
func (l *load) more(n int) {
	l.t.Helper()
	want := l.total() + n
	await(l.t, patient, "events are acknowledged", func() bool { return l.total() >= want })
}

func (l *load) run(ctx context.Context, p *publisher) error {
	for {
		select {
		case <-l.stop:
			return nil
		default:
		}
		events := p.next()
		acks, err := l.send(ctx, events)
		if err != nil {
			return err
		}
		for i := range events {
			p.learn(&events[i], acks[i].Sequence)
		}
	}
}

// send repeats a request until it is acknowledged.
func (l *load) send(ctx context.Context, events []journal.Event) ([]api.Ack, error) {
	var last *journald.Process
	for {
		i, err := l.seats.pick(ctx, last)
		if err != nil {
			return nil, err
		}
		acks, err := l.sendOnce(ctx, i, events)
		if err == nil {
			return acks, l.note(events, acks)
		}
		if ctx.Err() != nil || journald.Final(err) {
			return nil, err
		}
		l.lose(err)
		last = i
		select {
		case <-i.Ended():
		case <-time.After(20 * time.Millisecond): // an answer was lost, or somebody is busy, and the instance goes on
		case <-ctx.Done():
		}
	}
}

// sendOnce sends once, and now and then asks how the view of the same instance stands.
func (l *load) sendOnce(ctx context.Context, i *journald.Process, events []journal.Event) ([]api.Ack, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	acks, err := l.client.Publish(ctx, i.URL(), "", events...)
	if err == nil && acks[0].Sequence%50 == 0 {
		l.ask(ctx, i)
	}
	return acks, err
}

// ask notes the hash of an instance's view. No answer is none.
func (l *load) ask(ctx context.Context, i *journald.Process) {
	s, err := l.client.standing(ctx, i)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, ok := l.hashes[s.sequence]; ok && other != s.hash {
		l.failed = errors.Join(l.failed, fmt.Errorf("two views at %d: %s and %s", s.sequence, other, s.hash))
	}
	l.hashes[s.sequence] = s.hash
}

func (l *load) lose(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, ok := errors.AsType[*journald.Refusal](err); ok {
		l.refused[r.Status]++
		return
	}
	l.lost++
}

// note keeps what was acknowledged. Events of one request lie next to each other.
func (l *load) note(events []journal.Event, acks []api.Ack) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range events {
		if acks[i].ID != events[i].ID || acks[i].Sequence != acks[0].Sequence+uint64(i) {
			return fmt.Errorf("event %d of %d, %s, is acknowledged as %+v after %d", i, len(events), events[i].ID, acks[i], acks[0].Sequence)
		}
		l.acked[events[i].MessageID()] = acks[i].Sequence
	}
	return nil
}

// next is what happens next to the service: it wins, confirms, moves, loses, withdraws, or wins anew.
func (p *publisher) next() []journal.Event {
	switch chance := p.rng.IntN(100); {
	case p.session == "":
		grant := p.grant()
		if chance < 30 {
			return []journal.Event{grant, p.confirm(grant.Data.(*journal.Grant).Session)}
		}
		return []journal.Event{grant}
	case !p.confirmed || chance < 60:
		return []journal.Event{p.confirm(p.session)}
	case chance < 75:
		return []journal.Event{p.event(&journal.Revoke{Session: p.session, Reason: "lost"})}
	case chance < 90 && !p.steady && p.shown != nil:
		return []journal.Event{p.event(&journal.Withdraw{Session: p.session, Reason: "maintenance"})}
	}
	return []journal.Event{p.grant()}
}

func (p *publisher) grant() journal.Event {
	p.attempt = 0
	var id [16]byte
	for i := range id {
		id[i] = byte(p.rng.Uint32())
	}
	return p.event(&journal.Grant{Candidate: p.candidate(), Session: uuid.UUID(id).String()})
}

func (p *publisher) confirm(session string) journal.Event {
	p.attempt++
	p.number++
	return p.event(&journal.Confirm{
		Session: session, Candidate: p.candidate(), Address: fmt.Sprintf("http://%s:8081/%d", p.candidate(), p.number), Attempt: p.attempt,
	})
}

func (p *publisher) candidate() string { return p.group + "-" + p.component }

func (p *publisher) event(data journal.Data) journal.Event {
	p.events++
	return journal.Event{
		ID: fmt.Sprintf("%s-%d", data.Kind(), p.events), Source: "candidate/" + p.candidate(),
		Group: p.group, Component: p.component, Time: time.Now().UTC(), Data: data,
	}
}

// learn is what the service knows once an event is acknowledged.
func (p *publisher) learn(e *journal.Event, sequence uint64) {
	switch d := e.Data.(type) {
	case *journal.Grant:
		p.session, p.confirmed = d.Session, false
	case *journal.Confirm:
		p.shown = &journal.LeaderInfo{Session: d.Session, Candidate: d.Candidate, Address: d.Address}
		p.changed, p.confirmed = sequence, true
	case *journal.Revoke:
		p.session, p.confirmed = "", false
	case *journal.Withdraw:
		p.shown, p.changed = nil, sequence
	}
}

// fence is the sequence that an object must have that shows all components of a group.
func (l *load) fence(group string) (highest uint64) {
	for _, p := range l.publishers {
		if p.group == group {
			highest = max(highest, p.changed)
		}
	}
	return highest
}

// must is what a group's targets must show once the load is settled, by component.
func (l *load) must(group string) map[string]journal.LeaderInfo {
	all := map[string]journal.LeaderInfo{}
	for _, p := range l.publishers {
		if p.group == group && p.shown != nil {
			all[p.component] = *p.shown
		}
	}
	return all
}
