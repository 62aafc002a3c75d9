package testenv

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStoppedZooKeeperLeavesNothing(t *testing.T) {
	z, err := StartZooKeeper(t.Context(), 3)
	require.NoError(t, err)
	dir := z.reaper.dir
	running := pids(t, dir)
	require.Len(t, running, 3)
	require.NoError(t, z.Freeze(0))
	require.NoError(t, z.Kill(1))
	require.Len(t, pids(t, dir), 2)

	require.NoError(t, z.Stop())
	requireGone(t, running)
	require.NoDirExists(t, dir)
	require.NoError(t, z.Stop())
	require.Error(t, z.Start(1))
}

func TestReaperKillsTheZooKeeperThatTheOwnerLeft(t *testing.T) {
	z, err := StartZooKeeper(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, z.Freeze(0), "it is killed all the same")
	node := z.nodes[0].process
	running := pids(t, z.reaper.dir)
	require.Equal(t, []int{node.cmd.Process.Pid}, running)

	require.NoError(t, z.reaper.reap(), "closing its input is what the system does when the owner ends")
	<-node.exited
	var exit *exec.ExitError
	require.ErrorAs(t, node.err, &exit)
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
	requireGone(t, running)
	require.NoDirExists(t, z.reaper.dir)
}

func requireGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	}
}

// takenPort returns a port on which somebody listens until the end of the test.
func takenPort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	return listener.Addr().(*net.TCPAddr).Port
}

func TestZooKeeperTakesOtherPortsWhereOneIsTaken(t *testing.T) {
	asked := 0
	z, err := startZooKeeper(t.Context(), 1, func(n int) ([]int, error) {
		asked++
		ports, err := freePorts(n)
		if asked == 1 && err == nil {
			ports[0] = takenPort(t)
		}
		return ports, err
	})
	require.NoError(t, err)
	require.Equal(t, 2, asked)
	require.NoError(t, z.Stop())
}

func TestZooKeeperSaysThatAPortIsTaken(t *testing.T) {
	java, err := zooKeeperProgram()
	require.NoError(t, err)
	for name, test := range map[string]struct{ size, port int }{
		"of clients":  {size: 1, port: 0},
		"of election": {size: 3, port: 2},
	} {
		t.Run(name, func(t *testing.T) {
			ports, err := freePorts(3 * test.size)
			require.NoError(t, err)
			ports[test.port] = takenPort(t)
			_, err = startOnPorts(t.Context(), java, ports)
			require.ErrorIs(t, err, errPortTaken)
			require.ErrorContains(t, err, "java.net.BindException")
		})
	}
}

func TestZooKeeperThatFailsToStartShowsWhy(t *testing.T) {
	z, err := StartZooKeeper(t.Context(), 1)
	require.NoError(t, err)
	defer func() { require.NoError(t, z.Stop()) }()
	require.NoError(t, z.Kill(0))
	config := filepath.Join(z.nodes[0].dir, "zoo.cfg")
	require.NoError(t, os.WriteFile(config, []byte("tickTime=never\n"), 0o600))

	require.NoError(t, z.Start(0))
	err = z.AwaitQuorum(t.Context())
	require.ErrorContains(t, err, "zookeeper-0 ended by itself: exit status")
	require.ErrorContains(t, err, `For input string: "never"`)
}

func TestMissingZooKeeperNamesWhatInstallsIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := StartZooKeeper(t.Context(), 1)
	require.ErrorIs(t, err, exec.ErrNotFound)
	require.ErrorContains(t, err, "apt-get install -y --no-install-recommends zookeeper")
}

func TestZooKeeperModeIsReadFromAnAnswerWithoutEnd(t *testing.T) {
	for answer, want := range map[string]string{
		"Zookeeper version: 3.8.0\nMode: follower\nNode count: 5\n":   "follower",
		"This ZooKeeper instance is not currently serving requests\n": "",
	} {
		t.Run(want, func(t *testing.T) {
			server, client := net.Pipe()
			defer func() { require.NoError(t, server.Close()) }()
			require.NoError(t, client.SetDeadline(time.Now().Add(time.Minute)))
			var asked sync.WaitGroup
			asked.Go(func() { _, _ = server.Write([]byte(answer)) })
			start := time.Now()
			require.Equal(t, want, readMode(client))
			require.Less(t, time.Since(start), time.Minute)
			asked.Wait()
		})
	}
}

func TestZooKeeperLeaderAloneIsNoQuorum(t *testing.T) {
	single := ZooKeeper(t)
	require.True(t, single.quorum(t.Context()))
	alone := &ZooKeeperNodes{nodes: []*zooKeeperNode{single.nodes[0], {}, {}}}
	require.Equal(t, 0, alone.Leader(t.Context()))
	require.False(t, alone.quorum(t.Context()), "it has not noticed yet that the others are gone")
}
