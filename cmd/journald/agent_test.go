package main

import (
	"context"

	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// agentFile is the configuration of an agent whose hooks write into a file in dir.
func agentFile(t *testing.T, dir, text string) (file, log string) {
	t.Helper()
	file, log = filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "log")
	text = strings.ReplaceAll(text, "LOG", log)
	require.NoError(t, os.WriteFile(file, []byte("group: g\ncandidate: a\ncomponents: [web]\naddress: http://a\nstopWithin: 5s\n"+text), 0o600))
	return file, log
}

// beside is an agent in this process.
type beside struct {
	stop  context.CancelCauseFunc
	ended chan result
}

func (s *serving) beside(file string, more ...string) *beside {
	ctx, stop := context.WithCancelCause(s.t.Context())
	b := &beside{stop, make(chan result, 1)}
	go func() { b.ended <- call(ctx, "", s.environ, append([]string{"agent", "--config", file}, more...)...) }()
	s.t.Cleanup(func() { b.end(errTerminated) })
	return b
}

func (b *beside) end(why error) result {
	b.stop(why)
	r := <-b.ended
	b.ended <- r
	return r
}

// awaitLine returns when a file has a line.
func awaitLine(t *testing.T, file, line string) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains("\n"+string(text), "\n"+line+"\n")
	}, time.Minute, time.Millisecond, line)
}

const managedHooks = `
election: managed
checks: [{name: disk, kind: disk, period: 100ms, settings: {paths: [/tmp], freePercent: 0, freeInodesPercent: 0}}]
hooks:
  onGranted: {command: [/bin/sh, -c, "echo lead >> LOG"]}
  onRevoked: {command: [/bin/sh, -c, "echo stop >> LOG"]}
`

// journald has a configuration by which it elects.
func electing(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "journald.yaml")
	require.NoError(t, os.WriteFile(file, []byte("groups: [{name: g, policy: {election: managed, lease: {duration: 3s, renewEvery: 100ms}}}]\n"), 0o600))
	return file
}

func TestAnAgentHasItsProcessLead(t *testing.T) {
	s := serve(t, "--data", t.TempDir(), "--config", electing(t), "--nats-listen", "127.0.0.1:0")
	for _, server := range []string{s.url, s.nats()} {
		file, log := agentFile(t, t.TempDir(), managedHooks)
		a := s.beside(file, "--server", server)
		awaitLine(t, log, "lead")
		require.Contains(t, s.must("get", "leaders", "g/web"), "http://a")
		r := a.end(errTerminated)
		require.Zero(t, r.code, r.err)
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		require.Equal(t, "stop\nlead\nstop\n", string(text))
	}
	require.Equal(t, 2, strings.Count(s.must("get", "events", "g", "--kind", "leave"), "shutdown"))
}

// nats is where NATS clients are taken.
func (s *serving) nats() (server string) {
	require.Eventually(s.t, func() bool {
		_, rest, ok := strings.Cut(s.said.String(), "NATS clients: ")
		server, _, _ = strings.Cut(rest, "\n")
		return ok
	}, time.Minute, time.Millisecond)
	return server
}

// The journald that an agent speaks to may go, and come back.
func TestAnAgentSurvivesJournald(t *testing.T) {
	data, config := t.TempDir(), electing(t)
	s := serve(t, "--data", data, "--config", config)
	file, log := agentFile(t, t.TempDir(), managedHooks)
	a := s.beside(file)
	awaitLine(t, log, "lead")
	require.Zero(t, s.end(errTerminated))
	again := serve(t, "--data", data, "--config", config, "--listen", strings.TrimPrefix(s.url, "http://"))
	r := a.end(errTerminated)
	require.Zero(t, r.code, r.err)
	require.Contains(t, again.must("get", "events", "g", "--kind", "leave"), "shutdown")
}

func TestAnAgentIsReplaced(t *testing.T) {
	s := serve(t, "--data", t.TempDir(), "--config", electing(t))
	file, log := agentFile(t, t.TempDir(), managedHooks)
	a := s.beside(file)
	awaitLine(t, log, "lead")
	second, _ := agentFile(t, t.TempDir(), managedHooks)
	b := s.beside(second)
	r := <-a.ended
	a.ended <- r
	require.Zero(t, b.end(errTerminated).code)
	require.Equal(t, exitConflict, r.code, r.err)
	require.Contains(t, r.err, "another process has joined by this name")
}

func TestAnAgentHasItsProcessYield(t *testing.T) {
	s := serve(t, "--data", t.TempDir())
	file, log := agentFile(t, t.TempDir(), `
probe: {off: true}
hooks: {onYield: {command: [/bin/sh, -c, "echo yield $JOURNALD_SESSION to $JOURNALD_TO >> LOG"]}}
`)
	a := s.beside(file)
	s.must("publish", "join", "g", "candidate=b", "incarnation=1", "components=web")
	s.must("publish", "health", "g", "candidate=b", "incarnation=1", "check=c", "status=pass", "run=1", "--wait", "applied")
	s.must("publish", "grant", "g/web", "candidate=a", "session=S1", "--wait", "applied")
	require.Eventually(t, func() bool { return strings.Contains(s.must("get", "candidates", "g"), "a ") }, time.Minute, time.Millisecond)
	s.must("publish", "transfer", "g/web", "to=b", "reason=a drill", "actor=alice", "--wait", "applied")
	awaitLine(t, log, "yield S1 to b")
	require.Eventually(t, func() bool {
		return strings.Contains(s.must("get", "events", "g/web", "--kind", "revoke"), "reason=yielded")
	}, time.Minute, time.Millisecond)
	require.Zero(t, a.end(errTerminated).code)
}

func TestAnAgentsConfiguration(t *testing.T) {
	example := call(t.Context(), "", nil, "agent", "--example")
	require.Zero(t, example.code)
	require.Contains(t, example.out, "onYield:")
	require.Equal(t, exitUsage, call(t.Context(), "", nil, "agent").code)
	file, _ := agentFile(t, t.TempDir(), managedHooks)
	good := call(t.Context(), "", nil, "agent", "--check", "--config", file)
	require.Equal(t, result{0, "", "The agent's configuration is good: 1 checks.\n"}, good)
	bad, _ := agentFile(t, t.TempDir(), "probe: {of: true}\n")
	r := call(t.Context(), "", []string{"JOURNALD_AGENT_CONFIG=" + bad}, "agent", "--check")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, `agent.yaml:6: probe.of: is no key that is known here; did you mean "off"?`)
	r = call(t.Context(), "", nil, "agent", "--config", file, "--server", "ftp://x", "--check")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "server: is none of http://")
	require.Equal(t, "nats://a:4222,tls://b:1", hideUsers("nats://me:secret@a:4222,tls://token@b:1"))
}
