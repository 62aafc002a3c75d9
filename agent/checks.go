package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leadership-journal/journald/health"
)

// kinds are the settings of each kind of check.
func kinds() map[string][]string {
	return map[string][]string{
		"disk":     {"paths", "freePercent", "freeInodesPercent", "writeProbe"},
		"http":     {"url", "method", "status", "contains", "ca"},
		"tcp":      {"address"},
		"exec":     {"command", "dir", "env"},
		"progress": {"number", "file", "within"},
	}
}

// check fills in what a check leaves out, and makes it.
func (l *loader) check(i int) {
	c, key := &l.Checks[i], fmt.Sprintf("checks[%d]", i)
	l.fill(c, key)
	if _, ok := kinds()[c.Kind]; !ok {
		l.oneOf(key+".kind", c.Kind, slices.Sorted(maps.Keys(kinds()))...)
		return
	}
	for kind, settings := range kinds() {
		for _, name := range settings {
			if at := key + ".settings." + name; kind != c.Kind && l.Said(at) {
				l.Fail(at, "is for checks of kind %s, and this one is of kind %s", kind, c.Kind)
			}
		}
	}
	probe, err := c.probe()
	if err != nil {
		probe = func(context.Context) error { return nil } // what is wrong with it is said once
	}
	for _, err := range parts(err) {
		l.Fail(key+".settings", "%s", err)
	}
	made := health.Check{Name: c.Name, Period: time.Duration(c.Period), Deadline: time.Duration(c.Deadline), Probe: probe}
	for _, err := range parts(made.Validate()) {
		l.Fail(key, "%s", err)
	}
	for j := range i {
		l.must(key+".name", l.Checks[j].Name != c.Name, "there are two checks named %q", c.Name)
	}
	l.checks = append(l.checks, made)
}

func (l *loader) fill(c *Check, key string) {
	unless := func(name string, fill func()) {
		if !l.Said(key + "." + name) {
			fill()
		}
	}
	unless("period", func() { c.Period = defaultPeriod })
	unless("deadline", func() { c.Deadline = min(defaultDeadline, c.Period) })
	if c.Kind == "disk" {
		unless("settings.freePercent", func() { c.Settings.FreePercent = defaultFree })
		unless("settings.freeInodesPercent", func() { c.Settings.FreeInodesPercent = defaultFreeInodes })
		unless("settings.writeProbe", func() { c.Settings.WriteProbe = true })
	}
	if c.Kind == "progress" {
		unless("settings.within", func() { c.Settings.Within = defaultWithin })
	}
}

// probe is what a check of a kind that is known tries.
func (c *Check) probe() (health.Probe, error) {
	s := &c.Settings
	switch c.Kind {
	case "disk":
		return health.Disk{
			Paths: s.Paths, FreePercent: s.FreePercent, FreeInodesPercent: s.FreeInodesPercent, SkipWrite: !s.WriteProbe,
		}.Probe()
	case "http":
		return health.HTTP{URL: s.URL, Method: s.Method, Status: s.Status, Contains: s.Contains, CA: s.CA}.Probe()
	case "tcp":
		return health.TCP{Address: s.Address}.Probe()
	case "exec":
		return health.Exec{Command: s.Command, Dir: s.Dir, Env: environment(s.Env)}.Probe()
	}
	switch {
	case (s.Number == "") == (s.File == ""):
		return nil, errors.New("say number, a file with a number that has to change, or file, one that has to be written to")
	case s.Number != "":
		return health.Progress(health.Number(s.Number), s.Within)
	}
	return health.Progress(health.Writes(s.File), s.Within)
}
