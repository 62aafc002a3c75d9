// Package heartbeats_test measures what heartbeats cost a journald that is a process of its own.
package heartbeats_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/internal/testenv/journald"
	"github.com/leadership-journal/journald/policy"
)

const (
	candidates  = 10_000
	components  = 100
	every       = 5 * time.Second
	warm        = 2 * every // until everybody has a key, and is known
	measured    = 4 * every
	connections = 500 // over NATS, each of which some candidates share; over HTTP each has its own
)

var bin journald.Program

func TestMain(m *testing.M) { os.Exit(bin.Run(m)) }

const configuration = `
groups:
  - name: g
    policy: {election: managed, lease: {duration: 15s, renewEvery: 5s, releaseWithin: 15s}}
`

// BenchmarkHeartbeats has 10,000 candidates of a managed group renew their liveness keys every 5 s, for 20 s, and reports
// which part of a core journald needs for it, its NATS server included. They leave no record. It takes the same time whatever b.N is.
func BenchmarkHeartbeats(b *testing.B) {
	b.Run("http", func(b *testing.B) { measure(b, overHTTP) })
	b.Run("nats", func(b *testing.B) { measure(b, overNATS) })
}

// renew writes a candidate's key, and returns the new revision.
type renew func(ctx context.Context, revision uint64) (uint64, error)

func measure(b *testing.B, connect func(*testing.B, *journald.Process) func(i int) renew) {
	dir := b.TempDir()
	file := filepath.Join(dir, "journald.yaml")
	require.NoError(b, os.WriteFile(file, []byte(configuration), 0o600))
	p := bin.Start(b, "--config", file, "--data", filepath.Join(dir, "data"), "--nats-listen", "127.0.0.1:0")
	join(b, p)
	renewals := connect(b, p)
	var all lives
	ctx, cancel := context.WithCancel(b.Context())
	began := time.Now()
	for i := range candidates {
		all.ended.Go(func() { all.live(ctx, began.Add(every*time.Duration(i)/candidates), renewals(i)) })
	}
	await(ctx, began.Add(warm))
	all.took()
	records, cpu, start := last(b, p), p.CPU(), time.Now()
	await(ctx, began.Add(warm+measured))
	took, share := all.took(), (p.CPU()-cpu).Seconds()/time.Since(start).Seconds()
	require.Equal(b, records, last(b, p), "heartbeats leave no records")
	cancel()
	all.ended.Wait()
	require.NoError(b, errors.Join(all.errs...))
	require.InDelta(b, candidates*int(measured/every), len(took), candidates/10, "renewals")
	slices.Sort(took)
	b.ReportMetric(share, "cores")
	b.ReportMetric(float64(len(took))/measured.Seconds(), "renewals/s")
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
	b.ReportMetric(float64(p.Resident()>>20), "MiB")
}

// join has everybody join, a hundred for each component, and waits until each component has a leader.
func join(b *testing.B, p *journald.Process) {
	b.Helper()
	client := journald.NewClient()
	for first := 0; first < candidates; first += 1000 {
		var events []string
		for i := range 1000 {
			events = append(events, fmt.Sprintf(`{"kind":"join","group":"g","candidate":"k%d","incarnation":"1","components":["c%d"]}`,
				first+i, i%components))
		}
		_, err := client.Do(b.Context(), http.MethodPost, p.URL()+"/v1/events?wait=applied", []byte("["+strings.Join(events, ",")+"]"))
		require.NoError(b, err)
	}
	for i := range components {
		for leader(b, client, p, i) == "" {
			await(b.Context(), time.Now().Add(50*time.Millisecond))
		}
	}
}

func leader(b *testing.B, client *journald.Client, p *journald.Process, component int) string {
	text, err := client.Do(b.Context(), http.MethodGet, fmt.Sprintf("%s/v1/groups/g/components/c%d", p.URL(), component), nil)
	require.NoError(b, err)
	var c api.Component
	require.NoError(b, json.Unmarshal(text, &c))
	if c.Term == nil {
		return ""
	}
	return c.Term.Candidate
}

// last is the newest record's sequence.
func last(b *testing.B, p *journald.Process) uint64 {
	b.Helper()
	text, err := journald.NewClient().Do(b.Context(), http.MethodGet, p.URL()+"/v1/groups/g", nil)
	require.NoError(b, err)
	var g api.Group
	require.NoError(b, json.Unmarshal(text, &g))
	return g.Sequence
}

func await(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lives are the candidates, and what their renewals took.
type lives struct {
	ended sync.WaitGroup

	mu   sync.Mutex
	each []time.Duration
	errs []error
}

// live renews a key from then on, until ctx ends.
func (l *lives) live(ctx context.Context, at time.Time, renew renew) {
	revision := uint64(0)
	for ; await(ctx, at); at = at.Add(every) {
		sent := time.Now()
		newer, err := renew(ctx, revision)
		if ctx.Err() != nil {
			return
		}
		l.mu.Lock()
		l.each = append(l.each, time.Since(sent))
		l.mu.Unlock()
		if err != nil {
			l.mu.Lock()
			l.errs = append(l.errs, err)
			l.mu.Unlock()
			return
		}
		revision = newer
	}
}

// took is what renewals took since it was called last.
func (l *lives) took() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.each
	l.each = nil
	return taken
}

// overHTTP gives every candidate a connection, which is kept.
func overHTTP(b *testing.B, p *journald.Process) func(int) renew {
	where := strings.TrimPrefix(p.URL(), "http://")
	return func(i int) renew {
		var conn net.Conn
		var in *bufio.Reader
		b.Cleanup(func() {
			if conn != nil {
				require.NoError(b, conn.Close())
			}
		})
		return func(ctx context.Context, revision uint64) (uint64, error) {
			if conn == nil {
				var err error
				if conn, err = new(net.Dialer).DialContext(ctx, "tcp", where); err != nil {
					return 0, err
				}
				in = bufio.NewReaderSize(conn, 1024)
			}
			var out bytes.Buffer
			body := fmt.Sprintf(`{"incarnation":"1","revision":%d,"lease":"15s","run":7}`, revision)
			fmt.Fprintf(&out, "PUT /v1/groups/g/candidates/k%d/alive HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				i, where, len(body), body)
			if _, err := conn.Write(out.Bytes()); err != nil {
				return 0, err
			}
			return answered(in)
		}
	}
}

// answered reads the new revision.
func answered(in *bufio.Reader) (uint64, error) {
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return 0, errors.Join(fmt.Errorf("status %d: %s", response.StatusCode, text), err)
	}
	var r api.Renewed
	err = json.Unmarshal(text, &r)
	return r.Revision, err
}

// overNATS gives every candidate a bucket, on a connection that it shares.
func overNATS(b *testing.B, p *journald.Process) func(int) renew {
	var buckets []*alive.Bucket
	for range connections {
		conn, err := nats.Connect(p.NATS(), nats.Timeout(20*time.Second))
		require.NoError(b, err)
		b.Cleanup(conn.Close)
		js, err := jetstream.New(conn)
		require.NoError(b, err)
		bucket, err := alive.Open(b.Context(), js, alive.Options{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(b, err)
		buckets = append(buckets, bucket)
	}
	return func(i int) renew {
		key := alive.Key{Group: "g", Candidate: fmt.Sprint("k", i)}
		beat := alive.Heartbeat{Incarnation: "1", Lease: policy.Duration(15 * time.Second), Run: 7}
		return func(ctx context.Context, revision uint64) (uint64, error) {
			return buckets[i%connections].Renew(ctx, key, beat, revision)
		}
	}
}
