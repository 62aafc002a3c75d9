// Package flink plays FLINK-40114 against a real API server, through journald's binary and its HTTP API, and shows that
// the same incident breaks what clients read where the retained intent or the fence is taken out.
package flink

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv"
)

const limit = 60 * time.Second

var (
	kube   testenv.SharedKubernetes
	binary string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "journald-flink-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	binary = filepath.Join(dir, "journald")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/journald")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build journald:", err)
		return 1
	}
	return kube.Run(m)
}

// journald is a running one.
type journald struct {
	t       *testing.T
	url     string
	command *exec.Cmd
	log     *output
}

// output is what journald says, as it says it.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{}
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.grown <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start runs journald with one group, flink, whose leaders are shown in one ConfigMap behind an API server's URL.
func start(t *testing.T, api, namespace, policy string) *journald {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a,
clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {}}]}`, api))
	write(t, dir, "journald.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
data: %s
kubernetes: {kubeconfig: %s}
groups:
  - name: flink
    policy: {%s}
    targets: [{name: cm, kind: k8s/configmap, layout: flink, namespace: %s, object: leaders}]
`, filepath.Join(dir, "data"), filepath.Join(dir, "kubeconfig"), policy, namespace))
	j := &journald{t: t, command: exec.CommandContext(context.WithoutCancel(t.Context()), binary, "serve", "--config", filepath.Join(dir, "journald.yaml")), log: &output{grown: make(chan struct{}, 1)}}
	j.command.Stderr = j.log
	require.NoError(t, j.command.Start())
	j.url = j.listening()
	t.Cleanup(j.stop)
	return j
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// listening waits until the log says where the API is.
func (j *journald) listening() string {
	deadline := time.After(limit)
	for {
		if _, rest, ok := strings.Cut(j.log.String(), "journald listens on "); ok {
			if url, _, ok := strings.Cut(rest, ","); ok {
				return url
			}
		}
		select {
		case <-j.log.grown:
		case <-deadline:
			require.Fail(j.t, "journald does not listen", j.log.String())
		}
	}
}

func (j *journald) stop() {
	require.NoError(j.t, j.command.Process.Signal(syscall.SIGTERM))
	require.NoError(j.t, j.command.Wait(), "SIGTERM ends with 0")
}

// said is the answer to an event.
type said struct {
	Sequence uint64 `json:"sequence"`
	Verdict  string `json:"verdict"`
	Reason   string `json:"reason"`
}

// say publishes one event about a component in the short form, and waits until it is folded.
func (j *journald) say(kind, component string, data map[string]any) said {
	j.t.Helper()
	event := map[string]any{"kind": kind, "group": "flink", "component": component}
	for k, v := range data {
		event[k] = v
	}
	body, err := json.Marshal(event)
	require.NoError(j.t, err)
	request, err := http.NewRequestWithContext(j.t.Context(), http.MethodPost, j.url+"/v1/events?wait=applied", bytes.NewReader(body))
	require.NoError(j.t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(j.t, err)
	defer response.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(response.Body)
	require.NoError(j.t, err)
	require.Equal(j.t, http.StatusCreated, response.StatusCode, text.String())
	var one said
	if err := json.Unmarshal(text.Bytes(), &one); err != nil {
		var list []said
		require.NoError(j.t, json.Unmarshal(text.Bytes(), &list), text.String())
		require.Len(j.t, list, 1)
		one = list[0]
	}
	return one
}

// records are the events of a kind so far.
func (j *journald) records(kind string) string {
	j.t.Helper()
	request, err := http.NewRequestWithContext(j.t.Context(), http.MethodGet, j.url+"/v1/events?limit=1000&kind="+kind, nil)
	require.NoError(j.t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(j.t, err)
	defer response.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(response.Body)
	require.NoError(j.t, err)
	return text.String()
}
