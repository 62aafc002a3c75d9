package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// process is what a command may touch of the process that it runs in.
type process struct {
	in       io.Reader
	out, err io.Writer
	environ  []string
	hangups  <-chan os.Signal
}

// execute runs a command line and returns its exit code.
func (p *process) execute(ctx context.Context, args []string) int {
	began := false
	root := p.newRoot(&began)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !began {
		err = usage(err) // cobra refused the command line
	}
	code := exitCode(ctx, err)
	if err != nil && code != exitYes && !errors.Is(err, errSaid) {
		fmt.Fprintln(p.err, "journald: "+err.Error())
	}
	return code
}

// env is an environment variable.
func (p *process) env(name string) string {
	for _, one := range p.environ {
		if value, ok := strings.CutPrefix(one, name+"="); ok {
			return value
		}
	}
	return ""
}

func (p *process) newRoot(began *bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "journald",
		Short: "Leadership events in, an authoritative view out",
		Long: "journald keeps a durable journal of leadership events, folds it into the view of who leads what,\n" +
			"and makes Kubernetes show it.",
		Example: "  journald serve\n" +
			"  journald publish grant demo/web candidate=web-1 session=S1\n" +
			"  journald publish confirm demo/web candidate=web-1 session=S1 address=http://web-1:8080\n" +
			"  journald get leaders\n" +
			"  journald demo flink",
		SilenceErrors: true, SilenceUsage: true,
		Args:             cobra.NoArgs,
		RunE:             func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRun: func(*cobra.Command, []string) { *began = true },
	}
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	root.CompletionOptions.DisableDescriptions = true
	remote := &remote{process: p}
	root.PersistentFlags().StringVar(&remote.server, "server", first(p.env("JOURNALD_SERVER"), "http://127.0.0.1:8086"),
		"where journald is (JOURNALD_SERVER)")
	root.PersistentFlags().DurationVar(&remote.timeout, "timeout", defaultTimeout, "how long to wait for an answer")
	root.AddGroup(&cobra.Group{ID: "run", Title: "Run:"}, &cobra.Group{ID: "ask", Title: "Tell and ask:"},
		&cobra.Group{ID: "order", Title: "Order:"}, &cobra.Group{ID: "help",
			Title: "Around it:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("run", p.newServe(), newAgent(remote), p.newDemo(), p.newTest())
	add("ask", newPublish(remote), newGet(remote), newDescribe(remote), newHistory(remote), newDiff(remote))
	add("order", newTransfer(remote), newExclude(remote), newInclude(remote), newPause(remote), newResume(remote))
	add("help", p.newConfig(), p.newVersion())
	root.SetHelpCommandGroupID("help")
	root.SetCompletionCommandGroupID("help")
	return root
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}
