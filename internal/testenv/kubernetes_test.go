package testenv_test

import (
	"context"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/internal/testenv"
)

func clientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

func createConfigMap(t *testing.T, config *rest.Config, namespace string, data map[string]string) *corev1.ConfigMap {
	t.Helper()
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cm"}, Data: data}
	created, err := clientset(t, config).CoreV1().ConfigMaps(namespace).Create(t.Context(), wanted, metav1.CreateOptions{})
	require.NoError(t, err)
	return created
}

func configMapData(t *testing.T, config *rest.Config, namespace string) map[string]string {
	t.Helper()
	cm, err := clientset(t, config).CoreV1().ConfigMaps(namespace).Get(t.Context(), "cm", metav1.GetOptions{})
	require.NoError(t, err)
	return cm.Data
}

func TestAPIServerIsTheVersionThatWasBuilt(t *testing.T) {
	version, err := clientset(t, kube.Config(t)).Discovery().ServerVersion()
	require.NoError(t, err)
	require.Equal(t, testenv.KubernetesVersion, version.GitVersion)
	require.Regexp(t, `^v1\.37\.`, version.GitVersion)
}

func TestAPIServerRefusesAStaleResourceVersion(t *testing.T) {
	config := kube.Config(t)
	namespace := testenv.Namespace(t, config)
	configMaps := clientset(t, config).CoreV1().ConfigMaps(namespace)
	stale := createConfigMap(t, config, namespace, map[string]string{"k": "1"})

	fresh := stale.DeepCopy()
	fresh.Data["k"] = "2"
	_, err := configMaps.Update(t.Context(), fresh, metav1.UpdateOptions{})
	require.NoError(t, err)

	stale.Data["k"] = "3"
	_, err = configMaps.Update(t.Context(), stale, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "got %v", err)
	require.Equal(t, map[string]string{"k": "2"}, configMapData(t, config, namespace))
}

func TestNamespacesAreFresh(t *testing.T) {
	config := kube.Config(t)
	one, other := testenv.Namespace(t, config), testenv.Namespace(t, config)
	require.NotEqual(t, one, other)
}

func TestWatchSeesAnUpdate(t *testing.T) {
	config := kube.Config(t)
	requireWatchStreams(t, config, config)
}

// requireWatchStreams writes through one configuration and expects the watch through the other to show it
// while the watch stays open.
func requireWatchStreams(t *testing.T, watching, writing *rest.Config) {
	t.Helper()
	namespace := testenv.Namespace(t, writing)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watcher := watchConfigMaps(ctx, t, watching, namespace)
	created := createConfigMap(t, writing, namespace, map[string]string{"k": "1"})

	event, open := <-watcher.ResultChan()
	require.True(t, open, "the watch ended")
	require.Equal(t, watch.Added, event.Type)
	require.Equal(t, created.ResourceVersion, event.Object.(*corev1.ConfigMap).ResourceVersion)
}

func watchConfigMaps(ctx context.Context, t *testing.T, config *rest.Config, namespace string) watch.Interface {
	t.Helper()
	watcher, err := clientset(t, config).CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(watcher.Stop)
	return watcher
}

func TestKubernetesRestartsWithItsData(t *testing.T) {
	own := testenv.NewKubernetes(t)
	namespace := testenv.Namespace(t, own.Config)
	createConfigMap(t, own.Config, namespace, map[string]string{"k": "kept"})

	require.NoError(t, own.StopAPIServer())
	host, err := url.Parse(own.Config.Host)
	require.NoError(t, err)
	_, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", host.Host)
	require.ErrorContains(t, err, "refused")

	require.NoError(t, own.StartAPIServer())
	require.Equal(t, map[string]string{"k": "kept"}, configMapData(t, own.Config, namespace))
}

func TestKubernetesRestoresABackup(t *testing.T) {
	own := testenv.NewKubernetes(t)
	namespace := testenv.Namespace(t, own.Config)
	kept := createConfigMap(t, own.Config, namespace, map[string]string{"k": "kept"})
	require.NoError(t, own.Backup())

	configMaps := clientset(t, own.Config).CoreV1().ConfigMaps(namespace)
	lost := kept.DeepCopy()
	lost.Data["k"] = "lost"
	lost, err := configMaps.Update(t.Context(), lost, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, own.Restore())
	restored, err := configMaps.Get(t.Context(), "cm", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, kept.ResourceVersion, restored.ResourceVersion)
	require.Equal(t, "kept", restored.Data["k"])
	require.NotEqual(t, kept.ResourceVersion, lost.ResourceVersion)
}
