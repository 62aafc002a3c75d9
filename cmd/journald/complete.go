package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadership-journal/journald/journal"
)

// completionTimeout is how long a shell may be kept waiting.
const completionTimeout = time.Second

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

const noFiles = cobra.ShellCompDirectiveNoFileComp

// components are the names that the server knows and that begin so; none where it does not answer in time.
func (r *remote) components(ctx context.Context, prefix string, also func(group string) bool) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	g := &getter{remote: r}
	groups, err := g.groups(ctx, "")
	if err != nil {
		return nil
	}
	var names []string
	for _, one := range groups {
		if also(one.Name) && strings.HasPrefix(one.Name, prefix) {
			names = append(names, one.Name)
		}
		for _, c := range one.Components {
			if name := one.Name + "/" + c.Component; strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	return names
}

func completeComponent(r *remote) completion {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, noFiles
		}
		return r.components(contextOf(c), prefix, func(string) bool { return false }), noFiles
	}
}

func completeGet(r *remote) completion {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return nouns(), noFiles
		case 1:
			return r.components(contextOf(c), prefix, func(string) bool { return true }), noFiles
		}
		return nil, noFiles
	}
}

func completePublish(r *remote) completion {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return journal.Kinds(), noFiles
		case 1:
			return r.components(contextOf(c), prefix, func(string) bool { return true }), noFiles
		}
		return nil, noFiles
	}
}

// contextOf is the command's context, which cobra leaves out for some completions.
func contextOf(c *cobra.Command) context.Context {
	if ctx := c.Context(); ctx != nil {
		return ctx
	}
	return c.Root().Context()
}
