package managed_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/internal/testenv/journald"
)

// clusterLease is as short as it may be where a stream has to elect a leader now and then.
const clusterLease = 10 * time.Second

// cluster is three NATS servers, two journalds, and three candidates that speak to NATS alone.
type cluster struct {
	*testing.T
	random    *rand.Rand
	history   *history
	nodes     *testenv.NATSNodes
	args      [][]string
	instances []*journald.Process
	members   map[string]*process
}

// The same with two journalds on a cluster of NATS servers, of which one is stopped now and then.
func TestKillsAndFreezesOnACluster(t *testing.T) {
	c := &cluster{T: t, random: random(t), history: newHistory(), nodes: testenv.NATSCluster(t, 3), members: map[string]*process{}}
	file := configure(t, clusterLease, fmt.Sprintf("nats: {embedded: false, url: %q, replicas: 3, maxBytes: 64MiB}\n", c.nodes.URL()))
	for i := range 2 {
		c.args = append(c.args, []string{"--config", file, "--instance", fmt.Sprintf("journald-%d", i)})
		c.instances = append(c.instances, bin.Start(t, c.args[i]...))
	}
	for _, name := range []string{"a", "b", "c"} {
		c.launch(name)
	}
	c.history.await(t, 0, "the start")
	for _, fault := range c.faults() {
		began := now()
		what := fault()
		t.Logf("%s: both are led after %s", what, c.history.await(t, began, what).Round(time.Millisecond))
	}
	c.history.check(t)
}

func (c *cluster) launch(name string) { c.members[name] = launch(c.T, c.history, c.nodes.URL(), name) }

// faults are one of each kind, in any order.
func (c *cluster) faults() []func() string {
	leader := func() *process { return c.history.leader(components[c.random.IntN(len(components))]) }
	all := []func() string{
		func() string {
			l := leader()
			l.kill()
			c.launch(l.name)
			return "the leader was killed"
		},
		func() string {
			l := leader()
			l.freeze(c.T)
			<-time.After(clusterLease + clusterLease/2)
			l.thaw(c.T)
			return "the leader was frozen"
		},
		func() string {
			for i := range c.instances {
				c.instances[i].Kill()
				c.instances[i] = bin.Start(c.T, c.args[i]...)
			}
			return "both journalds were killed, one after the other"
		},
		func() string {
			i := c.instances[c.random.IntN(len(c.instances))]
			i.Freeze()
			<-time.After(clusterLease / 2)
			i.Thaw()
			return "a journald was frozen"
		},
		func() string {
			for _, name := range []string{"n1", "n2", "n3"} {
				c.nodes.StopNode(name)
				<-time.After(time.Second)
				c.nodes.StartNode(name)
			}
			return "every NATS server was stopped, one after the other"
		},
	}
	c.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
