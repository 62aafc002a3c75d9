package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
)

// Every write fails in three ways: it never arrived, or it was stored and the answer was lost, with or without the
// connection. That goes for a lone append, a caller's own batch and a gathered one, and with JetStream's memory of ids gone
// or not. Each event is stored once, and every ack is true.
func TestUnknownOutcome(t *testing.T) {
	for _, fault := range []string{"never arrived", "answer lost", "connection cut"} {
		for shape, callers := range map[string][]int{
			"one": {1}, "batch": {5}, "gathered": {1, 1, 1, 3, 1, 1, 1, 1, 1, 1}, "large": {maxBatch},
		} {
			for _, forgets := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, ids forgotten %t", fault, shape, forgets), func(t *testing.T) {
					t.Parallel()
					testUnknownOutcome(t, fault, callers, forgets)
				})
			}
		}
	}
}

func testUnknownOutcome(t *testing.T, fault string, callers []int, forgets bool) {
	server, _ := testenv.NATS(t)
	proxy := newLossyProxy(t, server.Addr().String(), "leadership.", Name)
	l := open(t, Options{URL: "nats://" + proxy.address(), MaxBytes: 64 << 20})
	ctx := bounded(t, time.Minute)
	_, err := l.Append(ctx, confirm("before"))
	require.NoError(t, err)
	if forgets {
		cfg := l.stream.CachedInfo().Config
		cfg.Duplicates = 100 * time.Millisecond // far shorter than an attempt
		_, err = l.js.UpdateStream(ctx, cfg)
		require.NoError(t, err)
	}

	var batch []*request // as gathered
	for i, n := range callers {
		r, err := newRequest(ctx, confirms(fmt.Sprint(i), n))
		require.NoError(t, err)
		batch = append(batch, r)
	}
	proxy.arm(fault)
	l.send(batch)
	require.True(t, proxy.fired(), "the fault did happen")
	next := uint64(2)
	for _, r := range batch {
		require.NoError(t, r.err)
		for _, a := range r.acks() {
			require.Equal(t, journal.Ack{Sequence: next}, a)
			next++
		}
	}
	acks, err := l.Append(ctx, confirm("after"))
	require.NoError(t, err)
	require.Equal(t, []journal.Ack{{Sequence: next}}, acks)
	require.Len(t, all(t, l), int(next))
}

// lossyProxy stands between a client and a server and spoils the next write, once.
type lossyProxy struct {
	listener net.Listener
	upstream string
	subject  string // whose messages are spoiled
	stream   string // that acknowledges them
	serving  sync.WaitGroup

	mu    sync.Mutex
	fault string
	done  bool
	mute  bool // the answer is still to be swallowed
	conns []net.Conn
}

func newLossyProxy(t *testing.T, upstream, subject, stream string) *lossyProxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &lossyProxy{listener: listener, upstream: upstream, subject: subject, stream: stream}
	p.serving.Go(p.accept)
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		p.closeConns()
		p.serving.Wait()
	})
	return p
}

func (p *lossyProxy) address() string { return p.listener.Addr().String() }

func (p *lossyProxy) arm(fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.done, p.mute = fault, false, false
}

func (p *lossyProxy) fired() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

func (p *lossyProxy) closeConns() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close() // closed before, perhaps
	}
	p.conns = nil
}

func (p *lossyProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.upstream)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.serving.Go(func() { p.copy(server, client, p.request) })
		p.serving.Go(func() { p.copy(client, server, p.answer) })
	}
}

func (p *lossyProxy) copy(to, from net.Conn, spoil func([]byte) []byte) {
	buffer := make([]byte, 1<<20)
	for {
		n, err := from.Read(buffer)
		if err == nil {
			_, err = to.Write(spoil(buffer[:n]))
		}
		if err != nil {
			_ = from.Close()
			_ = to.Close()
			return
		}
	}
}

// request spoils what holds a write on its way to the server.
func (p *lossyProxy) request(data []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || p.fault == "" || !strings.Contains(string(data), "HPUB "+p.subject) {
		return data
	}
	p.done = true
	if p.fault == "never arrived" {
		for _, c := range p.conns {
			_ = c.Close()
		}
		return nil
	}
	p.mute = true
	return data
}

// answer spoils the acknowledgement.
func (p *lossyProxy) answer(data []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mute || !strings.Contains(string(data), `"stream":"`+p.stream+`"`) {
		return data
	}
	p.mute = false
	if p.fault == "connection cut" {
		for _, c := range p.conns {
			_ = c.Close()
		}
	}
	return nil
}

// What the server says of a retry is no proof: an answer that names a record of somebody else is not believed.
func TestFalseAnswerIsNotBelieved(t *testing.T) {
	l := open(t, embedded(t.TempDir()))
	ctx := bounded(t, time.Minute)
	_, err := l.Append(ctx, confirm("other"), confirm("mine"))
	require.NoError(t, err)
	r, err := newRequest(ctx, []journal.Event{confirm("mine")})
	require.NoError(t, err)
	r.unknown = true
	r.items[0].ack = journal.Ack{Sequence: 1, Duplicate: true}
	require.ErrorContains(t, l.confirm([]*request{r}), "record 1 was acknowledged for candidate/jm-1|mine, and is candidate/jm-1|other")
	require.Zero(t, r.items[0].ack)
	r.items[0].ack = journal.Ack{Sequence: 2}
	require.NoError(t, l.confirm([]*request{r}))
	require.Equal(t, []journal.Ack{{Sequence: 2}}, r.acks())
}

// While the server is away appends wait, as long as their context lets them, and go through when it is back.
func TestServerAway(t *testing.T) {
	server, _ := testenv.NATS(t)
	proxy := testenv.NewTCPProxy(t, server.Addr().String())
	l := open(t, Options{URL: "nats://" + proxy.Addr(), MaxBytes: 64 << 20})
	_, err := l.Append(bounded(t, 10*time.Second), confirm("a"))
	require.NoError(t, err)
	proxy.Cut()
	_, err = l.Append(bounded(t, 300*time.Millisecond), confirm("b"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	appended := make(chan error, 1)
	go func() {
		_, err := l.Append(bounded(t, 30*time.Second), confirm("c"))
		appended <- err
	}()
	_, err = l.Last(bounded(t, 300*time.Millisecond))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	proxy.Resume()
	require.NoError(t, <-appended)
	require.NoError(t, func() error { _, err := l.Last(bounded(t, 10*time.Second)); return err }())
}

// The leader of three is shut down again and again while many append: nothing acknowledged is missing, nothing is
// stored twice, and a follower sees it all in order.
func TestLeaderShutDownWhileAppending(t *testing.T) {
	nodes := testenv.NATSCluster(t, 3)
	l := open(t, Options{URL: nodes.URL(), MaxBytes: 64 << 20, Replicas: 3})
	ctx := bounded(t, 2*time.Minute)

	var mu sync.Mutex
	acked := map[string][]journal.Ack{}
	stop := make(chan struct{})
	errs := make(chan error, 16)
	var callers sync.WaitGroup
	for c := range 16 {
		callers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				events := confirms(fmt.Sprintf("%d-%d", c, i), 1+i%3)
				acks, err := l.Append(ctx, events...)
				if err != nil {
					errs <- err
					return
				}
				mu.Lock()
				for j, a := range acks {
					acked[events[j].ID] = append(acked[events[j].ID], a)
				}
				mu.Unlock()
			}
		})
	}
	for range 3 {
		leader := leaderOf(ctx, t, l)
		before, err := l.Last(ctx)
		require.NoError(t, err)
		nodes.StopNode(leader)
		awaitLast(ctx, t, l, before+100)
		nodes.StartNode(leader)
	}
	close(stop)
	callers.Wait()
	require.Empty(t, errs)
	requireTrue(t, l, acked)
	last, err := l.Last(ctx)
	require.NoError(t, err)
	follow(t, l, 1, int(last))
}

func leaderOf(ctx context.Context, t *testing.T, l *Log) string {
	t.Helper()
	info, err := l.Info(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, info.Leader)
	return info.Leader
}

// awaitLast returns when the journal has grown to a sequence.
func awaitLast(ctx context.Context, t *testing.T, l *Log, sequence uint64) {
	t.Helper()
	for {
		last, err := l.Last(ctx)
		require.NoError(t, err)
		if last >= sequence {
			return
		}
	}
}

func TestJudge(t *testing.T) {
	api := func(code jetstream.ErrorCode, text string) error {
		return fmt.Errorf("publish: %w", &jetstream.APIError{ErrorCode: code, Description: text})
	}
	for _, c := range []struct {
		err  error
		want outcome
	}{
		{nil, stored},
		{api(codeDuplicate, ""), duplicate},
		{api(codeStoreFailed, "maximum bytes exceeded"), full},
		{api(codeStoreFailed, "disk on fire"), unknown},
		{api(codeServerFull, ""), full},
		{api(codeIncomplete, ""), later},
		{api(codeIDInProcess, ""), later},
		{api(jetstream.JSErrCodeStreamMessageExceedsMaximum, ""), refused},
		{nats.ErrBadSubject, refused},
		{nats.ErrTimeout, unknown},
		{nats.ErrNoResponders, unknown},
		{jetstream.ErrNoStreamResponse, unknown},
		{context.DeadlineExceeded, unknown},
		{&json.SyntaxError{}, unknown},
	} {
		require.Equal(t, c.want, judge(c.err), "%v", c.err)
	}
}

func TestRecentForgets(t *testing.T) {
	now := time.Unix(0, 0)
	r := newRecent()
	r.now = func() time.Time { return now }
	for i := range 10 {
		r.add(fmt.Sprint(i), uint64(i))
		r.add(fmt.Sprint(i), 99) // known: keeps its sequence
		now = now.Add(time.Second)
	}
	now = now.Add(window - 5*time.Second)
	r.forget()
	for i := range 10 {
		sequence, ok := r.find(fmt.Sprint(i))
		require.Equal(t, i >= 5, ok, i)
		require.True(t, !ok || sequence == uint64(i))
	}
	for i := range 3 * maxRecent {
		r.add(fmt.Sprint("x", i), 1)
	}
	require.Len(t, r.sequences, maxRecent)
	require.LessOrEqual(t, len(r.order), 2*maxRecent)
	_, ok := r.find(fmt.Sprint("x", 3*maxRecent-1))
	require.True(t, ok)
	now = now.Add(2 * window)
	r.forget()
	require.Empty(t, r.sequences)
}
