package testenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/leadership-journal/journald/internal/testenv/suspend"
)

const (
	zooKeeperJar     = "/usr/share/java/zookeeper.jar" // its manifest names what else it needs, save a logger
	zooKeeperLog     = "/usr/share/java/slf4j-simple.jar"
	zooKeeperMain    = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
	zooKeeperStop    = 20 * time.Second
	zooKeeperAnswer  = time.Second
	zooKeeperInstall = "apt-get install -y --no-install-recommends zookeeper default-jre-headless"
)

// Nodes live for seconds on a loaded machine: ticks are short, so that sessions expire and nodes that hang
// are dropped (syncLimit, in ticks: two seconds) while a test looks on, and nodes have ten seconds to follow a
// leader (initLimit). A client gets the session time-out that it asks for, from 200 ms to a minute.
//
// forceSync stays as ZooKeeper has it, on: a write is on disk before it is acknowledged, so that what a killed
// node has promised is there when it starts again. So does snapCount.
const zooKeeperConfig = `tickTime=100
initLimit=100
syncLimit=20
minSessionTimeout=200
maxSessionTimeout=60000
maxClientCnxns=0
clientPortAddress=127.0.0.1
clientPort=%d
dataDir=%s
admin.enableServer=false
electionPortBindRetry=1
fastleader.maxNotificationInterval=500
4lw.commands.whitelist=srvr
`

// zooKeeperNode is one server: its address and data, which stay, and its process, which comes and goes.
type zooKeeperNode struct {
	name   string
	port   int // of clients
	dir    string
	output tail

	process *process // nil while stopped
	frozen  bool
}

// zooKeeperProgram returns the java command.
func zooKeeperProgram() (string, error) {
	java, err := exec.LookPath("java")
	for _, jar := range []string{zooKeeperJar, zooKeeperLog} {
		_, missing := os.Stat(jar)
		err = errors.Join(err, missing)
	}
	if err != nil {
		return "", fmt.Errorf("finding ZooKeeper (install it with `%s`): %w", zooKeeperInstall, err)
	}
	return java, nil
}

func (n *zooKeeperNode) addr() string { return net.JoinHostPort(loopback, strconv.Itoa(n.port)) }

// configure writes the node's files. Members are the lines of all nodes of an ensemble, empty for a single one.
func (n *zooKeeperNode) configure(id int, members string) error {
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		return err
	}
	config := fmt.Sprintf(zooKeeperConfig, n.port, n.dir) + members
	return errors.Join(
		os.WriteFile(filepath.Join(n.dir, "zoo.cfg"), []byte(config), 0o600),
		os.WriteFile(filepath.Join(n.dir, "myid"), []byte(strconv.Itoa(id)), 0o600))
}

// leads tells whether a node of this mode decides what is written.
func leads(mode string) bool { return mode == "leader" || mode == "standalone" }

// start does not wait until the node serves. The JVM is told to start quickly, stay small, and leave no file
// of its own behind when it is killed.
func (n *zooKeeperNode) start(r *reaper, java string) (err error) {
	n.process, err = r.start(n.name, &n.output, java,
		"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Djava.net.preferIPv4Stack=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", zooKeeperJar+string(os.PathListSeparator)+zooKeeperLog,
		zooKeeperMain, filepath.Join(n.dir, "zoo.cfg"))
	return err
}

// failure tells why the node will not come to serve. It is nil for one that still may, and for a stopped one.
func (n *zooKeeperNode) failure() error {
	if n.process == nil || n.process.running() {
		return nil
	}
	return fmt.Errorf("%s ended by itself: %w\n%s", n.name, n.process.err, &n.output)
}

// stop ends the node's process in good order, if it runs.
func (n *zooKeeperNode) stop() error {
	if n.process == nil {
		return nil
	}
	err := errors.Join(n.thaw(), n.process.stop(zooKeeperStop))
	n.process = nil
	return err
}

func (n *zooKeeperNode) kill() error {
	if n.process == nil {
		return nil
	}
	if err := n.process.kill(); err != nil {
		return err
	}
	n.process, n.frozen = nil, false
	return nil
}

func (n *zooKeeperNode) freeze() error {
	if n.process == nil {
		return errors.New("it does not run")
	}
	if err := suspend.Suspend(n.process.cmd.Process); err != nil {
		return err
	}
	n.frozen = true
	return nil
}

func (n *zooKeeperNode) thaw() error {
	if !n.frozen {
		return nil
	}
	if err := suspend.Resume(n.process.cmd.Process); err != nil {
		return err
	}
	n.frozen = false
	return nil
}

// mode returns what the node is: standalone, leader or follower, and nothing while it doesn't serve.
func (n *zooKeeperNode) mode(ctx context.Context) string {
	if n.process == nil || n.frozen {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, zooKeeperAnswer)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.addr())
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return ""
	}
	return readMode(conn)
}

// readMode doesn't wait for the end of the answer: ZooKeeper 3.8 forgets to close the connection of whoever asks
// while it starts.
func readMode(answer io.Reader) string {
	lines := bufio.NewScanner(answer)
	for lines.Scan() {
		if mode, found := strings.CutPrefix(lines.Text(), "Mode: "); found {
			return mode
		}
		if strings.Contains(lines.Text(), "not currently serving") {
			return ""
		}
	}
	return ""
}
