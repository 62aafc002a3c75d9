package zk_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/projector/conformance"
)

func TestConformanceOnAnEnsemble(t *testing.T) {
	ensemble := testenv.ZooKeeperEnsemble(t, 3)
	for name, s := range styles() {
		t.Run(name, func(t *testing.T) {
			conformance.Suite{
				New:     func(tb testing.TB) conformance.Object { return s.newObject(tb, ensemble.Servers()) },
				Visible: s.visible,
			}.Run(t)
		})
	}
}

// siege has pushes go on without pause through all that befalls an ensemble, one stream of them for each layout. A reader
// of each must never see its leader absent, or an older one than before, and what was acknowledged must be shown.
type siege struct {
	*testing.T
	ctx      context.Context
	ensemble *testenv.ZooKeeperNodes
	streams  []*stream
}

// stream is the pushes to one object.
type stream struct {
	object *object
	target projector.Target
	done   atomic.Int64 // pushes that succeeded; each shows the next leader
	failed atomic.Int64
	reads  atomic.Int64
	err    atomic.Value
}

func TestPushesSurviveWhatBefallsAnEnsemble(t *testing.T) {
	s := &siege{T: t, ensemble: testenv.ZooKeeperEnsemble(t, 3)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.ctx = ctx
	ended := make(chan struct{}, 9)
	for _, style := range styles() {
		o := style.newObject(t, s.ensemble.Servers())
		x := &stream{object: o, target: o.Target(t)}
		s.streams = append(s.streams, x)
		for _, run := range []func(*siege){x.push, x.read, x.watch} {
			go func() { run(s); ended <- struct{}{} }()
		}
	}
	s.goOn()
	for name, trouble := range s.troubles() {
		t.Log(name)
		trouble()
		s.goOn()
	}
	cancel()
	for range cap(ended) {
		<-ended
	}
	for _, x := range s.streams {
		require.Nil(t, x.err.Load())
		require.NotZero(t, x.reads.Load())
		require.NotZero(t, x.failed.Load(), "no push was in the middle of anything")
		shown, there := x.object.Read(t).Entries[conformance.First]
		require.True(t, there)
		require.GreaterOrEqual(t, number(&shown), x.done.Load(), "what was acknowledged is lost")
	}
}

func (s *siege) troubles() map[string]func() {
	must := func(err error) { s.Helper(); require.NoError(s, err) }
	leader := func() (node int) {
		require.Eventually(s, func() bool { node = s.ensemble.Leader(s.ctx); return node >= 0 }, patience, tick)
		return node
	}
	restart := func(nodes ...int) {
		for _, i := range nodes {
			must(s.ensemble.Start(i))
		}
		must(s.ensemble.AwaitQuorum(s.ctx))
	}
	return map[string]func(){
		"a node is killed": func() {
			node := (leader() + 1) % 3
			must(s.ensemble.Kill(node))
			s.goOn()
			restart(node)
		},
		"the leader is killed": func() {
			node := leader()
			must(s.ensemble.Kill(node))
			s.goOn()
			restart(node)
		},
		"the leader is frozen": func() {
			node := leader()
			must(s.ensemble.Freeze(node))
			s.goOn()
			must(s.ensemble.Thaw(node))
			must(s.ensemble.AwaitQuorum(s.ctx))
		},
		"the quorum is lost": func() {
			node := leader()
			must(s.ensemble.Kill(node))
			must(s.ensemble.Kill((node + 1) % 3))
			s.fail()
			restart(node, (node+1)%3)
		},
		"the network is cut": func() {
			s.each(func(p *testenv.TCPProxy) { p.Cut() })
			s.fail()
			s.each(func(p *testenv.TCPProxy) { p.Resume() })
		},
		"the sessions expire": func() {
			s.each(func(p *testenv.TCPProxy) { p.Freeze() })
			<-time.After(session + session/2) // by the servers' clocks, which nobody can ask
			s.each(func(p *testenv.TCPProxy) { p.Thaw() })
		},
	}
}

func (s *siege) each(do func(*testenv.TCPProxy)) {
	for _, x := range s.streams {
		for _, p := range x.object.proxies {
			do(p)
		}
	}
}

// goOn waits until every stream has made twenty pushes more.
func (s *siege) goOn() {
	s.Helper()
	s.await(func(x *stream) *atomic.Int64 { return &x.done }, 20)
}

// fail waits until a push of every stream has failed.
func (s *siege) fail() {
	s.Helper()
	s.await(func(x *stream) *atomic.Int64 { return &x.failed }, 1)
}

func (s *siege) await(count func(*stream) *atomic.Int64, more int64) {
	s.Helper()
	var until []int64
	for _, x := range s.streams {
		until = append(until, count(x).Load()+more)
	}
	for i, x := range s.streams {
		require.Eventually(s, func() bool { return x.err.Load() != nil || count(x).Load() >= until[i] }, 2*patience, tick)
		require.Nil(s, x.err.Load())
	}
}

func numbered(n int64) *journal.LeaderInfo {
	return &journal.LeaderInfo{
		Session: fmt.Sprintf("01234567-89ab-4def-8edc-%012d", n), Candidate: "jm-1", Address: fmt.Sprintf("http://jm-1:%d", n),
	}
}

func number(l *journal.LeaderInfo) int64 {
	n, err := strconv.ParseInt(l.Address[strings.LastIndexByte(l.Address, ':')+1:], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// push shows one leader after another, each until it is shown.
func (x *stream) push(s *siege) {
	for n := int64(1); s.ctx.Err() == nil; n++ {
		doc := document(uint64(n), conformance.First, numbered(n))
		for s.ctx.Err() == nil {
			ctx, cancel := context.WithTimeout(s.ctx, session)
			_, err := x.target.Push(ctx, doc)
			cancel()
			if err == nil {
				x.done.Add(1)
				break
			}
			x.failed.Add(1)
			doc.Fresh = true
			if errors.Is(err, projector.ErrPermanent) || errors.Is(err, projector.ErrSuperseded) {
				x.err.CompareAndSwap(nil, err)
				return
			}
			pause(s.ctx)
		}
	}
}

// read sees what readers see, wherever a server answers.
func (x *stream) read(s *siege) {
	last := int64(0)
	for s.ctx.Err() == nil {
		data, _, err := x.object.direct.Get(x.object.entryPath())
		switch {
		case last > 0 && errors.Is(err, gozk.ErrNoNode):
			x.err.CompareAndSwap(nil, fmt.Errorf("nobody was shown after leader %d", last))
			return
		case err != nil:
			pause(s.ctx)
			continue
		}
		l := x.object.decode(s, data, fence{})
		if l == nil || number(l) < last {
			x.err.CompareAndSwap(nil, fmt.Errorf("%v was shown after leader %d", l, last))
			return
		}
		last = number(l)
		x.reads.Add(1)
	}
}

// watch holds that what is observed never goes back.
func (x *stream) watch(s *siege) {
	revision := uint64(0)
	err := x.target.Watch(s.ctx, func(o projector.Observation) error {
		if o.Gap {
			return nil
		}
		if o.Revision < revision {
			return fmt.Errorf("revision %d was observed after %d", o.Revision, revision)
		}
		revision = o.Revision
		return nil
	})
	if s.ctx.Err() == nil {
		x.err.CompareAndSwap(nil, err)
	}
}

// pause keeps a loop from taking the processor while no server answers.
func pause(ctx context.Context) {
	select {
	case <-time.After(tick):
	case <-ctx.Done():
	}
}
