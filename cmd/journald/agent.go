package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leadership-journal/journald/agent"
	"github.com/leadership-journal/journald/candidate"
	"github.com/leadership-journal/journald/client"
)

func newAgent(r *remote) *cobra.Command {
	var file string
	var check, example bool
	c := &cobra.Command{
		Use:   "agent",
		Short: "Take part for a process beside it: checks, leases, and hooks that have it yield or lead",
		Long: "Take part in a leadership journal for a process that knows nothing of it: run checks, tell the journal how they\n" +
			"went, keep the candidate's liveness key, and have the process yield, lead and stop through hooks.\n\n" +
			"SIGTERM ends it with 0, after the process has stopped leading and the candidate has left.",
		Example: "  journald agent --example > agent.yaml\n  journald agent --config agent.yaml --check\n  journald agent --config agent.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if example {
				_, err := fmt.Fprint(r.out, agent.Example())
				return err
			}
			file = first(file, r.env("JOURNALD_AGENT_CONFIG"))
			if file == "" {
				return usage(errors.New("say --config FILE; `journald agent --example` prints one to begin with"))
			}
			settled, err := agent.Load(file, r.said(c))
			if err != nil {
				return fmt.Errorf("the agent's configuration can't be used: %w", err)
			}
			if check {
				fmt.Fprintf(r.err, "The agent's configuration is good: %d checks.\n", len(settled.Checks))
				return nil
			}
			return r.agent(c.Context(), settled)
		},
	}
	c.Flags().StringVar(&file, "config", "", "the agent's configuration file (JOURNALD_AGENT_CONFIG)")
	c.Flags().BoolVar(&check, "check", false, "name everything that is wrong with the file, and run nothing")
	c.Flags().BoolVar(&example, "example", false, "print a commented file with every key")
	c.MarkFlagsMutuallyExclusive("check", "example")
	return c
}

// said is the server where a flag or a variable names one, which beats a file.
func (r *remote) said(c *cobra.Command) string {
	if c.Flag("server").Changed {
		return r.server
	}
	return r.env("JOURNALD_SERVER")
}

func (r *remote) agent(ctx context.Context, settled *agent.Settled) (err error) {
	logger := r.newLogger(settled.Log, new(slog.LevelVar))
	fmt.Fprintf(r.err, "The agent of %s, for %s in %s. The journal is at %s.\n", settled.Candidate, strings.Join(settled.Components, ", "),
		settled.Group, hideUsers(settled.Server))
	journal, err := client.Open(ctx, client.Options{
		Server: settled.Server, Group: settled.Group, Credentials: settled.Credentials, CA: settled.TLS.CA, Certificate: settled.TLS.Cert,
		Key: settled.TLS.Key, Instance: settled.Candidate, Logger: logger,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	err = agent.Run(ctx, settled, journal, logger)
	switch {
	case errors.Is(err, candidate.ErrReplaced):
		return &exitError{exitConflict, err}
	case err != nil && client.Final(err):
		return usage(err)
	case err != nil && ctx.Err() != nil: // it did not stop in time
		return &exitError{exitTimeout, err}
	}
	return err
}

// hideUsers takes names and passwords out of a list of URLs.
func hideUsers(servers string) string {
	all := strings.Split(servers, ",")
	for i, one := range all {
		if scheme, rest, ok := strings.Cut(one, "://"); ok {
			all[i] = scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
		}
	}
	return strings.Join(all, ",")
}
