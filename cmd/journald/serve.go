package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadership-journal/journald/adapters/zk"
	"github.com/leadership-journal/journald/config"
)

// configFlags are the flags that say what a file would, with their keys.
func configFlags() []struct{ name, key, help string } {
	return []struct{ name, key, help string }{
		{"listen", "listen", "host:port of the HTTP API"},
		{"data", "data", "directory of the embedded NATS server"},
		{"instance", "instance", "name of this instance, unique on one journal"},
		{"insecure", "insecure", "listen beyond loopback with nobody asked who they are"},
		{"nats-url", "nats.url", "NATS servers elsewhere, in place of the embedded one"},
		{"nats-listen", "nats.listen", "host:port at which the embedded NATS server takes clients"},
		{"kubeconfig", "kubernetes.kubeconfig", "kubeconfig file"},
		{"context", "kubernetes.context", "context of the kubeconfig"},
		{"zookeeper", "zookeeper.servers", "ZooKeeper's servers, comma-separated; the last one may end in a chroot"},
		{"log-level", "log.level", "debug, info, warn or error"},
		{"log-format", "log.format", "text or json"},
	}
}

// addConfigFlags gives a command what a configuration is read from.
func addConfigFlags(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "config", "", "configuration file (JOURNALD_CONFIG)")
	for _, f := range configFlags() {
		if f.key == "insecure" {
			c.Flags().Bool(f.name, false, f.help)
		} else {
			c.Flags().String(f.name, "", f.help)
		}
	}
}

// sources are where the configuration of a command is read from.
func (p *process) sources(c *cobra.Command, file string) config.Sources {
	s := config.Sources{
		File: first(file, p.env("JOURNALD_CONFIG")), Env: p.environ, Flags: map[string]config.Flag{},
		Target: checkTarget, ZooKeeper: zk.ValidateServers,
	}
	for _, f := range configFlags() {
		c.Flags().Visit(func(given *pflag.Flag) {
			if given.Name == f.name {
				s.Flags[f.key] = config.Flag{Name: f.name, Value: given.Value.String()}
			}
		})
	}
	return s
}

func (p *process) newServe() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the journal, the projector and the HTTP API",
		Long: "Run the journal, the projector and the HTTP API. With no configuration at all the journal is kept in ./data by a\n" +
			"NATS server within this process, and the API listens on 127.0.0.1:8086.\n\n" +
			"SIGTERM ends it with 0; SIGHUP and POST /-/reload read the configuration again.",
		Example: "  journald serve\n  journald serve --config journald.yaml\n" +
			"  journald serve --data /var/lib/leader-journald --nats-listen 127.0.0.1:4222",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			sources := p.sources(c, file)
			effective, err := config.Load(sources)
			if err != nil {
				return fmt.Errorf("the configuration can't be used: %w", err)
			}
			return p.serve(c.Context(), sources, effective)
		},
	}
	addConfigFlags(c, &file)
	return c
}

// stopTimeout bounds each step of an orderly end.
const stopTimeout = 15 * time.Second

// serve runs until ctx ends, and then takes everything down in the reverse order of its making.
func (p *process) serve(ctx context.Context, sources config.Sources, effective *config.Effective) (err error) {
	level := new(slog.LevelVar)
	logger := p.newLogger(effective.Log, level)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", effective.Listen)
	if err != nil {
		return usage(fmt.Errorf("listen on %s: %w; is another journald running? --listen takes another address", effective.Listen, err))
	}
	n := &node{process: p, logger: logger, level: level, sources: sources, effective: effective, listener: listener}
	defer func() { err = errors.Join(err, n.close(ctx)) }()
	if err := n.open(ctx); err != nil {
		return err
	}
	p.welcome(n)
	return n.run(ctx)
}

func (p *process) newLogger(l config.Log, level *slog.LevelVar) *slog.Logger {
	level.Set(levelOf(l.Level))
	opts := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(p.err, opts))
	}
	return slog.New(slog.NewTextHandler(p.err, opts))
}

func levelOf(word string) slog.Level {
	var level slog.Level
	if level.UnmarshalText([]byte(word)) != nil {
		return slog.LevelInfo // the configuration was checked
	}
	return level
}

// welcome says what can be done now.
func (p *process) welcome(n *node) {
	server := ""
	url := "http://" + n.listener.Addr().String()
	if url != "http://127.0.0.1:8086" {
		server = " --server " + url
	}
	fmt.Fprintf(p.err, "journald listens on %s, the journal is %s.\n", url, n.place())
	fmt.Fprintf(p.err, "Try in another terminal:\n"+
		"  journald%[1]s publish grant demo/web candidate=web-1 session=S1\n"+
		"  journald%[1]s publish confirm demo/web candidate=web-1 session=S1 address=http://web-1:8080\n"+
		"  journald%[1]s get leaders\n", server)
	if client := n.log.ClientURL(); client != "" {
		fmt.Fprintf(p.err, "NATS clients: %s\n", client)
	}
}

// group runs parts of a node until the first one ends, or ctx does; then it ends the others.
type group struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	parts  sync.WaitGroup
	mu     sync.Mutex
	errs   []error
}

func newGroup(ctx context.Context) *group {
	g := &group{}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

func (g *group) start(what string, run func(context.Context) error) {
	g.parts.Go(func() {
		err := run(g.ctx)
		if err != nil {
			g.mu.Lock()
			g.errs = append(g.errs, fmt.Errorf("%s: %w", what, err))
			g.mu.Unlock()
		}
		g.cancel(err)
	})
}

func (g *group) wait() error {
	g.parts.Wait()
	g.cancel(nil)
	return errors.Join(g.errs...)
}
