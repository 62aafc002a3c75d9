package config

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	From string // where it was said: journald.yaml:12, JOURNALD_LISTEN, --listen; empty where it follows from a default
	Key  string // as in the file: nats.listen, groups[2].policy.flapping
	Text string // what, and what would be right
}

// Error is where, what and why, in one line.
func (p *Problem) Error() string {
	text := p.Text
	if p.Key != "" {
		text = p.Key + ": " + text
	}
	if p.From != "" {
		text = p.From + ": " + text
	}
	return text
}

// Problems are all that is wrong with a configuration.
type Problems []*Problem

// Error is one line for each, below a count where there are several.
func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d problems", len(p))
	for _, one := range p {
		b.WriteString("\n  " + one.Error())
	}
	return b.String()
}
