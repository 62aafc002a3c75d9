package interop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/adapters/zk"
	"github.com/leadership-journal/journald/journal"
)

// TestCuratorReadsTheLatch moves a latch under a reader that never rests. However fast that is, it finds somebody who
// leads until nobody does: measured, other ways to move a latch have it find nobody in half of its reads.
func TestCuratorReadsTheLatch(t *testing.T) {
	const (
		overlord = "overlord"
		moves    = 1000
	)
	name := uuid.NewString() // ZooKeeper is shared
	latch := "/" + name + "/druid/overlord/_OVERLORD"
	target, _ := zookeeperTarget(t, journal.Target{
		Name: name, Kind: zk.Kind, Layout: zk.Latch, Path: latch, Components: []string{overlord},
	})
	w := newWriter(t, target, func(s state) state { return state{address: s.address} }, overlord)
	r := curatorProgram(t, "LatchReader").start(t, strings.Join(zookeeper.Servers(t), ","), latch, overlord)

	for i := range moves {
		w.leads(overlord, fmt.Sprintf("https://10.0.%d.%d:8290", i/256, i%256))
		if i%10 == 0 {
			w.awaitRead(r) // so that it does read in between
		}
	}
	w.awaitRead(r)

	w.nobodyLeads(overlord)
	w.awaitRead(r)
	w.leads(overlord, "https://druid-overlord-0.example:8290/"+strings.Repeat("x", 2000)+"/Zürich/😀")
	w.awaitRead(r)
	said := r.end()
	require.True(t, w.wasRead(said))
	reads := said[len(said)-1].Reads
	t.Logf("%d reads, %d of them found a change", reads, len(said)-2)
	require.Greater(t, reads, moves/10)
}
