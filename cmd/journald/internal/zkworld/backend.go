// Package zkworld runs scenarios against znodes of a real ZooKeeper: journald's own adapter writes them, and the
// scenario's faults happen where its transactions would leave the process.
package zkworld

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/leadership-journal/journald/adapters/zk"
	"github.com/leadership-journal/journald/cmd/journald/internal/sessions"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/scenario"
)

const (
	sessionTimeout = 10 * time.Second
	leaders        = "/leader"
	shownAt        = leaders + "/{component}/connection_info"
	fences         = "/leadership-journal"
)

// Backend has every target show its components in znodes of their own, in layout flink, below a directory whose name is
// new every time, so that scenarios do not meet each other's.
type Backend struct {
	servers []string // without a chroot
	root    string   // the chroot; empty: none
	tree    *tree
	logger  *slog.Logger
}

// New returns when it has reached a server, or with [ErrUnreachable] when each has been tried. The last server may end
// in a chroot, below which everything is made then.
func New(servers []string, logger *slog.Logger) (*Backend, error) {
	if err := zk.ValidateServers(servers); err != nil {
		return nil, err
	}
	hosts, root := split(servers)
	tree, err := dial(hosts)
	if err != nil {
		return nil, err
	}
	return &Backend{servers: hosts, root: root, tree: tree, logger: logger}, nil
}

// Close ends the connection.
func (b *Backend) Close() { b.tree.close() }

// Check implements [scenario.Backend]. It refuses what the adapter would refuse of targets like these whatever happens:
// one that is guarded, and a component whose name no znode can have.
func (b *Backend) Check(spec journal.Target, components []string) error {
	for _, component := range components {
		if strings.Contains(component, "/") {
			return fmt.Errorf("target %s: the name of a znode can't have a / as component %s has", spec.Name, component)
		}
	}
	return zk.Validate("scenario", describe(spec))
}

func describe(spec journal.Target) journal.Target {
	spec.Kind, spec.Layout, spec.Path = zk.Kind, zk.Flink, shownAt
	return spec
}

// Open implements [scenario.Backend].
func (b *Backend) Open(ctx context.Context, group string, spec journal.Target) (scenario.Object, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, fmt.Errorf("no name for the nodes of %s: %w", spec.Name, err)
	}
	base := b.root + "/journald-scenario-" + id.String()
	servers := slices.Clone(b.servers)
	servers[len(servers)-1] += base
	client, err := zk.NewClient(context.WithoutCancel(ctx), zk.Options{
		Servers: servers, SessionTimeout: sessionTimeout, Logger: b.logger, Wrap: gated,
	})
	if err != nil {
		return nil, err
	}
	if err := b.tree.makeDir(ctx, base); err != nil {
		client.Close()
		return nil, err
	}
	return &object{tree: b.tree, client: client, base: base, group: group, spec: describe(spec), names: sessions.Names{}}, nil
}

// object is the znodes of one target.
type object struct {
	tree   *tree
	client *zk.Client // its chroot is base
	base   string
	group  string
	spec   journal.Target
	names  sessions.Names
}

func (o *object) entryPath(component string) string {
	id := component
	switch component { // what Flink calls these in ZooKeeper
	case "resourcemanager":
		id = "resource_manager"
	case "restserver":
		id = "rest_server"
	}
	return o.base + leaders + "/" + id + "/connection_info"
}

func (o *object) fencePath(component string) string {
	return o.base + fences + "/" + o.group + "/" + o.spec.Name + "/" + component
}

// fence is as much of one as scenarios know.
type fence struct {
	Sequence uint64 `json:"sequence"`
}

// Target implements [scenario.Object].
func (o *object) Target() (projector.Target, error) {
	target, err := o.client.Connect(o.group, o.spec)
	if err != nil {
		return nil, err
	}
	return o.names.Target(target), nil
}

// Show implements [scenario.Object].
func (o *object) Show(ctx context.Context, component string) (scenario.State, error) {
	state := scenario.State{Entries: map[string]*journal.LeaderInfo{}}
	entry, err := o.tree.read(ctx, o.entryPath(component))
	if err != nil {
		return state, err
	}
	mark, err := o.tree.read(ctx, o.fencePath(component))
	if err != nil {
		return state, err
	}
	state.Revision = max(entry.revision, mark.revision)
	if mark.there {
		var f fence
		if err := json.Unmarshal(mark.data, &f); err != nil {
			return state, fmt.Errorf("read the fence of %s: %w", component, err)
		}
		state.Sequence = f.Sequence
	}
	if len(entry.data) == 0 {
		return state, nil
	}
	address, session, err := decode(entry.data)
	if err != nil {
		return state, fmt.Errorf("read the entry of %s: %w", component, err)
	}
	state.Entries[component] = &journal.LeaderInfo{Session: o.names[session], Address: address}
	return state, nil
}

// Write implements [scenario.Object].
func (o *object) Write(ctx context.Context, c scenario.Change) error {
	changes, err := o.changes(ctx, c)
	if err == nil {
		err = o.tree.write(ctx, changes)
	}
	if err != nil {
		return fmt.Errorf("change what is shown of %s: %w", c.Component, err)
	}
	return nil
}

// changes are those of the entry, which Flink shows no leader in by having it empty, and of the fence.
func (o *object) changes(ctx context.Context, c scenario.Change) ([]any, error) {
	var data []byte
	switch {
	case c.Touch:
		was, err := o.tree.read(ctx, o.entryPath(c.Component))
		if err != nil {
			return nil, err
		}
		data = was.data
	case c.Entry != nil:
		data = encode(c.Entry.Address, o.names.UUID(c.Entry.Session))
	}
	entry, err := o.tree.put(ctx, o.entryPath(c.Component), data)
	if err != nil || c.Sequence == 0 {
		return []any{entry}, err
	}
	if data, err = json.Marshal(fence{c.Sequence}); err != nil {
		return nil, err
	}
	mark, err := o.tree.put(ctx, o.fencePath(c.Component), data)
	return []any{entry, mark}, err
}

// Drop implements [scenario.Object].
func (o *object) Drop(ctx context.Context) error { return o.tree.empty(ctx, o.base) }

// Close implements [scenario.Object].
func (o *object) Close(ctx context.Context) error {
	o.client.Close()
	return o.tree.remove(ctx, o.base)
}
