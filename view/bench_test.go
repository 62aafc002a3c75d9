package view_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// load makes records of a group with many components, one target and two candidates, as if they had been decoded: no
// two of them share a string.
type load struct {
	sequence uint64
	at       time.Time
	records  []journal.Record
}

func newLoad(targets []journal.Target) *load {
	l := &load{at: epoch}
	l.add("", &journal.Takeover{Instance: "journald-0"})
	l.add("", &journal.Policy{Policy: rules(), Targets: &targets, Order: order()})
	return l
}

func (l *load) add(component string, data journal.Data) uint64 {
	l.sequence++
	l.at = l.at.Add(time.Millisecond)
	e := journal.Event{
		ID: fmt.Sprintf("id-%d", l.sequence), Source: "candidate/load", Group: "g", Component: component, Time: l.at, Data: data,
	}
	switch data.(type) {
	case *journal.Takeover:
		e.Source, e.Group = "projector/journald-0", "_"
	case *journal.Policy:
		e.Source = "operator/alice"
	}
	l.records = append(l.records, journal.Record{Sequence: l.sequence, Time: l.at, Event: e})
	return l.sequence
}

// session is a UUID-sized name.
func (l *load) session(component, n int) string {
	return fmt.Sprintf("%08d-0000-4000-8000-%012d", component, n)
}

func (l *load) component(i int) string { return fmt.Sprintf("job-%028d", i) }

func (l *load) candidate(i int) string { return fmt.Sprintf("jobmanager-%d", i%2) }

func (l *load) grant(i, n int) {
	l.add(l.component(i), &journal.Grant{Candidate: l.candidate(n), Session: l.session(i, n)})
}

func (l *load) confirm(i, n int, attempt uint64) uint64 {
	return l.add(l.component(i), &journal.Confirm{
		Session: l.session(i, n), Candidate: l.candidate(n), Attempt: attempt, Address: fmt.Sprintf("http://10.0.%d.%d:%d", n, i%250, 8081+i),
	})
}

func (l *load) revoke(i, n int) {
	l.add(l.component(i), &journal.Revoke{Session: l.session(i, n), Reason: "lost"})
}

func (l *load) push(i int, intent uint64) {
	l.add(l.component(i), &journal.Push{
		Target: "cm", Intent: intent, Attempt: 1, Outcome: journal.OK, Revision: intent, Decision: journal.Decision{Projector: 1},
	})
}

func (l *load) health(n int, run uint64) {
	l.add("", &journal.Health{
		Candidate: l.candidate(n), Incarnation: "1", Check: "disk", Status: "pass", Run: run,
	})
}

// join has both candidates lead as many of the components as one event can name.
func (l *load) join(components int) {
	names := make([]string, min(components, 1024))
	for i := range names {
		names[i] = l.component(i)
	}
	for n := range 2 {
		l.add("", &journal.Join{Candidate: l.candidate(n), Incarnation: "1", Components: names})
	}
}

const benchComponents = 10_000

// mix is what a busy group does: for each health report a term of every component is opened, confirmed, published and
// closed.
func mix() []journal.Record {
	l := newLoad([]journal.Target{{Name: "cm", Kind: "k8s/configmap"}})
	l.join(benchComponents)
	for i := range benchComponents {
		l.grant(i, 0)
		intent := l.confirm(i, 0, 1)
		l.push(i, intent)
	}
	for round := 1; round < 5; round++ {
		l.health(round, uint64(round))
		for i := range benchComponents {
			l.revoke(i, round-1)
			l.grant(i, round)
			l.push(i, l.confirm(i, round, 1))
			l.confirm(i, round, 2)
		}
	}
	return l.records
}

// BenchmarkFold holds what the fold has to: a million decoded records a second.
func BenchmarkFold(b *testing.B) {
	records := mix()
	b.ReportAllocs()
	for b.Loop() {
		v := view.New()
		for i := range records {
			v.Apply(&records[i])
		}
	}
	report(b, len(records))
}

// BenchmarkFoldAndDecide has every hundred records followed by a look at what is to be decided.
func BenchmarkFoldAndDecide(b *testing.B) {
	records := mix()
	b.ReportAllocs()
	for b.Loop() {
		v, decided := view.New(), 0
		for i := range records {
			v.Apply(&records[i])
			if i%100 == 0 {
				decided += len(v.Decide(v.Time(), view.Liveness{}, never))
			}
		}
		require.Zero(b, decided)
	}
	report(b, len(records))
}

// BenchmarkDecideNothing is what a poll costs when nothing has changed.
func BenchmarkDecideNothing(b *testing.B) {
	v := view.New()
	records := mix()
	for i := range records {
		v.Apply(&records[i])
	}
	require.Empty(b, v.Decide(v.Time(), view.Liveness{}, never))
	b.ReportAllocs()
	for b.Loop() {
		v.Decide(v.Time(), view.Liveness{}, never)
	}
}

func never(string) bool { return false }

func report(b *testing.B, records int) {
	b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(0, "ns/op")
}

// TestMemoryOfAComponent holds what a component may cost: a kilobyte of heap with one session that has ended and a term
// that is confirmed, and half as much again for each target that shows it.
func TestMemoryOfAComponent(t *testing.T) {
	for name, c := range map[string]struct {
		targets []journal.Target
		most    uint64
	}{
		"no target":  {[]journal.Target{}, 1024},
		"one target": {[]journal.Target{{Name: "cm", Kind: "k8s/configmap"}}, 1536},
	} {
		t.Run(name, func(t *testing.T) {
			each := bytesOfAComponent(t, c.targets)
			t.Logf("%d bytes for each component", each)
			require.Less(t, each, c.most)
		})
	}
}

func bytesOfAComponent(t *testing.T, targets []journal.Target) uint64 {
	const components = 100_000
	v, l := view.New(), newLoad(targets)
	apply := func() {
		for i := range l.records {
			v.Apply(&l.records[i])
		}
		clear(l.records)
		l.records = l.records[:0]
	}
	apply()
	before := heap()
	for i := range components {
		l.grant(i, 0)
		l.push(i, l.confirm(i, 0, 1))
		l.revoke(i, 0)
		l.grant(i, 1)
		l.push(i, l.confirm(i, 1, 1))
		apply()
	}
	require.Empty(t, v.Decide(v.Time(), view.Liveness{}, never))
	after := heap()
	require.Len(t, v.Group("g").Components, components)
	require.Equal(t, "confirmed", v.Group("g").Components[l.component(0)].Phase())
	return (after - before) / components
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
