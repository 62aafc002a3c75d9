package k8s_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/leadership-journal/journald/adapters/k8s"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// BenchmarkPush compares with a bare conditional update by the full clientset.
func BenchmarkPush(b *testing.B) {
	config := kube.Config(b)
	b.Run("target", func(b *testing.B) {
		namespace := testenv.Namespace(b, config)
		target := connect(b, config, journal.Target{Name: "cm", Kind: k8s.ConfigMap, Layout: k8s.Flink, Namespace: namespace, Object: "target"})
		for n := uint64(1); b.Loop(); n++ {
			_, err := target.Push(b.Context(), oneLeader(n, int(n)))
			require.NoError(b, err)
		}
	})
	b.Run("bare", func(b *testing.B) {
		c, err := kubernetes.NewForConfig(config)
		require.NoError(b, err)
		maps := c.CoreV1().ConfigMaps(testenv.Namespace(b, config))
		cm, err := maps.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}, metav1.CreateOptions{})
		require.NoError(b, err)
		for n := 0; b.Loop(); n++ {
			cm.Data = map[string]string{flinkPrefix + "restserver": fmt.Sprintf("%s,http://jm-%d:8081", session1, n)}
			cm, err = maps.Update(b.Context(), cm, metav1.UpdateOptions{})
			require.NoError(b, err)
		}
	})
}

// The load of BenchmarkObserve: what a cluster of a thousand Flink sessions writes.
const (
	observed     = 1000
	renewedEvery = 2 * time.Second
	renewRounds  = 10
)

// BenchmarkObserve says what it costs to watch 1,000 guarded objects whose locks are renewed every 2 s, by a process
// of its own. Nobody else's leadership changes, so nothing may be reported. It compares with client-go's informer of
// the whole namespace, which decodes every object and judges none.
func BenchmarkObserve(b *testing.B) {
	config := kube.Config(b)
	namespace := testenv.Namespace(b, config)
	c, err := kubernetes.NewForConfig(config)
	require.NoError(b, err)
	for n := range observed {
		_, err := c.CoreV1().ConfigMaps(namespace).Create(b.Context(), cluster(n), metav1.CreateOptions{})
		require.NoError(b, err)
	}
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	protobuf, err := kubernetes.NewForConfig(binary)
	require.NoError(b, err)
	load := startRenewals(b, config, namespace, observed, renewedEvery)
	load.round()
	b.Run("by name", func(b *testing.B) {
		ctx, cancel := context.WithCancel(b.Context())
		var watches sync.WaitGroup
		defer watches.Wait()
		defer cancel()
		var reported, gaps atomic.Int64
		client := newClient(b, config)
		began := time.Now()
		for n := range observed {
			target, err := client.Connect("g", journal.Target{
				Name: "cm", Kind: k8s.ConfigMap, Layout: k8s.Flink, Namespace: namespace, Object: clusterName(n), Guarded: true,
			})
			require.NoError(b, err)
			watches.Go(func() {
				_ = target.Watch(ctx, func(o projector.Observation) error {
					if o.Gap {
						gaps.Add(1)
					}
					reported.Add(1)
					return nil
				})
			})
		}
		require.Eventually(b, func() bool { return gaps.Load() == observed }, time.Minute, time.Millisecond)
		b.Log("all are seen after", time.Since(began))
		load.round()
		before := reported.Load()
		load.measure(b)
		require.Equal(b, before, reported.Load(), "something was reported, though no leader changed")
	})
	b.Run("informer of the namespace", func(b *testing.B) {
		ctx, cancel := context.WithCancel(b.Context())
		var seen atomic.Int64
		all := cache.NewListWatchFromClient(protobuf.CoreV1().RESTClient(), "configmaps", namespace, fields.Everything())
		informer := cache.NewSharedInformer(all, &corev1.ConfigMap{}, 0)
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { seen.Add(1) }})
		require.NoError(b, err)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { informer.RunWithContext(ctx) })
		require.True(b, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
		load.round()
		load.measure(b)
		b.Log("seen", seen.Load())
	})
}

func (r *renewals) measure(b *testing.B) {
	b.ResetTimer()
	for b.Loop() {
		began, before := time.Now(), processorTime(b)
		for range renewRounds {
			r.round()
		}
		used, took := processorTime(b)-before, time.Since(began)
		b.ReportMetric(100*used.Seconds()/took.Seconds(), "%core")
		b.ReportMetric(float64(renewRounds*observed)/took.Seconds(), "renewals/s")
		b.ReportMetric(float64(used.Microseconds())/(renewRounds*observed), "µs/renewal")
	}
}

// processorTime is what this process has used.
func processorTime(tb testing.TB) time.Duration {
	usage := &syscall.Rusage{}
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
