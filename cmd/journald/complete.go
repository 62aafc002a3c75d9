package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
)

// completionTimeout is how long a shell may be kept waiting.
const completionTimeout = time.Second

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

const noFiles = cobra.ShellCompDirectiveNoFileComp

// components are the names that the server knows and that begin so; none where it does not answer in time.
func (r *remote) components(ctx context.Context, prefix string, also func(group string) bool) []string {
	var names []string
	for _, one := range r.known(ctx, "") {
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

// completeOrder completes the group or component that an order is about, and the candidate.
func completeOrder(r *remote, kind string) completion {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0 && kind == "transfer":
			return completeComponent(r)(c, args, prefix)
		case len(args) == 0:
			return r.groupNames(contextOf(c), prefix), noFiles
		case len(args) == 1 && (kind == "exclude" || kind == "include"):
			return r.candidates(contextOf(c), args[0], "", prefix, func(k *api.CandidateRow) bool {
				return k.Excluded == (kind == "include")
			}), noFiles
		}
		return nil, noFiles
	}
}

// completeTo completes the candidates that a component may be handed to.
func completeTo(r *remote) completion {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return nil, noFiles
		}
		group, component, _ := strings.Cut(args[0], "/")
		return r.candidates(contextOf(c), group, component, prefix, func(k *api.CandidateRow) bool {
			return !slices.Contains(k.Leads, component)
		}), noFiles
	}
}

// groupNames are those that the server knows and that begin so.
func (r *remote) groupNames(ctx context.Context, prefix string) []string {
	var names []string
	for _, g := range r.known(ctx, "") {
		if strings.HasPrefix(g.Name, prefix) {
			names = append(names, g.Name)
		}
	}
	return names
}

// candidates are those of a group that begin so; where a component is named, those that may lead it.
func (r *remote) candidates(ctx context.Context, group, component, prefix string, also func(*api.CandidateRow) bool) []string {
	var names []string
	for _, g := range r.known(ctx, group) {
		for i := range g.Candidates {
			k := &g.Candidates[i]
			may := component == "" || slices.Contains(k.Components, component)
			if may && also(k) && strings.HasPrefix(k.Name, prefix) {
				names = append(names, k.Name)
			}
		}
	}
	return names
}

// known are the groups that the server knows, or the one that is named; none where it does not answer in time.
func (r *remote) known(ctx context.Context, group string) []api.GroupRow {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	g := &getter{remote: r}
	groups, err := g.groups(ctx, group)
	if err != nil {
		return nil
	}
	return groups
}

// contextOf is the command's context, which cobra leaves out for some completions.
func contextOf(c *cobra.Command) context.Context {
	if ctx := c.Context(); ctx != nil {
		return ctx
	}
	return c.Root().Context()
}
