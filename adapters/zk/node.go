package zk

import (
	"context"
	"errors"
	"fmt"
	"path"

	gozk "github.com/go-zookeeper/zk"
)

// node is a znode as it was read.
type node struct {
	data    []byte
	version int32
	zxid    uint64 // of the transaction that changed it last
	created uint64 // of the one that made it
	owner   int64  // the session that it is ephemeral to; 0: it is persistent
}

func newNode(data []byte, stat *gozk.Stat) *node {
	return &node{data: data, version: stat.Version, zxid: uint64(stat.Mzxid), created: uint64(stat.Czxid), owner: stat.EphemeralOwner}
}

// get reads a node; nil: there is none.
func (s *session) get(ctx context.Context, path string) (*node, error) {
	n, err := do(ctx, s, func(conn *gozk.Conn) (*node, error) {
		data, stat, err := conn.Get(path)
		if err != nil {
			return nil, err
		}
		return newNode(data, stat), nil
	})
	return n, reading(path, err)
}

// getWatched reads a node and has it, or its coming to be, watched.
func (s *session) getWatched(ctx context.Context, path string) (*node, error) {
	n, err := do(ctx, s, func(conn *gozk.Conn) (*node, error) {
		for {
			data, stat, _, err := conn.GetW(path)
			if err == nil {
				return newNode(data, stat), nil
			}
			if !errors.Is(err, gozk.ErrNoNode) {
				return nil, err
			}
			there, _, _, err := conn.ExistsW(path)
			if err != nil || !there {
				return nil, err
			}
		}
	})
	return n, reading(path, err)
}

// listing is the children of a node as they were read.
type listing struct {
	names []string
	zxid  uint64 // of the transaction that last made or removed one
}

// list reads the names of a node's children; nil: there is no such node.
func (s *session) list(ctx context.Context, path string) (*listing, error) {
	l, err := do(ctx, s, func(conn *gozk.Conn) (*listing, error) {
		names, stat, err := conn.Children(path)
		if err != nil {
			return nil, err
		}
		return &listing{names, uint64(stat.Pzxid)}, nil
	})
	return l, reading(path, err)
}

// listWatched reads the names of a node's children and has them, or the node's coming to be, watched.
func (s *session) listWatched(ctx context.Context, path string) (*listing, error) {
	l, err := do(ctx, s, func(conn *gozk.Conn) (*listing, error) {
		for {
			names, stat, _, err := conn.ChildrenW(path)
			if err == nil {
				return &listing{names, uint64(stat.Pzxid)}, nil
			}
			if !errors.Is(err, gozk.ErrNoNode) {
				return nil, err
			}
			there, _, _, err := conn.ExistsW(path)
			if err != nil || !there {
				return nil, err
			}
		}
	})
	return l, reading(path, err)
}

// sync has the server catch up with the ensemble: what is read next is not older than what anybody was told before. A
// server that leads the ensemble answers at once, and may still be a moment behind what it has committed; what is written
// then is refused for its version, and read again.
func (s *session) sync(ctx context.Context, path string) error {
	_, err := do(ctx, s, func(conn *gozk.Conn) (string, error) { return conn.Sync(path) })
	if err != nil {
		return fmt.Errorf("catch up with the ensemble: %w", err)
	}
	return nil
}

// absentSince is a transaction that a node was removed by, or one after it: the newest that made or removed a child of
// its nearest ancestor. It rises with every such change, and is read after the node was seen missing.
func (s *session) absentSince(ctx context.Context, name string) (uint64, error) {
	for {
		name = path.Dir(name)
		zxid, err := do(ctx, s, func(conn *gozk.Conn) (uint64, error) {
			there, stat, err := conn.Exists(name)
			if err != nil || !there {
				return 0, err
			}
			return uint64(stat.Pzxid), nil
		})
		if err != nil || zxid != 0 || name == "/" {
			return zxid, reading(name, err)
		}
	}
}

// makeParents makes whatever is missing above a node, for good: a container would be reaped, and start its children's
// numbers anew.
func (s *session) makeParents(ctx context.Context, name string, acl []gozk.ACL) error {
	parent := path.Dir(name)
	there, err := do(ctx, s, func(conn *gozk.Conn) (bool, error) {
		there, _, err := conn.Exists(parent)
		return there, err
	})
	if err != nil || there || parent == "/" {
		return reading(parent, err)
	}
	if err := s.makeParents(ctx, parent, acl); err != nil {
		return err
	}
	_, err = do(ctx, s, func(conn *gozk.Conn) (string, error) { return conn.Create(parent, nil, gozk.FlagPersistent, acl) })
	if err != nil && !errors.Is(err, gozk.ErrNodeExists) {
		return fmt.Errorf("make %s: %w", parent, err)
	}
	return nil
}

// transact makes several changes, or none of them, and returns the last one's stat.
func (s *session) transact(ctx context.Context, changes []any) (*gozk.Stat, error) {
	return do(ctx, s, func(conn *gozk.Conn) (*gozk.Stat, error) {
		answers, err := conn.Multi(changes...)
		if err != nil {
			return nil, err
		}
		if len(answers) != len(changes) || answers[len(answers)-1].Stat == nil {
			return nil, errors.New("the server did not answer for every change of a transaction")
		}
		return answers[len(answers)-1].Stat, nil
	})
}
