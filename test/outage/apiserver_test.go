package outage_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/adapters/k8s"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
)

// leasePrefix begins the name of every Lease; the rest is the component's.
const leasePrefix = "outage-"

// apiServer is a namespace of a real API server. The test sees it directly, and journald on a line that can be cut.
type apiServer struct {
	t         *testing.T
	namespace string
	client    *coordination.CoordinationV1Client
	config    *rest.Config // for journald
	line      *testenv.TCPProxy
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	a := &apiServer{t: t, config: kube.Config(t)}
	a.namespace = testenv.Namespace(t, a.config)
	var err error
	a.client, err = coordination.NewForConfig(a.config)
	require.NoError(t, err)
	at, _, err := rest.DefaultServerUrlFor(a.config)
	require.NoError(t, err)
	a.line = testenv.NewTCPProxy(t, at.Host)
	a.config.Host = "https://" + a.line.Addr()
	return a
}

// shown implements [backend].
func (a *apiServer) shown() map[string]journal.LeaderInfo {
	a.t.Helper()
	list, err := a.client.Leases(a.namespace).List(a.t.Context(), metav1.ListOptions{})
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

// leaseWrites matches how often the API server was asked to write a Lease: how it answered, and which namespace it was,
// is all the same to it.
var leaseWrites = regexp.MustCompile(`(?m)^apiserver_request_total\{.*resource="leases".*verb="(?:POST|PUT|PATCH|DELETE)".*\} (\S+)$`)

// written is how often anybody has written a Lease, or tried to, in any namespace. Every ten seconds the API server itself
// does.
func (a *apiServer) written() (writes int) {
	a.t.Helper()
	text, err := a.client.RESTClient().Get().AbsPath("/metrics").DoRaw(a.t.Context())
	require.NoError(a.t, err)
	for _, line := range leaseWrites.FindAllSubmatch(text, -1) {
		n, err := strconv.ParseFloat(string(line[1]), 64)
		require.NoError(a.t, err)
		writes += int(n)
	}
	return writes
}
