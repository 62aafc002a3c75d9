package interop_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/agent"
	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/internal/testenv/journald"
	"github.com/leadership-journal/journald/internal/testenv/loopdisk"
)

const (
	overlord  = "overlord"
	period    = 200 * time.Millisecond // of every check
	threshold = 3
	within    = threshold*period + time.Second
)

// TestDruidsIncident is apache/druid#20838: the leader's disk takes no writes any more while everything else about it is
// well, and healthy nodes stand by. In the incident it led for hours.
func TestDruidsIncident(t *testing.T) {
	for name, way := range map[string]struct {
		breaks, mends func(*loopdisk.Disk)
		hangs         bool // and can't lead at all
	}{
		"full":        {breaks: (*loopdisk.Disk).Fill, mends: (*loopdisk.Disk).Empty},
		"no inodes":   {breaks: (*loopdisk.Disk).TakeInodes, mends: (*loopdisk.Disk).Empty},
		"read-only":   {breaks: (*loopdisk.Disk).ReadOnly, mends: (*loopdisk.Disk).Writable},
		"writes hang": {breaks: func(d *loopdisk.Disk) { d.Freeze(20 * time.Second) }, mends: (*loopdisk.Disk).Thaw, hangs: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			disk := loopdisk.New(t, 8, 64)
			a := c.node("a", disk.Path())
			c.awaitLeader("a")
			b, other := c.node("b", t.TempDir()), c.node("c", t.TempDir())
			c.awaitFit("a", "b", "c")

			require.Equal(t, "a", c.awaitLeader("a", "b", "c"), "nothing is wrong with it")
			way.breaks(disk)
			broken := time.Now()
			next := c.awaitLeader("b", "c")
			took := time.Since(broken)
			t.Logf("Curator read %s after %s", next, took)
			require.LessOrEqual(t, took, within)
			require.Equal(t, "yielded", c.lastTerm("a").Reason)

			if way.hangs {
				way.mends(disk)
				a.Terminate(patience)
				return
			}
			b.Terminate(patience)
			other.Terminate(patience)
			c.awaitLeader("a")
			c.await("an alert", func(g *api.Group) bool { return c.alert(g, "SoleUnhealthy") })

			c.node("b", t.TempDir())
			c.awaitLeader("b")
			c.await("no alert", func(g *api.Group) bool { return !c.alert(g, "SoleUnhealthy") })
			way.mends(disk)
			c.awaitFit("a", "b")
		})
	}
}

// cluster is a group of nodes for which journald elects, shown in a latch and read by Curator.
type cluster struct {
	t      *testing.T
	name   string
	server *journald.Process
	client *journald.Client
	reader *reader
	nodes  *httptest.Server // what each agent's process is asked for

	mu      sync.Mutex
	leading map[string]bool
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, name: uuid.NewString(), client: journald.NewClient(), leading: map[string]bool{}}
	c.nodes = httptest.NewServer(http.HandlerFunc(c.hook))
	t.Cleanup(c.nodes.Close)
	latch := "/" + c.name + "/druid/overlord/_OVERLORD"
	servers := strings.Join(zookeeper.Servers(t), ",")
	c.server = shipped.Start(t, "--data", t.TempDir(), "--zookeeper", servers, "--config", c.file("journald.yaml", fmt.Sprintf(`
groups:
- name: %s
  policy:
    election: managed
    health: {period: %s, failureThreshold: %d, staleAfter: 2s, holdDown: 500ms}
    lease: {duration: 4s, renewEvery: 200ms, releaseWithin: 4s}
  targets: [{name: latch, kind: zk, layout: latch, path: %s, components: [overlord]}]
`, c.name, period, threshold, latch)))
	c.reader = curatorProgram(t, "LatchReader").start(t, servers, latch, overlord)
	return c
}

func (c *cluster) file(name, text string) string {
	path := filepath.Join(c.t.TempDir(), name)
	require.NoError(c.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// node starts the agent of a node that writes to a directory.
func (c *cluster) node(name, dir string) *journald.Process {
	c.t.Helper()
	return shipped.Agent(c.t, "--server", c.server.URL(), "--config", c.file(name+".yaml", fmt.Sprintf(`
group: %s
candidate: %s
components: [overlord]
address: http://%s:8090
election: managed
checks: [{name: disk, kind: disk, period: %s, settings: {paths: [%s]}}]
hooks: {onGranted: {http: {url: %[6]s}}, onRevoked: {http: {url: %[6]s}}}
`, c.name, name, name, period, dir, c.nodes.URL)))
}

// hook does what agents ask of their processes. There is never more than one that leads.
func (c *cluster) hook(w http.ResponseWriter, r *http.Request) {
	var n agent.Notice
	if err := json.UnmarshalRead(r.Body, &n); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.leading, n.Candidate)
	if n.Hook == "onGranted" {
		if len(c.leading) > 0 {
			c.t.Errorf("%s is to lead, and so does %v", n.Candidate, c.leading)
		}
		c.leading[n.Candidate] = true
	}
}

// awaitLeader returns which of the nodes Curator finds to lead.
func (c *cluster) awaitLeader(names ...string) (found string) {
	c.t.Helper()
	c.reader.await("Curator reads one of "+strings.Join(names, ", "), func(said []line) bool {
		newest := said[len(said)-1].Address
		for _, name := range names {
			if newest != nil && *newest == "http://"+name+":8090" {
				found = name
			}
		}
		return found != ""
	})
	return found
}

// awaitFit returns when all checks of these nodes pass.
func (c *cluster) awaitFit(names ...string) {
	c.t.Helper()
	c.await("all pass: "+strings.Join(names, ", "), func(g *api.Group) bool {
		for _, name := range names {
			if k := g.Candidates[name]; k == nil || k.Rank != "pass" || k.Checks["disk"].Status != "pass" {
				return false
			}
		}
		return true
	})
}

// await returns when the journal's view of the group is as it is wanted.
func (c *cluster) await(what string, holds func(*api.Group) bool) {
	c.t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.After(patience); ; {
		var g api.Group
		if c.client.Get(c.t.Context(), c.server.URL()+"/v1/groups/"+c.name, &g) == nil && holds(&g) {
			return
		}
		select {
		case <-poll.C:
		case <-deadline:
			require.FailNow(c.t, "it took too long: "+what)
		}
	}
}

func (c *cluster) alert(g *api.Group, name string) bool {
	for _, a := range g.Components[overlord].Alerts {
		if a.Name == name {
			return true
		}
	}
	return false
}

// lastTerm is the newest term that a node held.
func (c *cluster) lastTerm(name string) (found api.Term) {
	c.t.Helper()
	var history struct {
		Terms []api.Term `json:"terms"`
	}
	require.NoError(c.t, c.client.Get(c.t.Context(), c.server.URL()+"/v1/groups/"+c.name+"/components/overlord/history", &history))
	for _, term := range history.Terms {
		if term.Candidate == name {
			return term
		}
	}
	require.Fail(c.t, name+" never led")
	return api.Term{}
}
