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
}

func (p *process) newTest() *cobra.Command {
	t := &tester{process: p}
	c := &cobra.Command{
		Use:   "test SCENARIO...",
		Short: "Run scenarios: incidents as files, with what must come of them",
		Long: "Run scenarios, files or directories of them: offline, on a virtual clock, one line a file. It ends with 1 if any\n" +
			"fails, and says at which step, what was expected and what came. No server is needed.",
		Example: "  journald test scenarios/\n  journald test -v incident.yaml\n  journald test --backend k8s --namespace scratch incident.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return t.run(c.Context(), args) },
	}
	c.Flags().BoolVarP(&t.verbose, "verbose", "v", false, "print the journal that each run writes")
	c.Flags().StringVar(&t.backend, "backend", "", "k8s: against a real API server (default simulated)")
	c.Flags().StringVar(&t.namespace, "namespace", "default", "k8s: where the objects are made")
	c.Flags().StringVar(&t.kubernetes.Kubeconfig, "kubeconfig", "", "k8s: kubeconfig file")
	c.Flags().StringVar(&t.kubernetes.Context, "context", "", "k8s: context of the kubeconfig")
	return c
}

func (t *tester) run(ctx context.Context, args []string) error {
	files, err := scenarioFiles(args)
	if err != nil {
		return err
	}
	options, err := t.options()
	if err != nil {
		return err
	}
	failed := 0
	for _, file := range files {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s, err := scenario.LoadFile(file)
		if err != nil {
			return usage(err)
		}
		began := time.Now()
		switch err := scenario.Run(ctx, s, options); {
		case err == nil:
			fmt.Fprintf(t.out, "ok    %s (%s)\n", file, span(time.Since(began)))
		case errors.Is(err, scenario.ErrFailed):
			failed++
			fmt.Fprintf(t.out, "FAIL  %s\n%s\n", file, indent(err.Error()))
		case t.backend == "" && ctx.Err() == nil: // nothing else than the file can be wrong
			return usage(fmt.Errorf("%s: %w", file, err))
		default:
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if failed > 0 {
		return no(fmt.Errorf("%d of %d scenarios failed", failed, len(files)))
	}
	return nil
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

func (t *tester) options() (scenario.Options, error) {
	o := scenario.Options{}
	if t.verbose {
		o.Journal = t.out
	}
	switch t.backend {
	case "":
		return o, nil
	case "k8s":
		cluster, err := clusterConfig(t.kubernetes)
		if err != nil {
			return o, usage(err)
		}
		backend, err := k8sworld.New(cluster, t.namespace, slog.New(slog.DiscardHandler))
		if err != nil {
			return o, usage(err)
		}
		o.Backend = backend
		return o, nil
	}
	return o, usage(fmt.Errorf("--backend %s is not in this version, which has k8s", t.backend))
}

func indent(text string) string { return "      " + strings.ReplaceAll(text, "\n", "\n      ") }
