package k8s_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// proxied is a way to the API server that can be cut.
func (w *world) proxied() (*rest.Config, *testenv.TCPProxy) {
	proxy := testenv.NewTCPProxy(w, w.clientset.CoreV1().RESTClient().Get().URL().Host)
	config := rest.CopyConfig(w.config)
	config.Host = "https://" + proxy.Addr()
	return config, proxy
}

func oneLeader(sequence uint64, n int) *projector.Document {
	return shared(sequence, map[string]*journal.LeaderInfo{"restserver": leader(session1, fmt.Sprintf("jm-%d", n))})
}

// TestThrottlingIsToldAndNotSleptThrough: client-go would wait and repeat by itself, with what may be stale by then.
func TestThrottlingIsToldAndNotSleptThrough(t *testing.T) {
	w := newWorld(t)
	faults := testenv.NewHTTPFaults(t, w.config)
	target := connect(t, faults.Config(), w.flink())
	for status, unknown := range map[int]bool{http.StatusTooManyRequests: false, http.StatusServiceUnavailable: true} {
		faults.Set(testenv.Fault{Match: testenv.Writes, Status: status, RetryAfter: 20 * time.Second})
		before := faults.Count()
		_, err := target.Push(t.Context(), oneLeader(7, 1))
		var after *projector.RetryAfter
		require.ErrorAs(t, err, &after)
		require.Equal(t, 20*time.Second, after.After)
		require.Equal(t, 1, faults.Count()-before, "one request")
		if unknown {
			require.ErrorIs(t, err, projector.ErrUnknownOutcome)
		} else {
			require.NotErrorIs(t, err, projector.ErrUnknownOutcome)
		}
	}
	faults.Set(testenv.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Second})
	_, err := target.Push(t.Context(), oneLeader(7, 1))
	var after *projector.RetryAfter
	require.ErrorAs(t, err, &after, "of a read")
}

func TestAServerThatIsNotThereWroteNothing(t *testing.T) {
	w := newWorld(t)
	away, proxy := w.proxied()
	target := connect(t, away, w.flink())
	w.push(target, oneLeader(8, 1))
	proxy.Cut()
	_, err := target.Push(t.Context(), oneLeader(9, 2)) // on the connection that was cut, or on none
	require.Error(t, err)
	_, err = target.Push(t.Context(), oneLeader(9, 2))
	require.Error(t, err)
	for _, class := range []error{projector.ErrUnknownOutcome, projector.ErrConflict, projector.ErrPermanent} {
		require.NotErrorIs(t, err, class)
	}
	proxy.Resume()
	w.push(target, oneLeader(9, 2))
}

// TestConnectionIsCutInMidWrite cuts while the request, or its answer, is on the way. The outcome is unknown, and the
// push after it shows what it should, whatever it was.
func TestConnectionIsCutInMidWrite(t *testing.T) {
	w := newWorld(t)
	away, proxy := w.proxied()
	written := make(chan struct{}, 1)
	away.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if !testenv.Writes(r) {
				return next.RoundTrip(r)
			}
			on := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { written <- struct{}{} }}
			return next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), on)))
		})
	})
	target := connect(t, away, w.flink())
	w.push(target, oneLeader(7, 0))
	<-written
	for i, delay := range []struct{ up, down time.Duration }{{time.Hour, 0}, {0, time.Hour}} {
		doc := oneLeader(uint64(8+i), i+1)
		_, err := target.Push(t.Context(), fresh(oneLeader(uint64(7+i), i)))
		require.NoError(t, err, "connected")
		proxy.Delay(delay.up, delay.down)
		result := make(chan error, 1)
		go func() {
			_, err := target.Push(t.Context(), doc)
			result <- err
		}()
		<-written
		if delay.down > 0 {
			require.Eventually(t, func() bool {
				return w.configMap("leaders").Annotations["leadership-journal.io/sequence"] == fmt.Sprint(8+i)
			},
				30*time.Second, time.Millisecond)
		}
		proxy.Cut()
		require.ErrorIs(t, <-result, projector.ErrUnknownOutcome)
		proxy.Delay(0, 0)
		proxy.Resume()
		receipt := w.push(target, fresh(doc))
		require.Equal(t, delay.up > 0, receipt.Wrote)
		if receipt.Wrote {
			<-written
		}
	}
}

func fresh(doc *projector.Document) *projector.Document {
	again := *doc
	again.Fresh = true
	return &again
}

func TestARequestThatHangsIsGivenUp(t *testing.T) {
	w := newWorld(t)
	faults := testenv.NewHTTPFaults(t, w.config)
	ctx, cancel := context.WithCancel(t.Context())
	config := wrapped(faults.Config(), func(r *http.Request) {
		if testenv.Writes(r) {
			time.AfterFunc(50*time.Millisecond, cancel)
		}
	})
	faults.Set(testenv.Fault{Match: testenv.Writes, Hang: true})
	_, err := connect(t, config, w.flink()).Push(ctx, oneLeader(7, 1))
	require.ErrorIs(t, err, projector.ErrUnknownOutcome)
	_, err = connect(t, config, w.flink()).Push(ctx, oneLeader(7, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, projector.ErrUnknownOutcome, "nothing was sent")
}

// TestThousandPushesBesideAnEditor has another writer edit everything that is not ours all the while. At the end it
// finds what it wrote last, and no read of ours ever found the entry missing or the sequence fallen.
func TestThousandPushesBesideAnEditor(t *testing.T) {
	w := newWorld(t)
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "leaders"}, BinaryData: map[string][]byte{"bin": {0, 1, 2, 255}}})
	target := connect(t, w.config, w.flink())
	w.push(target, oneLeader(1, 1))
	ctx, cancel := context.WithCancel(t.Context())
	edits := make(chan *corev1.ConfigMap, 1)
	var editor sync.WaitGroup
	editor.Go(func() { edits <- w.edit(ctx) })
	conflicts := 0
	for n := range 1000 {
		doc := oneLeader(uint64(n+2), n+2)
		_, err := target.Push(t.Context(), doc)
		for doc.Fresh = true; err != nil; conflicts++ {
			require.ErrorIs(t, err, projector.ErrConflict)
			_, err = target.Push(t.Context(), doc)
		}
	}
	cancel()
	editor.Wait()
	last, now := <-edits, w.configMap("leaders")
	t.Log("conflicts", conflicts, "edits", last.Annotations["example.com/edit"])
	require.Positive(t, conflicts, "the editor got in between")
	require.Equal(t, session1+",http://jm-1001:8081", now.Data[flinkPrefix+"restserver"])
	delete(now.Data, flinkPrefix+"restserver")
	delete(last.Data, flinkPrefix+"restserver")
	require.Equal(t, last.Data, now.Data)
	require.Equal(t, last.BinaryData, now.BinaryData)
	require.Equal(t, last.Labels, now.Labels)
	require.Equal(t, last.OwnerReferences, now.OwnerReferences)
	require.Equal(t, last.Finalizers, now.Finalizers)
	for _, name := range []string{"example.com/edit", lockAnnotation} {
		require.Equal(t, last.Annotations[name], now.Annotations[name])
	}
}

// edit writes until ctx ends, and returns the object as it wrote it last.
func (w *world) edit(ctx context.Context) *corev1.ConfigMap {
	maps := w.clientset.CoreV1().ConfigMaps(w.namespace)
	var last *corev1.ConfigMap
	sequence := 0
	for n := 0; ctx.Err() == nil || last == nil; n++ {
		cm, err := maps.Get(w.Context(), "leaders", metav1.GetOptions{})
		if err != nil {
			w.Error(err)
			return nil
		}
		now, err := strconv.Atoi(cm.Annotations["leadership-journal.io/sequence"])
		if err != nil || now < sequence || cm.Data[flinkPrefix+"restserver"] == "" {
			w.Error("the entry is missing, or the sequence fell", now, err)
		}
		sequence = now
		cm.Data["jobGraph-1"] = strings.Repeat("é\x00", n%50) + fmt.Sprint(n)
		cm.Data[fmt.Sprintf("key-%d", n%7)] = fmt.Sprint(n)
		delete(cm.Data, fmt.Sprintf("key-%d", (n+3)%7))
		cm.Annotations["example.com/edit"] = fmt.Sprint(n)
		cm.Annotations[lockAnnotation] = lock(fmt.Sprint("jm-", n%3))
		cm.Labels = map[string]string{"edit": fmt.Sprint(n)}
		cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "0"}}
		cm.Finalizers = []string{fmt.Sprintf("example.com/f%d", n%2)}
		if cm, err = maps.Update(w.Context(), cm, metav1.UpdateOptions{}); err == nil {
			last = cm
		} else if !apierrors.IsConflict(err) {
			w.Error(err)
		}
	}
	return last
}
