package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/leadership-journal/journald/adapters/kv"
	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/config"
	"github.com/leadership-journal/journald/internal/records"
	"github.com/leadership-journal/journald/internal/tlsfile"
	"github.com/leadership-journal/journald/journal/stream"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/server"
)

// node is a journald that serves.
type node struct {
	*process
	logger   *slog.Logger
	level    *slog.LevelVar
	sources  config.Sources
	listener net.Listener

	mu        sync.Mutex // one reload at a time
	effective *config.Effective

	log       *stream.Log
	leaders   *kv.Bucket
	alive     *alive.Bucket
	targets   *connector
	projector *projector.Projector
	server    *server.Server
}

const (
	openTimeout = time.Minute // an embedded server may have to read its files, a cluster has to form
	leaseTime   = 2 * time.Second
)

// open makes everything, in order; close takes down as much as was made.
func (n *node) open(ctx context.Context) error {
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	options, err := n.streamOptions()
	if err != nil {
		return err
	}
	if n.log, err = stream.Open(opening, options); err != nil {
		return unreachable(err)
	}
	if n.leaders, err = kv.Open(opening, n.log.JetStream(), kv.Options{Replicas: options.Replicas, Logger: n.logger}); err != nil {
		return unreachable(fmt.Errorf("open the key-value bucket: %w", err))
	}
	if n.alive, err = alive.Open(opening, n.log.JetStream(), alive.Options{Replicas: options.Replicas, Logger: n.logger}); err != nil {
		return unreachable(fmt.Errorf("open the bucket of liveness keys: %w", err))
	}
	last, err := n.log.Last(opening)
	if err != nil {
		return unreachable(fmt.Errorf("read the journal: %w", err))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	version, revision := versions()
	metrics, err := server.NewMetrics(registry, server.MetricsOptions{
		Since: last, MaxSeries: n.effective.Metrics.MaxSeries, Version: version, Revision: revision,
	})
	if err != nil {
		return fmt.Errorf("make the metrics: %w", err)
	}
	return n.wire(ctx, registry, metrics)
}

func (n *node) wire(ctx context.Context, registry *prometheus.Registry, metrics *server.Metrics) (err error) {
	n.targets = &connector{
		ctx: context.WithoutCancel(ctx), kubernetes: n.effective.Kubernetes, zookeeper: n.effective.ZooKeeper, logger: n.logger,
	}
	n.projector, err = projector.New(projector.Config{
		Instance: n.effective.Instance, Log: n.log, Lease: n.log.NewLease(leaseTime), Connect: n.targets.connect, Leaders: n.leaders.Target,
		Alive: n.alive, Settings: n.effective.Settings(), Meter: metrics, Logger: n.logger, Seed: rand.Uint64(),
	})
	if err != nil {
		return err
	}
	options := server.Options{
		Log: n.log, Reader: records.New(n.log.JetStream(), stream.Name), Projector: n.projector,
		Alive: n.alive, Metrics: metrics, Gatherer: registry, Size: n.size, Durability: n.durability, Logger: n.logger,
	}
	if n.sources.File != "" {
		options.Reload = n.reload
	}
	n.server, err = server.New(context.WithoutCancel(ctx), options)
	return err
}

func (n *node) size(ctx context.Context) (server.Size, error) {
	info, err := n.log.Info(ctx)
	return server.Size{Last: info.Last, Bytes: info.Bytes, MaxBytes: info.MaxBytes}, err
}

func (n *node) durability() (verified bool, detail string) {
	d := n.log.Durability()
	return d.Verified, d.Detail
}

// run serves until ctx ends. The API ends first, so that what it has accepted is still folded and pushed.
func (n *node) run(ctx context.Context) error {
	folding := newGroup(context.WithoutCancel(ctx))
	folding.start("the projector ended", n.projector.Run)
	serving := newGroup(ctx)
	serving.start("the API ended", func(ctx context.Context) error { return n.server.Serve(ctx, n.listener) })
	serving.start("reloading ended", n.watchHangups)
	serving.start("the projector ended", func(ctx context.Context) error {
		select {
		case <-folding.ctx.Done():
			return errors.New("see its error")
		case <-ctx.Done():
			return nil
		}
	})
	err := serving.wait()
	folding.cancel(nil)
	if failed := folding.wait(); failed != nil {
		return unreachable(failed)
	}
	return err
}

// close takes down what open made, in reverse, each step bounded.
func (n *node) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	var errs []error
	if err := n.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		errs = append(errs, fmt.Errorf("close the listener: %w", err))
	}
	if n.targets != nil {
		n.targets.close()
	}
	if n.leaders != nil {
		if err := n.leaders.Close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close the key-value bucket: %w", err))
		}
	}
	if n.log != nil {
		if err := n.log.Close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close the journal: %w", err))
		}
	}
	return errors.Join(errs...)
}

func (n *node) watchHangups(ctx context.Context) error {
	for {
		select {
		case <-n.hangups:
			_ = n.reload(ctx) // it was logged, and what is in force stays
		case <-ctx.Done():
			return nil
		}
	}
}

// reload reads the configuration again. What can't be used changes nothing.
func (n *node) reload(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	next, err := config.Load(n.sources)
	if err != nil {
		n.logger.ErrorContext(ctx, "the configuration can't be used, the one in force stays", "error", err)
		return err
	}
	if err := n.projector.Configure(ctx, next.Settings()); err != nil {
		return err
	}
	n.level.Set(levelOf(next.Log.Level))
	if keys := next.Needs(n.effective); len(keys) > 0 {
		n.logger.WarnContext(ctx, "some of what changed takes a restart", "keys", keys)
	}
	n.effective = next
	n.logger.InfoContext(ctx, "the configuration was read again", "groups", len(next.Groups))
	return nil
}

// place is where the journal is, in words.
func (n *node) place() string {
	if n.effective.NATS.Embedded {
		return "in " + n.effective.Data
	}
	return "on other NATS servers"
}

func (n *node) streamOptions() (stream.Options, error) {
	c := &n.effective.NATS
	o := stream.Options{Replicas: c.Replicas, MaxBytes: int64(c.MaxBytes), Instance: n.effective.Instance, Logger: n.logger}
	if !c.Embedded {
		o.URL, o.Credentials, o.SystemCredentials = c.URL, c.Credentials, c.SystemCredentials
		var err error
		o.TLS, err = clientTLS(&c.TLS)
		return o, err
	}
	dir, err := filepath.Abs(n.effective.Data)
	if err != nil {
		return o, fmt.Errorf("find the data directory: %w", err)
	}
	o.Embedded = &stream.Embedded{Dir: dir, Listen: c.Listen, MaxStore: int64(c.MaxStore)}
	if c.Cluster.Name != "" {
		o.Embedded.Cluster = &stream.Cluster{Name: c.Cluster.Name, Listen: c.Cluster.Listen, Routes: c.Cluster.Routes}
	}
	return o, nil
}

// clientTLS reads the files; nil where none is named.
func clientTLS(c *config.TLS) (*tls.Config, error) {
	out, err := tlsfile.Files{CA: c.CA, Certificate: c.Cert, Key: c.Key}.Load()
	if err != nil {
		return nil, usage(fmt.Errorf("nats.tls: %w", err))
	}
	return out, nil
}
