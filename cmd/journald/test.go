package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadership-journal/journald/cmd/journald/internal/k8sworld"
	"github.com/leadership-journal/journald/cmd/journald/internal/zkworld"
	"github.com/leadership-journal/journald/config"
	"github.com/leadership-journal/journald/scenario"
)

// tester is one use of `journald test`.
type tester struct {
	*process
	verbose    bool
	backend    string
	namespace  string
	kubernetes config.Kubernetes
	zookeeper  []string // servers
}

func (p *process) newTest() *cobra.Command {
	t := &tester{process: p}
	c := &cobra.Command{
		Use:   "test SCENARIO...",
		Short: "Run scenarios: incidents as files, with what must come of them",
		Long: "Run scenarios, files or directories of them: offline, on a virtual clock, one line a file. It ends with 1 if any\n" +
			"fails, and says at which step, what was expected and what came. No server is needed, unless --backend asks for one;\n" +
			"a scenario that a backend can't express is skipped, and the line says why.",
		Example: "  journald test scenarios/\n  journald test -v incident.yaml\n" +
			"  journald test --backend k8s --namespace scratch incident.yaml\n" +
			"  journald test --backend zk --zookeeper zk-1:2181,zk-2:2181/scratch scenarios/",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return t.run(c.Context(), args) },
	}
	c.Flags().BoolVarP(&t.verbose, "verbose", "v", false, "print the journal that each run writes")
	c.Flags().StringVar(&t.backend, "backend", "", "k8s or zk: against a real API server or ZooKeeper (default simulated)")
	c.Flags().StringVar(&t.namespace, "namespace", "default", "k8s: where the objects are made")
	c.Flags().StringVar(&t.kubernetes.Kubeconfig, "kubeconfig", "", "k8s: kubeconfig file")
	c.Flags().StringVar(&t.kubernetes.Context, "context", "", "k8s: context of the kubeconfig")
	c.Flags().StringSliceVar(&t.zookeeper, "zookeeper", p.zookeeperServers(),
		"zk: servers, host:port each; the last one may end in a chroot (JOURNALD_ZOOKEEPER_SERVERS)")
	return c
}

// zookeeperServers are those that the environment names, or the configuration's own.
func (p *process) zookeeperServers() []string {
	if named := p.env(config.Variable("zookeeper.servers")); named != "" {
		return strings.Split(named, ",")
	}
	return config.Default().ZooKeeper.Servers
}

func (t *tester) run(ctx context.Context, args []string) error {
	files, err := scenarioFiles(args)
	if err != nil {
		return err
	}
	backend, end, err := t.open()
	if err != nil {
		return err
	}
	defer end()
	options := scenario.Options{Backend: backend}
	if t.verbose {
		options.Journal = t.out
	}
	failed := 0
	for _, file := range files {
		ok, err := t.play(ctx, file, options)
		if err != nil {
			return err
		}
		if !ok {
			failed++
		}
	}
	if failed > 0 {
		return no(fmt.Errorf("%d of %d scenarios failed", failed, len(files)))
	}
	return nil
}

// play runs one file and says in a line how it went; false: it failed.
func (t *tester) play(ctx context.Context, file string, o scenario.Options) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	s, err := scenario.LoadFile(file)
	if err != nil {
		return false, usage(err)
	}
	began := time.Now()
	switch err := scenario.Run(ctx, s, o); {
	case err == nil:
		fmt.Fprintf(t.out, "ok    %s (%s)\n", file, span(time.Since(began)))
	case errors.Is(err, scenario.ErrInexpressible):
		fmt.Fprintf(t.out, "skip  %s: %s\n", file, err)
	case errors.Is(err, scenario.ErrFailed):
		fmt.Fprintf(t.out, "FAIL  %s\n%s\n", file, indent(err.Error()))
		return false, nil
	case errors.Is(err, zkworld.ErrUnreachable):
		return false, unreachable(fmt.Errorf("%s: %w", file, err))
	case t.backend == "" && ctx.Err() == nil: // nothing else than the file can be wrong
		return false, usage(fmt.Errorf("%s: %w", file, err))
	default:
		return false, fmt.Errorf("%s: %w", file, err)
	}
	return true, nil
}

// scenarioFiles are the files that are named, and those of the directories that are.
func scenarioFiles(args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, arg)
			continue
		}
		found, err := filepath.Glob(filepath.Join(arg, "*.yaml"))
		if err != nil || len(found) == 0 {
			return nil, usage(fmt.Errorf("there is no *.yaml in %s", arg))
		}
		slices.Sort(found)
		files = append(files, found...)
	}
	return files, nil
}

// open finds the backend, nil for the simulated one; end lets go of it.
func (t *tester) open() (backend scenario.Backend, end func(), err error) {
	none := func() {}
	logger := slog.New(slog.DiscardHandler)
	switch t.backend {
	case "":
		return nil, none, nil
	case "k8s":
		cluster, err := clusterConfig(t.kubernetes)
		if err != nil {
			return nil, nil, usage(err)
		}
		backend, err := k8sworld.New(cluster, t.namespace, logger)
		if err != nil {
			return nil, nil, usage(err)
		}
		return backend, none, nil
	case "zk":
		backend, err := zkworld.New(t.zookeeper, logger)
		switch {
		case errors.Is(err, zkworld.ErrUnreachable):
			return nil, nil, unreachable(err)
		case err != nil:
			return nil, nil, usage(fmt.Errorf("--zookeeper: %w", err))
		}
		return backend, backend.Close, nil
	}
	return nil, nil, usage(fmt.Errorf("--backend %s is not in this version, which has k8s and zk", t.backend))
}

func indent(text string) string { return "      " + strings.ReplaceAll(text, "\n", "\n      ") }
