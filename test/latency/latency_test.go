// Package latency measures how long a confirmation takes from being sent to being seen by a watcher of the ConfigMap,
// against the bare steps that nobody can do without: publish, deliver, update.
package latency

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	v1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/adapters/k8s"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/journal/stream"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
)

const (
	session = "01234567-89ab-4def-8edc-ba9876543210"
	key     = "org.apache.flink.k8s.leader.rest"
	limit   = 30 * time.Second
)

var kube testenv.SharedKubernetes

func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }

// place is a ConfigMap, and what a watcher of it sees.
type place struct {
	maps      v1.ConfigMapInterface
	namespace string
	name      string
	seen      chan string
}

func newPlace(b *testing.B, config *rest.Config, namespace, name string) *place {
	b.Helper()
	client, err := v1.NewForConfig(config)
	require.NoError(b, err)
	p := &place{maps: client.ConfigMaps(namespace), namespace: namespace, name: name, seen: make(chan string, 1024)}
	w, err := p.maps.Watch(b.Context(), metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	require.NoError(b, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if cm, ok := e.Object.(*corev1.ConfigMap); ok {
				p.seen <- cm.Data[key]
			}
		}
	}()
	b.Cleanup(func() { w.Stop(); <-done })
	return p
}

// await waits until the watcher sees a value.
func (p *place) await(b *testing.B, value string) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case v := <-p.seen:
			if v == value {
				return
			}
		case <-timer.C:
			require.Fail(b, "never seen", value)
		}
	}
}

func value(n int) string { return session + "," + address(n) }

func address(n int) string { return "http://10.0.0.1:" + strconv.Itoa(n) }

func openLog(b *testing.B) *stream.Log {
	b.Helper()
	l, err := stream.Open(b.Context(), stream.Options{
		Embedded: &stream.Embedded{Dir: b.TempDir(), MaxStore: 1 << 30}, Instance: "bench",
	})
	require.NoError(b, err)
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.Context()), limit)
		defer cancel()
		require.NoError(b, l.Close(ctx))
	})
	return l
}

func event(data journal.Data) journal.Event {
	id, err := uuid.NewV7()
	if err != nil {
		panic(err)
	}
	return journal.Event{ID: id.String(), Source: "candidate/jm-1", Group: "g", Component: "rest", Time: time.Now().UTC(), Data: data}
}

func confirm(n int) journal.Event {
	return event(&journal.Confirm{Session: session, Candidate: "jm-1", Address: address(n), Attempt: uint64(n) + 1})
}

// bare publishes, has the record delivered, and updates the ConfigMap on condition of the version that it made last.
type bare struct {
	*place
	log       *stream.Log
	delivered chan struct{}
	cm        *corev1.ConfigMap
}

func newBare(b *testing.B, p *place) *bare {
	b.Helper()
	x := &bare{place: p, log: openLog(b), delivered: make(chan struct{}, 1024)}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = x.log.Follow(ctx, 1, func(records []journal.Record) error { // ends with ctx
			for range records {
				x.delivered <- struct{}{}
			}
			return nil
		})
	}()
	b.Cleanup(func() { cancel(); <-done })
	var err error
	x.cm, err = p.maps.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: p.name}}, metav1.CreateOptions{})
	require.NoError(b, err)
	return x
}

func (x *bare) once(b *testing.B, n int) {
	_, err := x.log.Append(b.Context(), confirm(n))
	require.NoError(b, err)
	<-x.delivered
	x.cm.Data = map[string]string{key: value(n)}
	updated := make(chan error, 1)
	go func() {
		cm, err := x.maps.Update(b.Context(), x.cm, metav1.UpdateOptions{})
		if err == nil {
			x.cm = cm
		}
		updated <- err
	}()
	x.await(b, value(n))
	require.NoError(b, <-updated)
}

// ours has journald do it.
type ours struct {
	*place
	log *stream.Log
}

func newOurs(b *testing.B, config *rest.Config, p *place) *ours {
	b.Helper()
	x := &ours{place: p, log: openLog(b)}
	logger := slog.New(slog.DiscardHandler)
	client, err := k8s.NewClient(config, k8s.Options{Now: time.Now, Logger: logger})
	require.NoError(b, err)
	target := journal.Target{Name: "cm", Kind: k8s.ConfigMap, Layout: k8s.Flink, Namespace: p.namespace, Object: p.name}
	run, err := projector.New(projector.Config{
		Instance: "bench", Log: x.log, Lease: x.log.NewLease(2 * time.Second), Connect: client.Connect, Logger: logger,
		Settings: projector.Settings{Defaults: policy.Default(), Groups: map[string]projector.Group{
			"g": {Policy: policy.Default(), Targets: []journal.Target{target}},
		}},
	})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- run.Run(ctx) }()
	b.Cleanup(func() { cancel(); require.NoError(b, <-done) })
	_, err = x.log.Append(b.Context(), event(&journal.Grant{Candidate: "jm-1", Session: session}))
	require.NoError(b, err)
	return x
}

func (x *ours) once(b *testing.B, n int) {
	_, err := x.log.Append(b.Context(), confirm(n))
	require.NoError(b, err)
	x.await(b, value(n))
}

// BenchmarkPublishLag measures both ways in turn, so that both meet the same machine. x-of-bare is the ratio of the
// medians; the project holds it at 1.3 or less.
func BenchmarkPublishLag(b *testing.B) {
	config := kube.Config(b)
	namespace := testenv.Namespace(b, config)
	baseline := newBare(b, newPlace(b, config, namespace, "bare"))
	journald := newOurs(b, config, newPlace(b, config, namespace, "ours"))
	for n := range 20 { // connections, caches
		baseline.once(b, n)
		journald.once(b, n)
	}
	var bareTimes, ourTimes []time.Duration
	n := 20
	for b.Loop() {
		bareTimes = append(bareTimes, timed(func() { baseline.once(b, n) }))
		ourTimes = append(ourTimes, timed(func() { journald.once(b, n) }))
		n++
	}
	bareP50, oursP50 := percentile(bareTimes, 0.5), percentile(ourTimes, 0.5)
	b.ReportMetric(float64(bareP50.Microseconds()), "bare-p50-us")
	b.ReportMetric(float64(oursP50.Microseconds()), "ours-p50-us")
	b.ReportMetric(float64(percentile(ourTimes, 0.99).Microseconds()), "ours-p99-us")
	b.ReportMetric(float64(oursP50)/float64(bareP50), "x-of-bare")
}

func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

func percentile(all []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(p*float64(len(sorted)-1))]
}

// TestPublishedValue holds what the benchmark waits for against what the adapter writes.
func TestPublishedValue(t *testing.T) {
	require.Equal(t, fmt.Sprintf("%s,http://10.0.0.1:7", session), value(7))
}
