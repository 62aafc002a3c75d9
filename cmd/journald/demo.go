package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadership-journal/journald/adapters/kv"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/journal/stream"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
)

func (p *process) newDemo() *cobra.Command {
	return &cobra.Command{
		Use:   "demo flink",
		Short: "Play a leadership incident, with and without journald",
		Long: "Play FLINK-40114 on an embedded journal in a temporary directory: what a handler without a fence erases, step by\n" +
			"step, and what journald keeps. It takes a few seconds, needs nothing and leaves nothing behind. It ends with 1 if\n" +
			"the outcome is not the one that it claims.",
		Example:   "  journald demo flink",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"flink"},
		RunE:      func(c *cobra.Command, _ []string) error { return p.demoFlink(c.Context()) },
	}
}

// stage is a journald in a temporary directory, with one ConfigMap in memory as the target of its one group.
type stage struct {
	dir       string
	log       *stream.Log
	leaders   *kv.Bucket
	projector *projector.Projector
	cm        *configMap
	folding   *group
}

const demoGroup = "flink-demo"

// newStage opens everything and waits until the projector acts.
func newStage(ctx context.Context) (s *stage, err error) {
	s = &stage{cm: newConfigMap()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	if s.dir, err = os.MkdirTemp("", "journald-demo-"); err != nil {
		return s, fmt.Errorf("make a directory for the demo: %w", err)
	}
	quiet := slog.New(slog.DiscardHandler)
	s.log, err = stream.Open(ctx, stream.Options{Embedded: &stream.Embedded{Dir: s.dir, MaxStore: 64 << 20}, Instance: "demo", Logger: quiet})
	if err != nil {
		return s, unreachable(fmt.Errorf("open the demo's journal: %w", err))
	}
	if s.leaders, err = kv.Open(ctx, s.log.JetStream(), kv.Options{Logger: quiet}); err != nil {
		return s, unreachable(fmt.Errorf("open the demo's key-value bucket: %w", err))
	}
	targets := []journal.Target{{Name: "cm", Kind: "demo"}}
	s.projector, err = projector.New(projector.Config{
		Instance: "demo", Log: s.log, Lease: s.log.NewLease(leaseTime), Leaders: s.leaders.Target, Logger: quiet,
		Connect: func(string, journal.Target) (projector.Target, error) { return s.cm, nil },
		Settings: projector.Settings{
			Defaults: policy.Default(),
			Groups:   map[string]projector.Group{demoGroup: {Policy: policy.Default(), Targets: targets}},
		},
	})
	if err != nil {
		return s, err
	}
	s.folding = newGroup(context.WithoutCancel(ctx))
	s.folding.start("the projector ended", s.projector.Run)
	return s, s.until(ctx, func() bool { return s.projector.Status().Active })
}

// until waits for what a record brings about.
func (s *stage) until(ctx context.Context, holds func() bool) error {
	for {
		changed := s.projector.Changed()
		if holds() {
			return nil
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond): // that it acts is no record
		case <-ctx.Done():
			return fmt.Errorf("the demo waits for journald: %w", ctx.Err())
		}
	}
}

func (s *stage) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	var errs []error
	if s.folding != nil {
		s.folding.cancel(nil)
		errs = append(errs, s.folding.wait())
	}
	if s.leaders != nil {
		errs = append(errs, s.leaders.Close(ctx))
	}
	if s.log != nil {
		errs = append(errs, s.log.Close(ctx))
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
