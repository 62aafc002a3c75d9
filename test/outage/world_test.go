package outage_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/internal/testenv/journald"
	"github.com/leadership-journal/journald/journal"
)

// The targets of every group.
const (
	kubernetesTarget = "lease"
	zooKeeperTarget  = "zk"
)

// What readyz says.
const (
	ready    = "ready"
	degraded = "ready, degraded"
)

// backend is where a group's objects can be seen as they are.
type backend interface {
	// shown is what readers see, by component.
	shown() map[string]journal.LeaderInfo
}

// place is one of the backends of a world.
type place struct {
	backend
	world *world
	name  string
	away  bool // in the outage

	behind    []time.Duration // in which it came to show what was acknowledged, in the outage
	converged time.Duration   // from the recovery until it showed the newest
}

// String is for logs.
func (p *place) String() string { return p.world.name + "/" + p.name }

// world is a journald with one group, and what that is shown in.
type world struct {
	t       *testing.T
	name    string
	cut     bool // its API server goes away
	dead    bool // its ensemble does
	process *journald.Process
	load    *load
	api     *apiServer
	zk      *zooKeeper
	places  []*place
	memory  []sample
}

// newWorld starts a journald. cut and dead say which of its backends the outage takes away: the API server, ZooKeeper.
func newWorld(t *testing.T, name string, nodes *testenv.ZooKeeperNodes, cut, dead bool) *world {
	t.Helper()
	w := &world{t: t, name: name, cut: cut, dead: dead, api: newAPIServer(t), zk: newZooKeeper(t, nodes, name)}
	w.places = []*place{
		{backend: w.api, world: w, name: kubernetesTarget, away: cut},
		{backend: w.zk, world: w, name: zooKeeperTarget, away: dead},
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "journald.yaml")
	require.NoError(t, os.WriteFile(config, w.config(), 0o600))
	w.process = program.Start(t, "--config", config, "--data", filepath.Join(dir, "data"))
	w.load = newLoad(name, w.process)
	return w
}

func (w *world) config() []byte {
	w.t.Helper()
	servers, err := json.Marshal(w.zk.nodes.Servers())
	require.NoError(w.t, err)
	return fmt.Appendf(nil, `
kubernetes: {kubeconfig: %q}
zookeeper: {servers: %s}
groups:
  - name: %s
    targets:
      - {name: %s, kind: k8s/lease, namespace: %s, object: "%s{component}"}
      - {name: %s, kind: zk, layout: json, path: %q}
`, testenv.Kubeconfig(w.t, w.api.config), servers, w.name, kubernetesTarget, w.api.namespace, leasePrefix, zooKeeperTarget, w.zk.path("{component}"))
}

// settle has every component get its first leader, and waits until everything is in order.
func (w *world) settle() {
	w.t.Helper()
	for _, name := range componentNames() {
		require.NoError(w.t, w.load.change(w.t.Context(), name))
	}
	for _, p := range w.places {
		await(w.t, patient, p.String()+" shows the first leaders", func() bool { return len(lacking(w.load.must(), p.shown())) == 0 })
	}
	w.awaitStanding(ready)
	w.zk.before = w.zk.written()
}

// standing is what readyz says. It fails the test where journald is unready.
func (w *world) standing() string {
	w.t.Helper()
	return strings.TrimSpace(string(w.get("/readyz")))
}

func (w *world) awaitStanding(standing string) {
	w.t.Helper()
	await(w.t, patient, w.name+" is "+standing, func() bool { return w.standing() == standing })
}

func (w *world) get(path string) []byte {
	w.t.Helper()
	text, err := w.load.client.Do(w.t.Context(), http.MethodGet, w.process.URL()+path, nil)
	require.NoError(w.t, err, w.name)
	return text
}

// keepUp waits until what is up shows what is acknowledged by now, and notes how long that took.
func (w *world) keepUp() {
	w.t.Helper()
	for _, p := range w.places {
		if p.away {
			continue
		}
		must, began := w.load.must(), time.Now()
		await(w.t, patient, p.String()+" keeps up", func() bool { return len(lacking(must, p.shown())) == 0 })
		p.behind = append(p.behind, time.Since(began))
	}
}

// view is the group as journald sees it.
func (w *world) view() *api.Group {
	w.t.Helper()
	g := &api.Group{}
	w.decode("/v1/groups/"+w.name, g)
	return g
}

// records are those of a kind, in order.
func (w *world) records(kind string) (all []api.Record) {
	w.t.Helper()
	next := ""
	for {
		var page api.Records
		w.decode("/v1/events?limit=1000&group="+w.name+"&kind="+kind+next, &page)
		all = append(all, page.Records...)
		if page.Next == "" {
			return all
		}
		next = "&cursor=" + page.Next
	}
}

func (w *world) decode(path string, answer any) {
	w.t.Helper()
	require.NoError(w.t, json.Unmarshal(w.get(path), answer))
}

// alarmed says whether an alert is active for any component.
func (w *world) alarmed(name string) bool {
	w.t.Helper()
	for _, c := range w.view().Components {
		for _, a := range c.Alerts {
			if a.Name == name {
				return true
			}
		}
	}
	return false
}
