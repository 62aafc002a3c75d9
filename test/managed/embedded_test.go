package managed_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv/journald"
)

const configuration = `
groups:
  - name: %s
    policy:
      election: managed
      lease: {duration: %s, renewEvery: %s, releaseWithin: %s}
`

func configure(t *testing.T, lease time.Duration, more string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "journald.yaml")
	text := fmt.Sprintf(configuration, group, lease, lease/4, lease) + more
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// port is one that nobody listens on.
func port(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}

// embedded is a journald with its own NATS server, and three candidates.
type embedded struct {
	*testing.T
	random  *rand.Rand
	history *history
	args    []string
	server  string
	owner   *journald.Process
	members map[string]*process
}

const lease = 2 * time.Second

// Everything is killed, and frozen for longer than a lease, at random moments. No two processes ever both lead.
func TestKillsAndFreezes(t *testing.T) {
	e := &embedded{T: t, random: random(t), history: newHistory(), members: map[string]*process{}}
	address := port(t)
	e.server = "http://" + address
	e.args = []string{"--config", configure(t, lease, ""), "--data", t.TempDir(), "--instance", "journald-0", "--listen", address}
	e.owner = bin.Start(t, e.args...)
	for _, name := range []string{"a", "b", "c"} {
		e.members[name] = launch(t, e.history, e.server, name)
	}
	e.history.await(t, 0, "the start")
	for range number(t, faultsVariable, 15) {
		e.fault()
	}
	e.history.check(t)
}

// fault has one thing happen, waits until it is over and both components are led, and says how long that took.
func (e *embedded) fault() {
	e.Helper()
	leader := e.history.leader(components[e.random.IntN(len(components))])
	<-time.After(time.Duration(e.random.Int64N(int64(lease / 2))))
	began := now()
	var what string
	switch e.random.IntN(5) {
	case 0:
		what = "the leader was killed"
		leader.kill()
		e.members[leader.name] = launch(e.T, e.history, e.server, leader.name)
	case 1:
		what = "the leader was frozen"
		leader.freeze(e.T)
		<-time.After(lease/2 + time.Duration(e.random.Int64N(int64(2*lease))))
		leader.thaw(e.T)
	case 2:
		what = "the leader was ended"
		leader.terminate(e.T)
		e.members[leader.name] = launch(e.T, e.history, e.server, leader.name)
	case 3:
		what = "journald was killed"
		e.owner.Kill()
		e.owner = bin.Start(e.T, e.args...)
	case 4:
		what = "journald was frozen"
		e.owner.Freeze()
		<-time.After(time.Duration(e.random.Int64N(int64(2 * lease))))
		e.owner.Thaw()
	}
	e.Logf("%s: both are led after %s", what, e.history.await(e.T, began, what).Round(time.Millisecond))
}
