package candidate_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/leadership-journal/journald/candidate"
)

// latch is an election as Curator's LeaderLatch holds it: a node for each participant, and the lowest number leads. The
// channel is of the connection's events: whoever is not connected does not lead.
func latch(conn *zk.Conn, events <-chan zk.Event, dir, id string) candidate.Elector {
	return func(ctx context.Context, component string, lead func(context.Context, candidate.Won) error) error {
		ctx, lost := context.WithCancel(ctx)
		defer lost()
		own, err := conn.CreateProtectedEphemeralSequential(path.Join(dir, component)+"/latch-", []byte(id), zk.WorldACL(zk.PermAll))
		if err != nil {
			return fmt.Errorf("take part in the latch: %w", err)
		}
		defer conn.Delete(own, -1) // the session's end does it where this fails
		go func() {
			defer lost()
			for {
				select {
				case e := <-events:
					if e.State == zk.StateDisconnected || e.State == zk.StateExpired {
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}()
		if err := first(ctx, conn, own); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		return lead(ctx, candidate.Won{Session: strings.TrimPrefix(path.Base(own), "_c_")})
	}
}

// first waits until a node is the lowest of its directory.
func first(ctx context.Context, conn *zk.Conn, own string) error {
	for {
		names, _, err := conn.Children(path.Dir(own))
		if err != nil {
			return fmt.Errorf("list the latch: %w", err)
		}
		slices.SortFunc(names, func(a, b string) int { return strings.Compare(number(a), number(b)) })
		at := slices.Index(names, path.Base(own))
		switch at {
		case 0:
			return nil
		case -1:
			return errors.New("our node is gone")
		}
		there, _, gone, err := conn.ExistsW(path.Join(path.Dir(own), names[at-1]))
		if err != nil {
			return fmt.Errorf("watch the participant before: %w", err)
		}
		if !there {
			continue
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func number(node string) string { return node[strings.LastIndexByte(node, '-')+1:] }
