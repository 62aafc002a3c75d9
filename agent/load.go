package agent

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leadership-journal/journald/config"
	"github.com/leadership-journal/journald/health"
	"github.com/leadership-journal/journald/internal/nearest"
	"github.com/leadership-journal/journald/internal/program"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

// Settled is a configuration that was read and checked, with what was made of it.
type Settled struct {
	Config
	checks []health.Check
	probe  health.Probe // before each renewal; nil: none
}

// Load reads a file and checks what it says. What is wrong with that is [config.Problems], all of them; any other error
// says that the file can't be read. Programs and certificates that it names have to be there. A server that is not empty
// takes the place of the file's.
func Load(file, server string) (*Settled, error) {
	l := &loader{Settled: Settled{Config: Default()}}
	var err error
	if l.File, err = config.Read(file, "journald agent --example", &l.Config); err != nil {
		return nil, err
	}
	if server != "" {
		l.Server = server
	}
	l.place()
	l.identity()
	for i := range l.Checks {
		l.check(i)
	}
	l.hooks()
	l.beforeRenewals()
	l.must("stopWithin", l.StopWithin > 0, "%s is not a positive duration; write it like 15s", l.StopWithin)
	l.oneOf("log.level", l.Log.Level, "debug", "info", "warn", "error")
	l.oneOf("log.format", l.Log.Format, "text", "json")
	if err := l.Err(); err != nil {
		return nil, err
	}
	return &l.Settled, nil
}

// loader is a configuration that is being checked.
type loader struct {
	*config.File
	Settled
}

func (l *loader) must(key string, holds bool, format string, args ...any) {
	if !holds {
		l.Fail(key, format, args...)
	}
}

func (l *loader) oneOf(key, value string, words ...string) {
	l.must(key, slices.Contains(words, value), "%q is none of %s%s", value, strings.Join(words, ", "), nearest.Hint(value, words))
}

func (l *loader) place() {
	nats := true
	for text := range strings.SplitSeq(l.Server, ",") {
		at, err := url.Parse(strings.TrimSpace(text))
		known := err == nil && at.Host != "" && slices.Contains([]string{"http", "https", "nats", "tls"}, at.Scheme)
		l.must("server", known, "is none of http://, https://, nats:// and tls:// with host and port, such as http://127.0.0.1:8086")
		nats = nats && known && (at.Scheme == "nats" || at.Scheme == "tls")
	}
	l.must("credentials", l.Credentials == "" || nats, "is for NATS servers only")
	l.must("tls.key", (l.TLS.Key == "") == (l.TLS.Cert == ""), "goes together with tls.cert")
}

// identity checks what the record of the candidate's joining will be checked for.
func (l *loader) identity() {
	l.oneOf("election", l.Election, policy.External, policy.Managed)
	l.must("components", len(l.Components) > 0, "is missing; it lists what the candidate may lead")
	l.must("address", l.Address != "" || l.Election != policy.Managed, "is missing; it is where clients find the leader")
	join := journal.Event{
		ID: "agent", Source: "candidate/agent", Group: l.Group, Time: time.Unix(0, 0), Data: &journal.Join{
			Candidate: l.Candidate, Incarnation: "agent", Components: l.Components, Address: l.Address, Priority: l.Priority, Labels: l.Labels,
		},
	}
	for _, err := range parts(join.Validate()) {
		field, ok := errors.AsType[*journal.FieldError](err)
		switch {
		case !ok:
			l.Fail("candidate", "%s", err)
		case field.Field == "subject":
			l.Fail("group", "%s", field.Problem)
		case field.Field == "data.components" && len(l.Components) == 0: // said before
		default:
			l.Fail(strings.TrimPrefix(field.Field, "data."), "%s", field.Problem)
		}
	}
}

func (l *loader) hooks() {
	managed := l.Election == policy.Managed
	for _, h := range []struct {
		name          string
		hook          *Hook
		needed, known bool
	}{
		{"onYield", &l.Hooks.OnYield, !managed, true},
		{"onFit", &l.Hooks.OnFit, false, !managed},
		{"onGranted", &l.Hooks.OnGranted, managed, managed},
		{"onRevoked", &l.Hooks.OnRevoked, managed, managed},
	} {
		key := "hooks." + h.name
		switch said := h.hook.said(); {
		case !said && h.needed:
			l.Fail(key, "is missing: nobody would do it; say http or command (election is %s)", l.Election)
		case !said && l.Said(key):
			l.Fail(key, "says neither http nor command")
		case said && !h.known:
			l.Fail(key, "has nothing to do where election is %s", l.Election)
		case said:
			l.hook(key, h.hook)
		}
	}
}

func (h *Hook) said() bool { return len(h.Command) > 0 || h.HTTP.URL != "" }

func (l *loader) hook(key string, h *Hook) {
	if !l.Said(key + ".timeout") {
		h.Timeout = defaultTimeout
	}
	l.must(key+".timeout", 0 < h.Timeout && h.Timeout <= policy.Duration(time.Hour), "%s is not between 0s and 1h", h.Timeout)
	if h.HTTP.URL == "" {
		err := program.Find(h.Command)
		l.must(key+".command", err == nil, "%v", err)
		return
	}
	l.must(key, len(h.Command) == 0, "says http and command; say one of them")
	at, err := url.Parse(h.HTTP.URL)
	l.must(key+".http.url", err == nil && at.Host != "" && (at.Scheme == "http" || at.Scheme == "https"),
		"%q is no URL such as http://127.0.0.1:8090/yield", h.HTTP.URL)
	if h.HTTP.Method == "" {
		h.HTTP.Method = "POST"
	}
	l.oneOf(key+".http.method", h.HTTP.Method, "POST", "PUT")
}

// beforeRenewals makes the write that a renewal waits for: where nothing else is said, to the directories that checks write
// to.
func (l *loader) beforeRenewals() {
	paths := l.Probe.Paths
	if l.Probe.Off {
		l.must("probe.paths", len(paths) == 0, "is said, and off is true")
		return
	}
	for _, c := range l.Checks {
		if c.Kind == "disk" && c.Settings.WriteProbe && !l.Said("probe.paths") {
			paths = append(paths, c.Settings.Paths...)
		}
	}
	if len(paths) == 0 {
		l.Fail("probe.paths", "is missing, and no check writes to a disk: name the directories that the leader's work writes to, "+
			"so that one which hangs can't keep a lease; or say probe: {off: true}")
		return
	}
	slices.Sort(paths)
	probe, err := health.Disk{Paths: slices.Compact(paths)}.Probe()
	l.must("probe.paths", err == nil, "%v", err)
	l.probe = probe
}

// parts are the errors that were joined, or joined within joined ones.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, parts(one)...)
	}
	return all
}

func environment(env map[string]string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, fmt.Sprintf("%s=%s", name, env[name]))
	}
	return all
}
