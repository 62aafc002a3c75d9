package zkworld

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	gozk "github.com/go-zookeeper/zk"
)

// ErrUnreachable says that no server of the ensemble could be reached, or that the connection to it was lost.
var ErrUnreachable = errors.New("ZooKeeper can't be reached")

// tree is ZooKeeper as somebody beside journald reads and changes it. The library knows no contexts: none of its
// requests is begun once a context has ended, and one that is under way ends when the server has answered or the
// connection is given up, after some seconds.
type tree struct {
	conn   *gozk.Conn
	events <-chan gozk.Event
}

// dial returns when a server has answered.
func dial(servers []string) (*tree, error) {
	conn, events, err := gozk.Connect(servers, sessionTimeout, gozk.WithLogInfo(false), gozk.WithLogger(silent{}))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	t := &tree{conn, events}
	if _, _, err := conn.Exists("/"); err != nil {
		t.close()
		return nil, failed("connect to", strings.Join(servers, ","), err)
	}
	return t, nil
}

type silent struct{}

// Printf implements [gozk.Logger]. What matters comes back as an error.
func (silent) Printf(string, ...any) {}

// close returns when nothing of the library's runs any more.
func (t *tree) close() {
	t.conn.Close()
	for range t.events {
	}
}

// failed says what was being done, and whether that the connection is lost was the reason.
func failed(doing, what string, err error) error {
	for _, lost := range []error{gozk.ErrNoServer, gozk.ErrConnectionClosed, gozk.ErrClosing, gozk.ErrSessionExpired} {
		if errors.Is(err, lost) {
			return fmt.Errorf("%s %s: %w: %w", doing, what, ErrUnreachable, err)
		}
	}
	return fmt.Errorf("%s %s: %w", doing, what, err)
}

// node is a znode as it was read.
type node struct {
	there    bool
	data     []byte
	revision uint64 // the zxid of its last change; where there is none, one that is not older than its deletion
}

func (t *tree) read(ctx context.Context, name string) (node, error) {
	if ctx.Err() != nil {
		return node{}, context.Cause(ctx)
	}
	if _, err := t.conn.Sync(name); err != nil {
		return node{}, failed("read", name, err)
	}
	data, stat, err := t.conn.Get(name)
	if errors.Is(err, gozk.ErrNoNode) {
		return t.absent(name)
	}
	if err != nil {
		return node{}, failed("read", name, err)
	}
	return node{there: true, data: data, revision: uint64(stat.Mzxid)}, nil
}

// absent goes up to the directory that there still is: it says when something was last made or deleted in it.
func (t *tree) absent(name string) (node, error) {
	for {
		name = path.Dir(name)
		there, stat, err := t.conn.Exists(name)
		if err != nil {
			return node{}, failed("read", name, err)
		}
		if there {
			return node{revision: uint64(stat.Pzxid)}, nil
		}
	}
}

// put is the request that gives a node its data, made where there is none.
func (t *tree) put(ctx context.Context, name string, data []byte) (any, error) {
	was, err := t.read(ctx, name)
	if err != nil || was.there {
		return &gozk.SetDataRequest{Path: name, Data: data, Version: -1}, err
	}
	return &gozk.CreateRequest{Path: name, Data: data, Acl: gozk.WorldACL(gozk.PermAll)}, t.makeDir(ctx, path.Dir(name))
}

// write makes all of the changes or, where it fails, none.
func (t *tree) write(ctx context.Context, changes []any) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, err := t.conn.Multi(changes...); err != nil {
		return failed("write", fmt.Sprintf("%d nodes", len(changes)), err)
	}
	return nil
}

// makeDir makes a node, and first what is missing above it.
func (t *tree) makeDir(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	there, _, err := t.conn.Exists(name)
	if err != nil {
		return failed("read", name, err)
	}
	if there {
		return nil
	}
	if err := t.makeDir(ctx, path.Dir(name)); err != nil {
		return err
	}
	_, err = t.conn.Create(name, nil, gozk.FlagPersistent, gozk.WorldACL(gozk.PermAll))
	if err != nil && !errors.Is(err, gozk.ErrNodeExists) {
		return failed("make", name, err)
	}
	return nil
}

// empty deletes what is below a node.
func (t *tree) empty(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	children, _, err := t.conn.Children(name)
	if err != nil && !errors.Is(err, gozk.ErrNoNode) {
		return failed("list", name, err)
	}
	for _, child := range children {
		if err := t.remove(ctx, name+"/"+child); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a node and what is below it.
func (t *tree) remove(ctx context.Context, name string) error {
	if err := t.empty(ctx, name); err != nil {
		return err
	}
	if err := t.conn.Delete(name, -1); err != nil && !errors.Is(err, gozk.ErrNoNode) {
		return failed("delete", name, err)
	}
	return nil
}

// split takes the chroot off the last server.
func split(servers []string) (hosts []string, root string) {
	hosts = slices.Clone(servers)
	last := len(hosts) - 1
	hosts[last], root, _ = strings.Cut(hosts[last], "/")
	if root != "" {
		root = "/" + root
	}
	return hosts, root
}
