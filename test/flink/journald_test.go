// Package flink plays FLINK-40114 against a real API server, through journald's binary and its HTTP API, and shows that
// the same incident breaks what clients read where the retained intent or the fence is taken out.
package flink

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/internal/testenv/journald"
)

const limit = 60 * time.Second

var (
	kube    testenv.SharedKubernetes
	program journald.Program
)

func TestMain(m *testing.M) { os.Exit(program.Run(withKubernetes{m})) }

type withKubernetes struct{ *testing.M }

func (w withKubernetes) Run() int { return kube.Run(w.M) }

// teller is who tells a running journald what happens.
type teller struct {
	t *testing.T
	*journald.Process
	client *journald.Client
}

// start runs journald with one group, flink, whose leaders are shown in one ConfigMap behind an API server's URL.
func start(t *testing.T, api, namespace, policy string) *teller {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "journald.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
data: %s
kubernetes: {kubeconfig: %s}
groups:
  - name: flink
    policy: {%s}
    targets: [{name: cm, kind: k8s/configmap, layout: flink, namespace: %s, object: leaders}]
`, filepath.Join(dir, "data"), testenv.Kubeconfig(t, &rest.Config{Host: api}), policy, namespace), 0o600))
	p := program.Start(t, "--config", config)
	t.Cleanup(func() { p.Terminate(limit) })
	return &teller{t, p, journald.NewClient()}
}

// say publishes one event about a component in the short form, and waits until it is folded.
func (j *teller) say(kind, component string, data map[string]any) (answer api.Ack) {
	j.t.Helper()
	event := map[string]any{"kind": kind, "group": "flink", "component": component}
	maps.Copy(event, data)
	body, err := json.Marshal(event)
	require.NoError(j.t, err)
	text, err := j.client.Do(j.t.Context(), http.MethodPost, j.URL()+"/v1/events?wait=applied", body)
	require.NoError(j.t, err)
	require.NoError(j.t, json.Unmarshal(text, &answer))
	return answer
}

// records are the events of a kind so far.
func (j *teller) records(kind string) string {
	j.t.Helper()
	text, err := j.client.Do(j.t.Context(), http.MethodGet, j.URL()+"/v1/events?limit=1000&kind="+kind, nil)
	require.NoError(j.t, err)
	return string(text)
}
