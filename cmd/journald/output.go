package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
)

// listing is things of one kind to print.
type listing struct {
	columns []string
	wide    int // how many of the columns, from the right, are for -o wide only
	rows    []row
	nothing string // what to say on standard error where there are none
}

// row is one of them.
type row struct {
	name  string
	cells []string
	value any // for programs
}

// printer writes listings in the form that was asked for. A table is for people; the other forms are for programs.
type printer struct {
	out    io.Writer
	format string
	bare   bool // without column heads, as in what follows a first listing
}

func formats() []string { return []string{"table", "wide", "json", "jsonl", "yaml", "name"} }

// addFormat gives a command the flag -o.
func addFormat(c *cobra.Command, format *string) {
	c.Flags().StringVarP(format, "output", "o", "table", strings.Join(formats(), ", "))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

func newPrinter(out io.Writer, format string) (*printer, error) {
	if !slices.Contains(formats(), format) {
		return nil, usage(fmt.Errorf("-o %s is none of %s", format, strings.Join(formats(), ", ")))
	}
	return &printer{out: out, format: format}, nil
}

func (p *printer) print(l *listing) error {
	switch p.format {
	case "json":
		return p.json(l.values())
	case "yaml":
		return p.yaml(l.values())
	case "jsonl":
		for _, r := range l.rows {
			text, err := json.Marshal(r.value, json.Deterministic(true))
			if err != nil {
				return fmt.Errorf("write JSON: %w", err)
			}
			fmt.Fprintf(p.out, "%s\n", text)
		}
		return nil
	case "name":
		for _, r := range l.rows {
			fmt.Fprintln(p.out, r.name)
		}
		return nil
	}
	return p.table(l)
}

func (l *listing) values() []any {
	all := make([]any, len(l.rows))
	for i, r := range l.rows {
		all[i] = r.value
	}
	return all
}

func (p *printer) json(value any) error {
	text, err := json.Marshal(value, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err = fmt.Fprintf(p.out, "%s\n", text)
	return err
}

func (p *printer) yaml(value any) error {
	text, err := json.Marshal(value, json.Deterministic(true))
	if err == nil {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	_, err = p.out.Write(text)
	return err
}

func (p *printer) table(l *listing) error {
	if len(l.rows) == 0 {
		return nil
	}
	shown := len(l.columns)
	if p.format != "wide" {
		shown -= l.wide
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	if !p.bare {
		fmt.Fprintln(w, strings.Join(l.columns[:shown], "\t"))
	}
	for _, r := range l.rows {
		fmt.Fprintln(w, strings.Join(r.cells[:shown], "\t"))
	}
	return w.Flush()
}

// dash stands where there is nothing.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// age is how long ago something was, in at most two units.
func age(at, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return span(now.Sub(at))
}

func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}
