package k8s_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/leadership-journal/journald/adapters/k8s"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
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
