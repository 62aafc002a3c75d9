package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/config"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "journald.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// servers are right unless one is nowhere.
func servers(all []string) error {
	if slices.Contains(all, "nowhere") {
		return errors.New("nowhere is no server")
	}
	return nil
}

// known accepts the one kind of target that these tests have.
func known(_ string, spec journal.Target) error {
	if spec.Kind != "k8s/configmap" {
		return errors.New(spec.Kind + " is no kind")
	}
	return nil
}

func load(t *testing.T, text string) (*config.Effective, error) {
	t.Helper()
	return config.Load(config.Sources{File: file(t, text), Target: known, ZooKeeper: servers})
}

func origins(e *config.Effective) map[string]config.Value {
	all := map[string]config.Value{}
	for _, v := range e.Values() {
		all[v.Key] = v
	}
	return all
}

func TestNothingIsGood(t *testing.T) {
	e, err := config.Load(config.Sources{Target: known, ZooKeeper: servers})
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:8086", e.Listen)
	require.True(t, e.NATS.Embedded)
	require.Equal(t, policy.Default(), e.Defaults.Policy)
	require.True(t, strings.HasSuffix(e.Instance, "-8086"), e.Instance)
	require.Equal(t, "default", origins(e)["listen"].Origin)
	for _, text := range []string{"", "# nothing\n", "groups:\n", "nats:\n"} {
		_, err := load(t, text)
		require.NoError(t, err, text)
	}
}

func TestWhoBeatsWhom(t *testing.T) {
	name := file(t, "listen: 127.0.0.1:1\ndata: /file\nnats:\n  maxBytes: 1GiB\n  maxStore: 2GiB\n")
	e, err := config.Load(config.Sources{
		File: name, Target: known, ZooKeeper: servers,
		Env: []string{
			"JOURNALD_LISTEN=127.0.0.1:2", "JOURNALD_NATS_MAX_BYTES=2GB", "JOURNALD_SERVICE_HOST=10.0.0.1", "PATH=/bin",
			"JOURNALD_DEFAULTS_POLICY_HEALTH_FAILURE_THRESHOLD=7", "JOURNALD_DEFAULTS_POLICY_ON_ERASE=alert", "JOURNALD_LOG_LEVEL=debug",
		},
		Flags: map[string]config.Flag{"listen": {Name: "listen", Value: "127.0.0.1:3"}, "kubernetes.context": {Name: "context", Value: "kind"}},
	})
	require.NoError(t, err)
	all := origins(e)
	for key, want := range map[string][2]string{
		"listen":                  {"127.0.0.1:3", "flag --listen"},
		"data":                    {"/file", "file journald.yaml:2"},
		"nats.maxBytes":           {"2GB", "environment JOURNALD_NATS_MAX_BYTES"},
		"nats.maxStore":           {"2GiB", "file journald.yaml:5"},
		"kubernetes.context":      {"kind", "flag --context"},
		"kubernetes.kubeconfig":   {"", "default"},
		"defaults.policy.onErase": {"alert", "environment JOURNALD_DEFAULTS_POLICY_ON_ERASE"},
		"defaults.policy.health.failureThreshold": {"7", "environment JOURNALD_DEFAULTS_POLICY_HEALTH_FAILURE_THRESHOLD"},
	} {
		require.Equal(t, want, [2]string{all[key].Value, all[key].Origin}, key)
	}
	require.Equal(t, 7, e.Settings().Defaults.Health.FailureThreshold)
}

func TestGroupsLiveByTheDefaults(t *testing.T) {
	e, err := load(t, `
groups:
  - name: flink
    policy: {onRevoke: clear, health: {period: 5s}, onErase: {"*": restore, "job-*": alert}, authority: backend}
    targets:
      - {name: cm, kind: k8s/configmap, layout: flink, namespace: ns, object: o, guarded: true}
  - {name: quiet}
defaults:
  policy: {confirmWithin: 7s}
`)
	require.NoError(t, err)
	s := e.Settings()
	flink := s.Groups["flink"]
	require.Equal(t, policy.Clear, flink.Policy.OnRevoke)
	require.Equal(t, policy.Duration(7*time.Second), flink.Policy.ConfirmWithin)
	require.Equal(t, policy.Duration(5*time.Second), flink.Policy.Health.Period)
	require.Equal(t, policy.Default().Health.Window, flink.Policy.Health.Window)
	require.Equal(t, policy.OnErase{Default: policy.Restore, Patterns: map[string]string{"job-*": policy.Alert}}, flink.Policy.OnErase)
	require.Equal(t, "o", flink.Targets[0].Object)
	require.Equal(t, s.Defaults, s.Groups["quiet"].Policy)
	all := origins(e)
	require.Equal(t, "file journald.yaml:4", all["groups[0].policy.onRevoke"].Origin)
	require.Equal(t, "file journald.yaml:9 (defaults.policy)", all["groups[0].policy.confirmWithin"].Origin)
	require.Equal(t, "default", all["groups[0].policy.flapping"].Origin)
}

// TestProblems has every problem at once, each with its line.
func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"unknown keys": {"lisen: x\nnats:\n  lissten: y\nfoo: 1\n", []string{
			`journald.yaml:1: lisen: is no key that is known here; did you mean "listen"?`,
			`journald.yaml:3: nats.lissten: is no key that is known here; did you mean "listen"?`,
			`journald.yaml:4: foo: is no key that is known here`,
		}},
		"wrong types": {"listen: [a]\nnats: 7\ngroups: {}\ninsecure: maybe\nmetrics: {maxSeries: many}\ndata: 8086\n", []string{
			"journald.yaml:1: listen: is a list where a text", "journald.yaml:2: nats: is 7 where a map",
			"journald.yaml:3: groups: is a map where a list",
			`journald.yaml:4: insecure: is the text "maybe" where true or false`,
			`journald.yaml:5: metrics.maxSeries: is the text "many" where a whole number`,
			"journald.yaml:6: data: is 8086 where a text",
		}},
		"ranges": {"listen: nowhere\nlog: {level: loud, format: xml}\nnats: {replicas: 9}\ndefaults: {policy: {flapping: 0, confirmWithin: 0s}}\n", []string{
			"journald.yaml:1: listen", "journald.yaml:2: log.level", "journald.yaml:2: log.format", "journald.yaml:3: nats.replicas",
			"journald.yaml:4: defaults.policy.flapping", "journald.yaml:4: defaults.policy.confirmWithin",
		}},
		"durations and sizes": {"nats: {maxBytes: lots}\ndefaults: {policy: {confirmWithin: 30}}\n", []string{
			`journald.yaml:1: nats.maxBytes: "lots" is no size`, `journald.yaml:2: defaults.policy.confirmWithin: "30" is no duration`,
		}},
		"groups": {"groups:\n- name: a\n- name: a\n- name: b c\n- name: d\n  targets: [{name: t, kind: zk}, {name: t, kind: k8s/configmap, guarded: true}]\n", []string{
			`journald.yaml:3: groups[1].name: there are two groups named "a"`, `journald.yaml:4: groups[2].name: the group "b c"`,
			"journald.yaml:6: groups[3].targets[0]: zk is no kind", "groups[3].targets[1].name: \"t\" names two targets",
		}},
		"not in this version": {"auth: {}\ntls: {}\npartitions: 3\n", []string{
			"journald.yaml:1: auth: is not in this version", "journald.yaml:2: tls: is not in this version",
			"journald.yaml:3: partitions: is not in this version",
		}},
		"ZooKeeper": {"zookeeper:\n  servers: [nowhere]\n  sessionTimeout: 1ms\n  acl: closed\n  credentials: f\n", []string{
			"journald.yaml:2: zookeeper.servers: nowhere is no server", "journald.yaml:3: zookeeper.sessionTimeout: is not between",
			`journald.yaml:4: zookeeper.acl: "closed" is none of open, digest`, "journald.yaml:5: zookeeper.credentials: goes together with",
		}},
		"a digest of nobody": {"zookeeper: {acl: digest}\n", []string{"zookeeper.credentials: is missing"}},
		"NATS twice": {"nats: {embedded: true, url: nats://a:4222, credentials: f}\n",
			[]string{"nats.url: is set, and embedded is true", "nats.credentials: is for nats.url only"}},
		"NATS elsewhere": {"nats: {url: nats://a:4222, listen: 127.0.0.1:4222}\n", []string{"nats.maxBytes: is needed",
			"nats.listen: is for the embedded server only"}},
		"no NATS":  {"nats: {embedded: false}\n", []string{"nats.url: is empty"}},
		"replicas": {"nats: {replicas: 3}\n", []string{"nats.replicas: is more than 1"}},
		"cluster": {"nats: {replicas: 3, cluster: {listen: 127.0.0.1:6222}}\n", []string{"nats.cluster.name: is missing",
			"nats.cluster.routes: is missing"}},
		"beyond loopback": {"listen: 0.0.0.0:8086\nnats: {listen: ':4222'}\n", []string{
			"journald.yaml:1: listen: 0.0.0.0:8086 can be reached", "journald.yaml:2: nats.listen: :4222 can be reached"}},
		"said twice":   {"data: a\ndata: b\n", []string{"data"}},
		"no YAML":      {"a: [\n", []string{"is not YAML"}},
		"not a map":    {"- a\n", []string{"is a list where a map is wanted"}},
		"two of them":  {"data: a\n---\ndata: b\n", []string{"several documents"}},
		"alias of air": {"data: *nothing\n", []string{"journald.yaml:1: data"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.text)
			var problems config.Problems
			require.ErrorAs(t, err, &problems)
			require.GreaterOrEqual(t, len(problems), len(c.want), err)
			for _, want := range c.want {
				require.Contains(t, err.Error(), want)
			}
		})
	}
}

// TestLeasesOutlastTheElectionOfALeader where the journal's streams have one to elect.
func TestLeasesOutlastTheElectionOfALeader(t *testing.T) {
	const (
		elsewhere = "nats: {url: nats://a:4222, maxBytes: 1GB}\n"
		cluster   = "nats: {replicas: 3, cluster: {name: c, listen: 127.0.0.1:6222, routes: ['nats://b:6222']}}\n"
		short     = "lease: {duration: 9999ms, renewEvery: 1s, releaseWithin: 5s}"
		enough    = "lease: {duration: 10s, renewEvery: 3s, releaseWithin: 5s}"
	)
	group := func(election, lease string) string {
		return "groups:\n- name: a\n  policy: {election: " + election + ", " + lease + "}\n"
	}
	for _, good := range []string{
		group("managed", short), elsewhere + group("managed", enough), cluster + group("managed", enough), elsewhere + group("external", short),
		elsewhere + "defaults: {policy: {election: managed}}\n",
	} {
		_, err := load(t, good)
		require.NoError(t, err, good)
	}
	for _, where := range []string{elsewhere, cluster} {
		_, err := load(t, where+group("managed", short))
		require.ErrorContains(t, err, "journald.yaml:4: groups[0].policy.lease.duration: 9.999s is shorter than 10s, and the journal is on a cluster")
		_, err = load(t, where+"defaults: {policy: {election: managed, "+short+"}}\n")
		require.ErrorContains(t, err, "journald.yaml:2: defaults.policy.lease.duration: 9.999s is shorter than 10s")
	}
	_, err := load(t, elsewhere+"defaults: {policy: {"+short+"}}\n"+group("managed", "flapping: 3"))
	require.ErrorContains(t, err, "groups[0].policy.lease.duration", "the defaults are the group's too")
}

func TestInsecureIsAChoice(t *testing.T) {
	_, err := load(t, "insecure: true\nlisten: 0.0.0.0:8086\nnats: {listen: ':4222'}\n")
	require.NoError(t, err)
}

func TestAnchors(t *testing.T) {
	e, err := load(t, "groups:\n- name: a\n  policy: &p {flapping: 9}\n- name: b\n  policy: *p\n")
	require.NoError(t, err)
	require.Equal(t, 9, e.Settings().Groups["b"].Policy.Flapping)
}

func TestWrongVariablesAndFlags(t *testing.T) {
	_, err := config.Load(config.Sources{
		Target: known, ZooKeeper: servers, Env: []string{"JOURNALD_NATS_REPLICAS=x", "JOURNALD_INSECURE=perhaps"},
		Flags: map[string]config.Flag{"listen": {Name: "listen", Value: "x"}},
	})
	require.ErrorContains(t, err, `JOURNALD_NATS_REPLICAS: nats.replicas: is "x" where a whole number is wanted`)
	require.ErrorContains(t, err, `JOURNALD_INSECURE: insecure: is "perhaps"`)
	require.ErrorContains(t, err, "--listen: listen:")
}

func TestSecretsAreHidden(t *testing.T) {
	e, err := load(t, "nats: {url: 'nats://me:pa@ss@a:4222,b:4222,tok@c:1', maxBytes: 1GiB}\n")
	require.NoError(t, err)
	require.Equal(t, "nats://***@a:4222,b:4222,***@c:1", origins(e)["nats.url"].Value)
	require.False(t, e.NATS.Embedded)
}

func TestMissingFile(t *testing.T) {
	_, err := config.Load(config.Sources{File: "/none/journald.yaml", Target: known, ZooKeeper: servers})
	require.ErrorContains(t, err, "journald config example")
}

func TestWhatTakesARestart(t *testing.T) {
	before, err := load(t, "data: a\n")
	require.NoError(t, err)
	after, err := load(t, "data: b\nlog: {level: debug}\ngroups: [{name: g}]\ndefaults: {policy: {flapping: 9}}\n")
	require.NoError(t, err)
	require.Equal(t, []string{"data"}, after.Needs(before))
	require.Empty(t, before.Needs(before))
}

// TestExample has the example mean what it says: it can be used as it is, what is commented out is the default, and
// every key is in it.
func TestExample(t *testing.T) {
	e, err := config.Load(config.Sources{File: file(t, config.Example()), Target: func(string, journal.Target) error { return nil }, ZooKeeper: servers})
	require.NoError(t, err)
	require.Equal(t, policy.Default(), e.Settings().Groups["flink-prod"].Policy)
	plain, err := config.Load(config.Sources{Target: known, ZooKeeper: servers})
	require.NoError(t, err)
	for _, v := range plain.Values() {
		last := v.Key[strings.LastIndexByte(v.Key, '.')+1:]
		require.Contains(t, config.Example(), last+":", v.Key)
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]config.Bytes{"0": 0, "17": 17, "1KiB": 1024, "10GiB": 10 << 30, "5 MB": 5e6, "2TB": 2e12, "8B": 8} {
		var b config.Bytes
		require.NoError(t, b.UnmarshalText([]byte(text)))
		require.Equal(t, want, b)
		var again config.Bytes
		require.NoError(t, again.UnmarshalText([]byte(b.String())))
		require.Equal(t, b, again)
	}
	for _, text := range []string{"", "x", "-1", "1.5GiB", "9999999TiB", "GiB"} {
		var b config.Bytes
		require.Error(t, b.UnmarshalText([]byte(text)), text)
	}
}
