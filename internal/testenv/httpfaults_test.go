package testenv_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/internal/testenv"
)

// patch sets k through the proxy, without client-go's own repetitions.
func patch(ctx context.Context, t *testing.T, config *rest.Config, namespace, value string) error {
	t.Helper()
	body := []byte(`{"data":{"k":"` + value + `"}}`)
	return clientset(t, config).CoreV1().RESTClient().Patch("application/merge-patch+json").
		Namespace(namespace).Resource("configmaps").Name("cm").Body(body).MaxRetries(0).
		Do(ctx).Into(&corev1.ConfigMap{})
}

func TestHTTPFaults(t *testing.T) {
	tests := map[string]struct {
		fault   testenv.Fault
		applied bool
		failed  func(error) bool
	}{
		"5xx, not applied": {
			fault:  testenv.Fault{Status: http.StatusServiceUnavailable},
			failed: apierrors.IsServiceUnavailable,
		},
		"5xx, applied": {
			fault:   testenv.Fault{Status: http.StatusInternalServerError, Applied: true},
			applied: true, failed: apierrors.IsInternalError,
		},
		"429, not applied": {
			fault: testenv.Fault{Status: http.StatusTooManyRequests, RetryAfter: 1500 * time.Millisecond},
			failed: func(err error) bool {
				seconds, suggested := apierrors.SuggestsClientDelay(err)
				return apierrors.IsTooManyRequests(err) && suggested && seconds == 2
			},
		},
		"429, applied": {
			fault:   testenv.Fault{Status: http.StatusTooManyRequests, Applied: true},
			applied: true, failed: apierrors.IsTooManyRequests,
		},
		"broken connection, not applied": {
			failed: unanswered,
		},
		"broken connection, applied": {
			fault:   testenv.Fault{Applied: true},
			applied: true, failed: unanswered,
		},
	}
	config := kube.Config(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			namespace := testenv.Namespace(t, config)
			createConfigMap(t, config, namespace, map[string]string{"k": "before"})
			faults := testenv.NewHTTPFaults(t, config)

			test.fault.Match = testenv.Writes
			faults.Set(test.fault)
			err := patch(t.Context(), t, faults.Config(), namespace, "after")
			require.True(t, test.failed(err), "got %v", err)
			require.Equal(t, 1, faults.Count())
			requireApplied(t, test.applied, config, namespace)

			faults.Set()
			require.NoError(t, patch(t.Context(), t, faults.Config(), namespace, "last"))
			require.Equal(t, map[string]string{"k": "last"}, configMapData(t, config, namespace))
			require.Equal(t, 1, faults.Count())
		})
	}
}

func unanswered(err error) bool {
	return err != nil && apierrors.ReasonForError(err) == ""
}

func requireApplied(t *testing.T, applied bool, config *rest.Config, namespace string) {
	t.Helper()
	want := "before"
	if applied {
		want = "after"
	}
	require.Equal(t, map[string]string{"k": want}, configMapData(t, config, namespace))
}

func TestHTTPFaultsHangUntilTheClientGivesUp(t *testing.T) {
	for name, applied := range map[string]bool{"applied": true, "not applied": false} {
		t.Run(name, func(t *testing.T) {
			config := kube.Config(t)
			namespace := testenv.Namespace(t, config)
			createConfigMap(t, config, namespace, map[string]string{"k": "before"})
			faults := testenv.NewHTTPFaults(t, config)
			faults.Set(testenv.Fault{Match: testenv.Writes, Applied: applied, Hang: true})

			ctx, giveUp := context.WithCancel(t.Context())
			result := make(chan error)
			hanging := faults.Config()
			go func() { result <- patch(ctx, t, hanging, namespace, "after") }() //nolint:testifylint // it only makes a client
			await(t, func() bool { return faults.Count() == 1 })
			require.Empty(t, result)
			giveUp()
			require.ErrorIs(t, <-result, context.Canceled)
			requireApplied(t, applied, config, namespace)
		})
	}
}

func TestHTTPFaultsHitOneInN(t *testing.T) {
	config := kube.Config(t)
	namespace := testenv.Namespace(t, config)
	createConfigMap(t, config, namespace, map[string]string{"k": "before"})
	faults := testenv.NewHTTPFaults(t, config)
	faults.Set(testenv.Fault{Match: testenv.Writes, Every: 3, Status: http.StatusBadGateway})

	var failed []int
	for i := range 9 {
		require.Equal(t, "before", configMapData(t, faults.Config(), namespace)["k"], "a read is no write")
		if patch(t.Context(), t, faults.Config(), namespace, "before") != nil {
			failed = append(failed, i)
		}
	}
	require.Equal(t, []int{2, 5, 8}, failed)
	require.Equal(t, 3, faults.Count())
}

func TestHTTPFaultsLetTheFirstMatchDecide(t *testing.T) {
	config := kube.Config(t)
	namespace := testenv.Namespace(t, config)
	createConfigMap(t, config, namespace, map[string]string{"k": "before"})
	faults := testenv.NewHTTPFaults(t, config)
	faults.Set(
		testenv.Fault{Match: testenv.Writes, Status: http.StatusServiceUnavailable},
		testenv.Fault{Status: http.StatusTooManyRequests},
	)
	require.True(t, apierrors.IsServiceUnavailable(patch(t.Context(), t, faults.Config(), namespace, "after")))
	_, err := clientset(t, faults.Config()).Discovery().ServerVersion()
	require.True(t, apierrors.IsTooManyRequests(err), "got %v", err)
}

func TestHTTPFaultsPassTrueRefusals(t *testing.T) {
	config := kube.Config(t)
	faults := testenv.NewHTTPFaults(t, config)
	err := patch(t.Context(), t, faults.Config(), testenv.Namespace(t, config), "no such configmap")
	require.True(t, apierrors.IsNotFound(err), "got %v", err)
	require.Zero(t, faults.Count())
}

func TestHTTPFaultsStreamWatches(t *testing.T) {
	config := kube.Config(t)
	faults := testenv.NewHTTPFaults(t, config)
	faults.Set(testenv.Fault{Match: testenv.Writes, Status: http.StatusInternalServerError})
	requireWatchStreams(t, faults.Config(), config)
}

func TestHTTPFaultsEndOpenWatchesOnClose(t *testing.T) {
	config := kube.Config(t)
	faults, err := testenv.StartHTTPFaults(t.Context(), config)
	require.NoError(t, err)
	watcher := watchConfigMaps(t.Context(), t, faults.Config(), testenv.Namespace(t, config))
	require.NoError(t, faults.Close())
	for range watcher.ResultChan() {
	}
	require.NoError(t, faults.Close(), "again")
}
