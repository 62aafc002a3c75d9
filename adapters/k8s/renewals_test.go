package k8s_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// renewing is the environment variable that makes the test binary a process that only renews locks, so that the
// processor time of the one that looks on can be told from its own.
const renewing = "JOURNALD_TEST_RENEW"

// electors are what a process that renews locks is told on its standard input. It goes on until that ends.
type electors struct {
	Host, Namespace string
	CA, Cert, Key   []byte
	Objects         int
	Every           time.Duration // how often each lock is renewed
}

// electorsAtOnce is how many requests a process that renews locks has under way.
const electorsAtOnce = 32

// renewals is a process that renews the locks of many objects.
type renewals struct {
	testing.TB
	rounds *bufio.Scanner
}

// startRenewals has the locks of objects 0 to n-1 renewed until the test ends.
func startRenewals(tb testing.TB, config *rest.Config, namespace string, n int, every time.Duration) *renewals {
	tb.Helper()
	command := exec.Command(os.Args[0])
	command.Env, command.Stderr = append(os.Environ(), renewing+"=1"), tb.Output()
	orders, err := command.StdinPipe()
	require.NoError(tb, err)
	said, err := command.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, command.Start())
	tb.Cleanup(func() {
		require.NoError(tb, orders.Close())
		_, err := io.Copy(io.Discard, said)
		require.NoError(tb, err)
		require.NoError(tb, command.Wait())
	})
	require.NoError(tb, json.NewEncoder(orders).Encode(electors{
		Host: config.Host, Namespace: namespace, CA: config.CAData, Cert: config.CertData, Key: config.KeyData, Objects: n, Every: every,
	}))
	return &renewals{TB: tb, rounds: bufio.NewScanner(said)}
}

// round waits until every lock has been renewed once more.
func (r *renewals) round() {
	r.Helper()
	require.True(r, r.rounds.Scan(), "the renewals ended: %v", r.rounds.Err())
}

// renewLocks is the other process.
func renewLocks(in io.Reader, out io.Writer) error {
	e := &electors{}
	orders := json.NewDecoder(in)
	if err := orders.Decode(e); err != nil {
		return fmt.Errorf("read what to renew: %w", err)
	}
	config := &rest.Config{Host: e.Host, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: e.CA, CertData: e.Cert, KeyData: e.Key}}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, io.MultiReader(orders.Buffered(), in))
		cancel()
	}()
	err = e.renew(ctx, c, out)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// renew says after each round that it is done. Renewals are evenly spread over the time of a round.
func (e *electors) renew(ctx context.Context, c *kubernetes.Clientset, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	due := time.NewTimer(0)
	defer due.Stop()
	next := make(chan int)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer close(next)
	for range electorsAtOnce {
		workers.Go(func() {
			for n := range next {
				if err := e.renewOne(ctx, c, n); err != nil {
					cancel(err)
				}
			}
		})
	}
	for n := 0; ; n++ {
		select {
		case <-due.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		select {
		case next <- n:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		due.Reset(time.Until(began.Add(time.Duration(n+1) * e.Every / time.Duration(e.Objects))))
		if n%e.Objects == e.Objects-1 {
			if _, err := fmt.Fprintln(out, n/e.Objects); err != nil {
				return err
			}
		}
	}
}

func (e *electors) renewOne(ctx context.Context, c *kubernetes.Clientset, n int) error {
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		lockAnnotation: strings.Replace(lock("jm-1"), "00:00:00", time.Now().UTC().Format("15:04:05.000000"), 1),
	}}})
	if err != nil {
		return err
	}
	_, err = c.CoreV1().ConfigMaps(e.Namespace).Patch(ctx, clusterName(n%e.Objects), types.MergePatchType, text, metav1.PatchOptions{})
	return err
}

func clusterName(n int) string { return fmt.Sprintf("flink-%d-cluster-config-map", n) }

// cluster is an object as Flink keeps it for a session cluster with two jobs.
func cluster(n int) *corev1.ConfigMap {
	data := map[string]string{}
	for _, component := range []string{"resourcemanager", "dispatcher", "restserver", "job-" + job(1), "job-" + job(2)} {
		data[flinkPrefix+component] = fmt.Sprintf("%s,pekko.tcp://flink@flink-%d.jobs.svc:6123/user/rpc/%s", session1, n, component)
	}
	for i := range 2 {
		data["jobGraph-"+job(i)] = strings.Repeat("rO0ABXNyADtvcmcu", 40) // a handle, serialized
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:        clusterName(n),
			Labels:      map[string]string{"app": fmt.Sprintf("flink-%d", n), "type": "flink-native-kubernetes", "configmap-type": "high-availability"},
			Annotations: map[string]string{lockAnnotation: lock("jm-1")},
		},
		Data: data,
	}
}

func job(n int) string { return strings.Repeat(fmt.Sprint(n), 32) }
