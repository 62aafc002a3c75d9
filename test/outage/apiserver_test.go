package outage_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/leadership-journal/journald/adapters/k8s"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
)

// leasePrefix begins the name of every Lease; the rest is the component's.
const leasePrefix = "outage-"

// apiServer is a namespace of a real API server. The test sees it directly, and journald through a line that can be cut
// and a proxy that counts. The proxy speaks HTTP/2 over TLS, as API servers do.
type apiServer struct {
	t         *testing.T
	namespace string
	leases    coordination.LeaseInterface
	line      *testenv.TCPProxy
	proxy     *httptest.Server

	requests, writes atomic.Int64
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	config := kube.Config(t)
	client, err := coordination.NewForConfig(config)
	require.NoError(t, err)
	a := &apiServer{t: t, namespace: testenv.Namespace(t, config)}
	a.leases = client.Leases(a.namespace)
	a.proxy = httptest.NewUnstartedServer(a.counting(config))
	a.proxy.EnableHTTP2 = true
	a.proxy.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.proxy.StartTLS()
	a.line = testenv.NewTCPProxy(t, a.proxy.Listener.Addr().String())
	t.Cleanup(func() {
		a.line.Close()
		a.proxy.Close()
	})
	return a
}

// counting passes every request on to the API server.
func (a *apiServer) counting(config *rest.Config) http.Handler {
	a.t.Helper()
	upstream, _, err := rest.DefaultServerUrlFor(config)
	require.NoError(a.t, err)
	transport, err := rest.TransportFor(config)
	require.NoError(a.t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) }, Transport: transport, FlushInterval: -1,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.requests.Add(1)
		if testenv.Writes(r) {
			a.writes.Add(1)
		}
		proxy.ServeHTTP(w, r)
	})
}

// kubeconfig writes a file that says how to reach the API server on the line.
func (a *apiServer) kubeconfig(dir string) string {
	a.t.Helper()
	const name = "test"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   "https://" + a.line.Addr(),
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.proxy.Certificate().Raw}),
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	file := filepath.Join(dir, "kubeconfig")
	require.NoError(a.t, clientcmd.WriteToFile(*config, file))
	return file
}

// shown implements [backend].
func (a *apiServer) shown() map[string]journal.LeaderInfo {
	a.t.Helper()
	list, err := a.leases.List(a.t.Context(), metav1.ListOptions{})
	require.NoError(a.t, err)
	all := map[string]journal.LeaderInfo{}
	for i := range list.Items {
		if name, ok := strings.CutPrefix(list.Items[i].Name, leasePrefix); ok {
			all[name] = shownBy(&list.Items[i])
		}
	}
	return all
}

func shownBy(l *coordinationv1.Lease) journal.LeaderInfo {
	leader := journal.LeaderInfo{Session: l.Annotations[k8s.SessionAnnotation], Address: l.Annotations[k8s.AddressAnnotation]}
	if l.Spec.HolderIdentity != nil {
		leader.Candidate = *l.Spec.HolderIdentity
	}
	return leader
}

// written implements [backend].
func (a *apiServer) written() int { return int(a.writes.Load()) }
