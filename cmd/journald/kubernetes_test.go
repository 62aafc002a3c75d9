package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/leadership-journal/journald/internal/testenv"
)

var kube testenv.SharedKubernetes

func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }

// kubeconfig is a file by which the test's API server is found.
func kubeconfig(t *testing.T, c *rest.Config) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "kubeconfig")
	file := api.NewConfig()
	file.Clusters["test"] = &api.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData, InsecureSkipTLSVerify: c.Insecure}
	file.AuthInfos["test"] = &api.AuthInfo{ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, Token: c.BearerToken}
	file.Contexts["this"] = &api.Context{Cluster: "test", AuthInfo: "test"}
	require.NoError(t, clientcmd.WriteToFile(*file, name))
	return name
}

func TestServeShowsLeadersInKubernetes(t *testing.T) {
	cluster := kube.Config(t)
	namespace := testenv.Namespace(t, cluster)
	name := filepath.Join(t.TempDir(), "journald.yaml")
	require.NoError(t, os.WriteFile(name, fmt.Appendf(nil, `
groups:
  - name: flink
    targets:
      - {name: cm, kind: k8s/configmap, layout: flink, namespace: %[1]s, object: leaders}
      - {name: lease, kind: k8s/lease, namespace: %[1]s, object: "flink-{component}"}
`, namespace), 0o600))
	s := serve(t, "--data", t.TempDir(), "--config", name, "--kubeconfig", kubeconfig(t, cluster), "--context", "this")
	s.await("/v1/groups/flink") // its targets are known
	const session = "01234567-89ab-cdef-fedc-ba9876543210"
	s.must("publish", "grant", "flink/restserver", "candidate=jm-1", "session="+session)
	out := s.must("publish", "confirm", "flink/restserver", "candidate=jm-1", "session="+session, "address=http://jm-1:8081", "--wait",
		"published")
	require.Contains(t, out, "applied, published")
	client, err := typed.NewForConfig(cluster)
	require.NoError(t, err)
	shown, err := client.ConfigMaps(namespace).Get(t.Context(), "leaders", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, session+",http://jm-1:8081", shown.Data["org.apache.flink.k8s.leader.restserver"])
	for !strings.Contains(s.must("get", "leaders", "-o", "wide"), "cm=in-sync,lease=in-sync") {
		require.NoError(t, t.Context().Err()) // their observers may have begun after the write
	}
	require.Regexp(t, `Target cm: +k8s/configmap, in-sync`, s.must("describe", "flink/restserver"))
	require.Equal(t, result{0, "", "3 compared, none differs.\n"}, s.run("diff"))
}

// TestDiffReadsTheCluster has an entry that nobody confirmed, which stays, beside an election of others.
func TestDiffReadsTheCluster(t *testing.T) {
	cluster := kube.Config(t)
	namespace := testenv.Namespace(t, cluster)
	name := filepath.Join(t.TempDir(), "journald.yaml")
	require.NoError(t, os.WriteFile(name, fmt.Appendf(nil, `
groups:
  - name: flink
    targets:
      - {name: cm, kind: k8s/configmap, layout: flink, namespace: %[1]s, object: leaders}
      - {name: theirs, kind: k8s/configmap, layout: flink, namespace: %[1]s, object: theirs, observe: true}
`, namespace), 0o600))
	client, err := typed.NewForConfig(cluster)
	require.NoError(t, err)
	const entry = "01234567-89ab-cdef-fedc-ba9876543210,http://jm-9:8081"
	for object, annotations := range map[string]map[string]string{
		"leaders": nil, "theirs": {"control-plane.alpha.kubernetes.io/leader": `{"holderIdentity":"jm-9"}`},
	} {
		_, err = client.ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: object, Annotations: annotations},
			Data:       map[string]string{"org.apache.flink.k8s.leader.restserver": entry},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	s := serve(t, "--data", t.TempDir(), "--config", name, "--kubeconfig", kubeconfig(t, cluster), "--context", "this")
	s.await("/v1/groups/flink")
	s.must("publish", "grant", "flink/restserver", "candidate=jm-1", "session=S1", "--wait", "applied")
	r := s.run("diff", "flink/restserver")
	require.Equal(t, exitNo, r.code, r.out+r.err)
	require.Regexp(t, `flink/restserver +cm +differs +foreign-entry +http://jm-9:8081 +nobody`, r.out)
	require.Regexp(t, `flink/restserver +theirs +observed +- +http://jm-9:8081 +-`, r.out)
	require.Contains(t, r.err, "1 of 2 differ, 0 can't be read; 1 more are only observed.")
	for !strings.Contains(s.must("describe", "flink/restserver"), "held by jm-9") {
		require.NoError(t, t.Context().Err())
	}
	require.Regexp(t, `Target theirs: +k8s/configmap, only observed\n  leads there: +http://jm-9:8081 .*\n  lock: +held by jm-9`,
		s.must("describe", "flink/restserver"))
	require.Contains(t, s.must("get", "leaders", "-o", "wide"), "theirs=observed")
}

func TestScenarioAgainstKubernetes(t *testing.T) {
	cluster := kube.Config(t)
	namespace := testenv.Namespace(t, cluster)
	path := filepath.Join(t.TempDir(), "shown.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
name: shown
about: What is confirmed is shown.
steps:
  - grant:   {component: restserver, candidate: jm-1, session: S1}
  - confirm: {component: restserver, session: S1, address: "http://jm-1:8081"}
  - expect:  {target: {cm: {restserver: {session: S1}}}}
`), 0o600))
	r := call(t.Context(), "", nil, "test", "--backend", "k8s", "--namespace", namespace, "--kubeconfig", kubeconfig(t, cluster),
		"--context", "this", path)
	require.Equal(t, exitYes, r.code, r.out+r.err)
}
