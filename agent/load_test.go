package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/agent"
	"github.com/leadership-journal/journald/config"
	"github.com/leadership-journal/journald/policy"
)

func load(t *testing.T, text string) (*agent.Settled, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "agent.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return agent.Load(name, "")
}

const least = `
group: g
candidate: c
components: [web]
probe: {off: true}
hooks: {onYield: {command: [/bin/true]}}
`

func TestWhatIsLeftOut(t *testing.T) {
	c, err := load(t, least+`
address: http://c
checks:
- {name: disk, kind: disk, settings: {paths: [/tmp]}}
- {name: bare, kind: disk, settings: {paths: [/tmp], freePercent: 0, freeInodesPercent: 0.5, writeProbe: false}, period: 5s}
- {name: work, kind: progress, settings: {file: /tmp/x}, period: 2m, deadline: 1m}
`)
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:8086", c.Server)
	require.Equal(t, policy.External, c.Election)
	require.Equal(t, policy.Duration(15*time.Second), c.StopWithin)
	require.Equal(t, []agent.Check{
		{
			Name: "disk", Kind: "disk", Period: seconds(30), Deadline: seconds(10),
			Settings: agent.Settings{Paths: []string{"/tmp"}, FreePercent: 5, FreeInodesPercent: 1, WriteProbe: true},
		},
		{
			Name: "bare", Kind: "disk", Period: seconds(5), Deadline: seconds(5),
			Settings: agent.Settings{Paths: []string{"/tmp"}, FreeInodesPercent: 0.5},
		},
		{Name: "work", Kind: "progress", Period: seconds(120), Deadline: seconds(60), Settings: agent.Settings{File: "/tmp/x", Within: 3}},
	}, c.Checks)
	require.Equal(t, agent.Hook{Command: []string{"/bin/true"}, Timeout: seconds(10)}, c.Hooks.OnYield)
}

func seconds(n int) policy.Duration { return policy.Duration(n) * policy.Duration(time.Second) }

func TestTheExampleCanBeUsed(t *testing.T) {
	c, err := load(t, agent.Example())
	require.NoError(t, err)
	require.Equal(t, []string{"overlord"}, c.Components)
	for _, key := range []string{
		"server", "credentials", "tls", "properties", "priority", "labels", "election", "checks", "probe", "stopWithin", "log", "onFit",
		"onGranted", "onRevoked", "timeout", "period", "deadline", "paths", "freePercent", "freeInodesPercent", "writeProbe", "url",
		"method", "status", "contains", "ca", "address", "command", "dir", "env", "file", "number", "within", "off",
	} {
		require.Contains(t, agent.Example(), key+":")
	}
	// what is commented out can be used too
	lines := strings.Split(agent.Example(), "\n")
	for i, line := range lines {
		if before, after, ok := strings.Cut(line, "  # - {name"); ok && before == "" {
			lines[i] = "  - {name" + after
		}
	}
	text := strings.ReplaceAll(strings.Join(lines, "\n"), "/usr/bin/check", "/bin/true")
	c, err = load(t, text)
	require.NoError(t, err)
	require.Len(t, c.Checks, 6)
}

// TestProblems has every problem at once, each with its line.
func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing": {"", []string{
			"group: ", "candidate: ", "components: is missing", "hooks.onYield: is missing: nobody would do it",
			"probe.paths: is missing, and no check writes to a disk",
		}},
		"unknown keys": {"grup: x\nhooks: {onYeld: {}}\nchecks: [{nmae: x}]\n", []string{
			`agent.yaml:1: grup: is no key that is known here; did you mean "group"?`, `did you mean "onYield"?`, `did you mean "name"?`,
		}},
		"where and who": {"server: ftp://x\ngroup: a b\ncandidate: ä\ncomponents: [a b]\ncredentials: f\ntls: {cert: f}\nelection: both\n", []string{
			"agent.yaml:1: server: is none of http://", "agent.yaml:2: group: ", "agent.yaml:3: candidate: ", "agent.yaml:4: components[0]: ",
			"agent.yaml:5: credentials: is for NATS servers only", "agent.yaml:6: tls.key: goes together with tls.cert",
			`agent.yaml:7: election: "both" is none of external, managed`,
		}},
		"checks": {`checks:
- {name: a, kind: dsik}
- {name: a, kind: disk, settings: {paths: [], freePercent: 101, url: x}}
- {kind: http, settings: {url: x, method: PUT}}
- {name: slow, kind: tcp, settings: {address: x}, period: 1s, deadline: 2s}
- {name: work, kind: progress, settings: {number: /x, file: /x, within: 0}}
- {name: more, kind: progress, settings: {number: /x, within: 0}}
- {name: script, kind: exec, settings: {command: [no-such-program]}}
`, []string{
			`agent.yaml:2: checks[0].kind: "dsik" is none of disk, exec, http, progress, tcp; did you mean "disk"?`,
			`agent.yaml:3: checks[1].name: there are two checks named "a"`,
			"agent.yaml:3: checks[1].settings: there are no paths to look at",
			"agent.yaml:3: checks[1].settings: free space of at least 101 percent",
			"agent.yaml:3: checks[1].settings.url: is for checks of kind http, and this one is of kind disk",
			"agent.yaml:4: checks[2]: it has no name", `agent.yaml:4: checks[2].settings: "x" is no URL`, `checks[2].settings: method "PUT"`,
			`agent.yaml:5: checks[3].settings: "x" is not host:port`,
			"agent.yaml:5: checks[3]: its deadline 2s is longer than its period 1s",
			"agent.yaml:6: checks[4].settings: say number,", "agent.yaml:7: checks[5].settings: 0 runs without progress are less than 1",
			"agent.yaml:8: checks[6].settings: exec:",
		}},
		"hooks of an election of its own": {`hooks:
  onYield: {http: {url: x, method: GET}, command: [/bin/true], timeout: 0s}
  onFit: {timeout: 3s}
  onGranted: {command: [/bin/true]}
  onRevoked: {command: [no-such-program]}
`, []string{
			"agent.yaml:2: hooks.onYield: says http and command", `agent.yaml:2: hooks.onYield.http.url: "x" is no URL`,
			`agent.yaml:2: hooks.onYield.http.method: "GET" is none of POST, PUT`, "agent.yaml:2: hooks.onYield.timeout: 0s is not between",
			"agent.yaml:3: hooks.onFit: says neither http nor command",
			"agent.yaml:4: hooks.onGranted: has nothing to do where election is external", "agent.yaml:5: hooks.onRevoked: has nothing to do",
		}},
		"hooks of journald's": {"election: managed\nhooks:\n  onFit: {command: [/bin/true]}\n  onYield: {command: [no-such-program]}\n", []string{
			"hooks.onGranted: is missing", "hooks.onRevoked: is missing", "agent.yaml:3: hooks.onFit: has nothing to do where election is managed",
			"agent.yaml:4: hooks.onYield.command: exec:", "address: is missing; it is where clients find the leader",
		}},
		"the rest": {"probe: {off: true, paths: [/tmp]}\nstopWithin: 0s\nlog: {level: loud, format: xml}\n", []string{
			"agent.yaml:1: probe.paths: is said, and off is true", "agent.yaml:2: stopWithin: 0s is not a positive duration",
			`agent.yaml:3: log.level: "loud"`, `agent.yaml:3: log.format: "xml"`,
		}},
		"an empty path": {"probe: {paths: ['']}\n", []string{"agent.yaml:1: probe.paths: a path is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.text)
			var problems config.Problems
			require.ErrorAs(t, err, &problems)
			for _, want := range c.want {
				require.Contains(t, err.Error(), want)
			}
		})
	}
	_, err := load(t, "components: []\n")
	require.Equal(t, 1, strings.Count(err.Error(), "components"), err)
	_, err = agent.Load("/none/agent.yaml", "")
	require.ErrorContains(t, err, "`journald agent --example` prints one to begin with")
}

func TestServers(t *testing.T) {
	for server, want := range map[string]string{
		"nats://a:4222, tls://b:4222": "", "https://a": "", "http://a:8086,http://b:8086": "", "nats://a:4222,x": "server: ", "http://": "server: ",
	} {
		_, err := load(t, least+"server: '"+server+"'\n")
		if want == "" {
			require.NoError(t, err, server)
		} else {
			require.ErrorContains(t, err, want, server)
		}
	}
	_, err := load(t, least+"server: nats://a:4222\ncredentials: f\n")
	require.NoError(t, err)
}
