package candidate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leadership-journal/journald/candidate"
	"github.com/leadership-journal/journald/client"
)

// A service that elects on ZooKeeper, as Curator's LeaderLatch does.
func Example_latch() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	conn, events, err := zk.Connect([]string{"zookeeper:2181"}, 10*time.Second)
	if err != nil {
		logger.Error("no ZooKeeper", "error", err)
		return
	}
	defer conn.Close()
	journal, err := client.Open(ctx, client.Options{Server: "http://journald:8086", Group: "shop", Logger: logger})
	if err != nil {
		logger.Error("no journal", "error", err)
		return
	}
	defer func() { _ = journal.Close() }()
	err = candidate.Run(ctx, candidate.Config{
		Client: journal, Name: "shop-0", Components: []string{"reconciler"}, Address: "http://shop-0:8080", Logger: logger,
		Elector: latch(conn, events, "/elections", "shop-0"),
	}, candidate.Callbacks{OnGranted: reconcile})
	if err != nil {
		logger.Error("candidate ended", "error", err)
	}
}

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
		defer func() { _ = conn.Delete(own, -1) }() // where this fails the session's end does it
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
