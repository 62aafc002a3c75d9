package k8s_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/adapters/k8s"
	"github.com/leadership-journal/journald/journal"
)

func TestTargetsThatCanBeServed(t *testing.T) {
	for _, spec := range []journal.Target{
		{Name: "cm", Kind: "k8s/configmap", Layout: "flink", Namespace: "flink", Object: "flink-prod-leaders"},
		{Name: "lease", Kind: "k8s/lease", Namespace: "flink", Object: "flink-{component}", Components: []string{"restserver"}},
		{Name: "lease", Kind: "k8s/lease", Namespace: "flink", Object: "flink-rest", Components: []string{"restserver"}},
		{Name: "lease", Kind: "k8s/lease", Namespace: "flink"},
		{Name: "flink", Kind: "k8s/configmap", Layout: "flink", Namespace: "flink", Object: "prod-cluster-config-map", Guarded: true},
		{Name: "each", Kind: "k8s/configmap", Layout: "json", Namespace: "flink", Object: "leader-{component}", Observe: true},
	} {
		require.NoError(t, k8s.Validate("Flink.Prod", spec))
		target, err := offline(t).Connect("Flink.Prod", spec)
		require.NoError(t, err)
		require.Equal(t, spec.Kind == k8s.Lease || strings.Contains(spec.Object, "{"), target.PerComponent())
	}
}

func TestTargetsThatCannotBeServed(t *testing.T) {
	good := journal.Target{Name: "cm", Kind: "k8s/configmap", Layout: "flink", Namespace: "flink", Object: "leaders"}
	lease := journal.Target{Name: "cm", Kind: "k8s/lease", Namespace: "flink"}
	for want, spec := range map[string]journal.Target{
		`target cm: kind "zk" is none of k8s/configmap, k8s/lease`:                  with(good, func(s *journal.Target) { s.Kind = "zk" }),
		`target cm: kind "k8s/election" is none of k8s/configmap, k8s/lease`:        with(good, func(s *journal.Target) { s.Kind = "k8s/election" }),
		`target cm: layout is missing; it is flink or json`:                         with(good, func(s *journal.Target) { s.Layout = "" }),
		`target cm: layout "latch" is none of flink, json`:                          with(good, func(s *journal.Target) { s.Layout = "latch" }),
		`target cm: namespace is missing`:                                           with(good, func(s *journal.Target) { s.Namespace = "" }),
		`target cm: namespace "Flink":`:                                             with(good, func(s *journal.Target) { s.Namespace = "Flink" }),
		`target cm: object is missing; it is the ConfigMap's name`:                  with(good, func(s *journal.Target) { s.Object = "" }),
		`target cm: object "Leaders":`:                                              with(good, func(s *journal.Target) { s.Object = "Leaders" }),
		`target cm: path is for ZooKeeper`:                                          with(good, func(s *journal.Target) { s.Path = "/leaders" }),
		`target cm: layout "json": a lease has one layout only`:                     with(lease, func(s *journal.Target) { s.Layout = "json" }),
		`target cm: guarded: a lease is shown`:                                      with(lease, func(s *journal.Target) { s.Guarded = true }),
		`target cm: object "one": a lease shows one component; have {component} in`: with(lease, func(s *journal.Target) { s.Object = "one" }),
	} {
		require.ErrorContains(t, k8s.Validate("g", spec), want)
		_, err := offline(t).Connect("g", spec)
		require.ErrorContains(t, err, want)
	}
}

func with(spec journal.Target, change func(*journal.Target)) journal.Target {
	change(&spec)
	return spec
}

// offline is a client that never connects.
func offline(t *testing.T) *k8s.Client { return newClient(t, &rest.Config{Host: "http://127.0.0.1:1"}) }

func TestClientNeedsItsParts(t *testing.T) {
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	for _, c := range []struct {
		config *rest.Config
		opts   k8s.Options
	}{
		{nil, k8s.Options{Now: writtenAt, Logger: logger}},
		{&rest.Config{}, k8s.Options{Logger: logger}},
		{&rest.Config{}, k8s.Options{Now: writtenAt}},
	} {
		_, err := k8s.NewClient(c.config, c.opts)
		require.Error(t, err)
	}
	_, err := k8s.NewClient(&rest.Config{Host: "http://a", TLSClientConfig: rest.TLSClientConfig{CAFile: "/nonexistent"}},
		k8s.Options{Now: writtenAt, Logger: logger})
	require.ErrorContains(t, err, "prepare connections to http://a")
}
