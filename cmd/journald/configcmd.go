package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leadership-journal/journald/config"
)

func (p *process) newConfig() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Show, check or begin a configuration",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return usage(errors.New("say show, validate or example")) },
	}
	c.AddCommand(p.newConfigShow(), p.newConfigValidate(), &cobra.Command{
		Use:   "example",
		Short: "Print a commented file with every key",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(p.out, config.Example())
			return err
		},
	})
	return c
}

func (p *process) newConfigShow() *cobra.Command {
	var file, format string
	c := &cobra.Command{
		Use:   "show",
		Short: "Print each effective value and where it came from; secrets are hidden",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p.out, format)
			if err != nil {
				return err
			}
			effective, err := config.Load(p.sources(c, file))
			if err != nil {
				return err
			}
			l := &listing{columns: []string{"KEY", "VALUE", "FROM"}}
			for _, v := range effective.Values() {
				l.rows = append(l.rows, row{v.Key, []string{v.Key, dash(v.Value), v.Origin}, v})
			}
			return out.print(l)
		},
	}
	addConfigFlags(c, &file)
	addFormat(c, &format)
	return c
}

func (p *process) newConfigValidate() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "validate",
		Short: "Name everything that is wrong with a configuration",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			effective, err := config.Load(p.sources(c, file))
			if err != nil {
				return err
			}
			fmt.Fprintf(p.err, "The configuration is good: %d groups.\n", len(effective.Groups))
			return nil
		},
	}
	addConfigFlags(c, &file)
	return c
}
