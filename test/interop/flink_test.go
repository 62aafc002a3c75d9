package interop_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/leadership-journal/journald/adapters/k8s"
	"github.com/leadership-journal/journald/adapters/zk"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

const (
	job       = "0123456789abcdef0123456789abcdef"
	clusterID = "interop"
	lock      = "control-plane.alpha.kubernetes.io/leader"
)

func components() []string {
	return []string{"resourcemanager", "dispatcher", "restserver", "job-" + job}
}

// versions are the profiles of pom.xml.
func versions() []string { return []string{"flink-1.20", "flink-2"} }

func TestFlinkReadsZooKeeper(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			program := flinkProgram(t, "LeaderReader", version)
			name := uuid.NewString() // ZooKeeper is shared
			root := "/" + name + "/flink"
			spec := journal.Target{Name: name, Kind: zk.Kind, Layout: zk.Flink, Path: root + "/" + clusterID + "/leader/{component}"}
			requireRead(t, func() (projector.Target, func()) { return zookeeperTarget(t, spec) }, func() *reader {
				return program.start(t, append(flinkOptions(t, "zookeeper"),
					"high-availability.zookeeper.quorum="+strings.Join(zookeeper.Servers(t), ","),
					"high-availability.zookeeper.path.root="+root,
					"high-availability.cluster-id="+clusterID,
					// A machine that stands still for some seconds must not look like nobody who leads.
					"high-availability.zookeeper.client.tolerate-suspended-connections=true",
				)...)
			})
		})
	}
}

func TestFlinkReadsTheConfigMap(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			program := flinkProgram(t, "LeaderReader", version)
			config := kube.Config(t)
			clientset, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			maps := clientset.CoreV1().ConfigMaps(testenv.Namespace(t, config))
			own, err := maps.Create(t.Context(), flinkOwn(), metav1.CreateOptions{})
			require.NoError(t, err)
			spec := journal.Target{
				Name: "cm", Kind: k8s.ConfigMap, Layout: k8s.Flink, Namespace: own.Namespace, Object: own.Name,
			}
			requireRead(t, func() (projector.Target, func()) { return kubernetesTarget(t, config, spec) }, func() *reader {
				return program.start(t, append(flinkOptions(t, "kubernetes"),
					"kubernetes.config.file="+kubeconfig(t, config),
					"kubernetes.namespace="+own.Namespace,
					"kubernetes.cluster-id="+clusterID,
				)...)
			})
			after, err := maps.Get(t.Context(), own.Name, metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, own.Annotations[lock], after.Annotations[lock])
		})
	}
}

// requireRead has Flink read addresses of all lengths and alphabets, moves in quick succession, what a writer shows that
// takes over from another, and withdrawals.
func requireRead(t *testing.T, connect func() (target projector.Target, disconnect func()), start func() *reader) {
	t.Helper()
	const moves = 200
	target, disconnect := connect()
	w := newWriter(t, target, func(s state) state { return s }, components()...)
	for _, c := range components()[:2] {
		w.leads(c, "http://before-anybody-read:8081")
	}
	r := start()
	w.awaitRead(r)
	for i, address := range addresses() {
		w.leads(components()[i%len(components())], address)
		w.awaitRead(r)
	}
	for i := range moves {
		c := components()[i%len(components())]
		w.leads(c, fmt.Sprintf("pekko.tcp://flink@10.0.0.%d:6123/user/rpc/%s_%d", i, c, i))
		if i%20 == 0 {
			w.awaitRead(r)
		}
	}
	w.awaitRead(r)

	disconnect()
	w.target, disconnect = connect()
	defer disconnect()
	for _, c := range components() {
		w.leads(c, "http://after-the-takeover:8081/"+c)
	}
	w.awaitRead(r)

	for _, c := range components() {
		w.nobodyLeads(c)
	}
	w.awaitRead(r)
	for _, c := range components() {
		w.leads(c, "http://after-all:8081/"+c)
	}
	w.awaitRead(r)
	require.True(t, w.wasRead(r.end()))
}

// addresses are those that the layouts could get wrong: where Java's blocks end, and what is no ASCII.
func addresses() []string {
	all := []string{"a", "a,b,,c", "http://zürich.example:8081/日本/😀/😀", "nul\x00nul", " \"{}\\\n\t"}
	for _, n := range []int{253, 254, 1021, 1022, 1023, 1024, 1500, 65_535} {
		all = append(all, strings.Repeat("x", n))
	}
	return all
}

// flinkOptions are the arguments of a reader of Flink, whatever the backend.
func flinkOptions(t *testing.T, kind string) []string {
	return []string{job, "high-availability.type=" + kind, "high-availability.storageDir=file://" + t.TempDir()}
}

// flinkOwn is the object that Flink reads, as its elector leaves it.
func flinkOwn() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:   clusterID + "-cluster-config-map",
		Labels: map[string]string{"app": clusterID, "type": "flink-native-kubernetes", "configmap-type": "high-availability"},
		Annotations: map[string]string{lock: `{"holderIdentity":"jobmanager-1","leaseDuration":15.000000000,` +
			`"acquireTime":"2026-03-01T12:00:00.000000Z","renewTime":"2026-03-01T12:00:00.000000Z","leaderTransitions":0}`},
	}}
}

func kubernetesTarget(t *testing.T, config *rest.Config, spec journal.Target) (target projector.Target, disconnect func()) {
	t.Helper()
	client, err := k8s.NewClient(config, k8s.Options{Now: time.Now, Logger: logger(t)})
	require.NoError(t, err)
	target, err = client.Connect(group, spec)
	require.NoError(t, err)
	return target, func() {} // what it writes does not hang on a connection
}

// kubeconfig names a file by which Flink finds the API server, through a proxy that holds the administrator's key: its
// client can't read one of that kind.
func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	out := clientcmdapi.NewConfig()
	out.Clusters["test"] = &clientcmdapi.Cluster{Server: testenv.NewHTTPFaults(t, config).Config().Host}
	out.Contexts["test"] = &clientcmdapi.Context{Cluster: "test"}
	out.CurrentContext = "test"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*out, file))
	return file
}
