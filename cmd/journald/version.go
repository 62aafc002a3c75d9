package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versions are what this program was built from.
func versions() (version, revision string) {
	version, revision = "unknown", "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, revision
	}
	version = first(info.Main.Version, version)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = s.Value
		}
	}
	return version, revision
}

func (p *process) newVersion() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "version",
		Short: "Say what this program was built from",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			out, err := newPrinter(p.out, format)
			if err != nil {
				return err
			}
			version, revision := versions()
			value := map[string]string{"version": version, "revision": revision}
			switch format {
			case "json":
				return out.json(value)
			case "yaml":
				return out.yaml(value)
			}
			_, err = fmt.Fprintf(p.out, "journald %s (%s)\n", version, revision)
			return err
		},
	}
	addFormat(c, &format)
	return c
}
