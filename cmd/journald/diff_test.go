package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view/compare"
)

func TestDiffOfNothing(t *testing.T) {
	s := serve(t, "--data", t.TempDir())
	require.Equal(t, result{0, "", "There is nothing to compare: no component is known yet.\n"}, s.run("diff"))
	require.Equal(t, exitNo, s.run("diff", "none").code)
	require.Equal(t, exitUsage, s.run("diff", "a", "b").code)
	require.Equal(t, exitUsage, s.run("diff", "-o", "xml").code)
	require.Equal(t, exitUnreachable, s.run("diff", "--server", "http://127.0.0.1:1").code)
}

// TestDiffOfAKeyThatSomebodyElseWrote has the built-in bucket differ, which nobody watches.
func TestDiffOfAKeyThatSomebodyElseWrote(t *testing.T) {
	s := serve(t, "--data", t.TempDir(), "--nats-listen", "127.0.0.1:0")
	_, text, ok := strings.Cut(s.said.String(), "NATS clients: ")
	require.True(t, ok, s.said)
	conn, err := nats.Connect(strings.TrimSpace(strings.SplitN(text, "\n", 2)[0]))
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	for _, name := range []string{"web", "api"} {
		s.must("publish", "grant", "demo/"+name, "candidate=x", "session=S1", "--wait", "applied")
		s.must("publish", "confirm", "demo/"+name, "candidate=x", "session=S1", "address=http://x", "--wait", "published")
	}
	require.Equal(t, result{0, "", "2 compared, none differs.\n"}, s.run("diff", "demo"))
	require.Equal(t, "demo/api@kv\ndemo/web@kv\n", s.must("diff", "--all", "-o", "name"))

	bucket, err := js.KeyValue(t.Context(), "leaders")
	require.NoError(t, err)
	_, err = bucket.PutString(t.Context(), "demo.web",
		`{"sequence":1,"epoch":1,"phase":"confirmed","leader":{"session":"S9","address":"http://y\u001b[2J"}}`)
	require.NoError(t, err)
	r := s.run("diff")
	require.Equal(t, exitNo, r.code)
	require.Regexp(t, `^COMPONENT +TARGET +STATE +REASON +SHOWS +MUST SHOW +OUT FOR\n`+
		`demo/web +kv +differs +other-leader +http://y\?\[2J +http://x +-\n$`, r.out)
	require.Contains(t, r.err, "demo/web at kv: it shows http://y?[2J (session S9), and must show http://x (session S1, candidate x) by record ")
	require.Contains(t, r.err, "It is written with the component's next change")
	require.True(t, strings.HasSuffix(r.err, "1 of 2 differ, 0 can't be read.\n"), r.err)
	require.Contains(t, s.run("diff", "--all").out, "demo/api")
	require.Equal(t, exitYes, s.run("diff", "demo/api").code)

	r = s.run("diff", "-o", "json")
	require.Equal(t, exitNo, r.code)
	var rows []api.DiffRow
	require.NoError(t, json.Unmarshal([]byte(r.out), &rows))
	require.Len(t, rows, 1)
	require.Equal(t, compare.OtherLeader, rows[0].Reason)
	require.Contains(t, s.run("diff", "-o", "yaml").out, "reason: other-leader")
	require.Equal(t, 1, strings.Count(s.run("diff", "-o", "jsonl").out, "\n"))
	require.Equal(t, "1 of 2 differ, 0 can't be read.\n", r.err, "sentences are for people")
}

// TestDiffWithoutACluster can't say what is shown, which is not the same as that it differs.
func TestDiffWithoutACluster(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journald.yaml")
	text := "kubernetes: {kubeconfig: /none/kubeconfig}\n" +
		"groups: [{name: g, targets: [{name: cm, kind: k8s/configmap, layout: json, namespace: n, object: o}]}]\n"
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	s := serve(t, "--data", t.TempDir(), "--config", name)
	s.must("publish", "grant", "g/web", "candidate=web-1", "session=S1", "--wait", "applied")
	for !strings.Contains(s.must("get", "events", "g", "--kind", "policy"), "policy") {
		require.NoError(t, t.Context().Err())
	}
	r := s.run("diff")
	require.Equal(t, exitUnreachable, r.code, r.out+r.err)
	require.Regexp(t, `g/web +cm +unreachable +- +\? +nobody`, r.out)
	require.Contains(t, r.err, "it can't be read, so what it shows is not known: kubernetes.kubeconfig: there is no file /none/kubeconfig")
	require.Contains(t, r.err, "0 of 2 differ, 1 can't be read.")
}

func TestWhatADifferenceMeans(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	must := &api.Standing{Sequence: 12, Leader: &journal.LeaderInfo{Session: "S1", Address: "http://a"}}
	nobody := &api.Standing{Sequence: 12}
	failing := api.PushState{
		State: "failing", Due: true, Attempts: 3, Error: "refused", FailedAt: now.Add(-10 * time.Second),
		RetryAfter: policy.Duration(30 * time.Second), OutSince: now.Add(-time.Minute),
	}
	forGood, before, late := failing, failing, failing
	forGood.Permanent, before.Attempts, late.RetryAfter = true, 0, policy.Duration(time.Second)
	for name, c := range map[string]struct {
		row  api.DiffRow
		says string
	}{
		"a push is due": {
			api.DiffRow{Reason: compare.Outdated, Shows: must, Should: must, Push: &api.PushState{State: "pending", Due: true}},
			"it shows http://a (session S1), and must show http://a (session S1) by record 12. A push is due.",
		},
		"a push of the intent before failed": {
			api.DiffRow{Reason: compare.Missing, Shows: nobody, Should: must, Push: &before},
			"it shows nobody, and must show http://a (session S1) by record 12. Out of sync for 1m0s. A push is due.",
		},
		"pushes fail": {
			api.DiffRow{Reason: compare.Missing, Shows: nobody, Should: must, Push: &failing},
			"it shows nobody, and must show http://a (session S1) by record 12. Out of sync for 1m0s. " +
				"Attempt 3 failed and is tried again in 20s: refused.",
		},
		"pushes are refused": {
			api.DiffRow{Reason: compare.Missing, Shows: nobody, Should: must, Push: &forGood},
			"Attempt 3 failed for good, unless somebody mends it; it is tried again in 20s: refused.",
		},
		"the wait is over": {
			api.DiffRow{Reason: compare.Missing, Shows: nobody, Should: must, Push: &late},
			"Attempt 3 failed and is tried again now: refused.",
		},
		"nobody told of it": {
			api.DiffRow{Reason: compare.OtherLeader, Shows: must, Should: must, Push: &api.PushState{State: "in-sync"}},
			"Whoever changed it did so just now, or the watch on it is broken",
		},
		"the sequence": {
			api.DiffRow{Reason: compare.LowerSequence, Shows: &api.Standing{Sequence: 8, Leader: must.Leader}, Should: must},
			"it shows http://a (session S1), which is right, with sequence 8, which must be 12 or higher.",
		},
		"another journal": {
			api.DiffRow{Reason: compare.Ahead, Shows: &api.Standing{Sequence: 99}, Should: must, Push: &failing},
			"it shows nobody with sequence 99, which this journal has not reached; it must show http://a (session S1)." +
				" Out of sync for 1m0s. Nothing is written over it",
		},
		"a foreign entry": {
			api.DiffRow{Reason: compare.Foreign, Shows: must, Should: &api.Standing{}},
			"it shows http://a (session S1), and must show nobody. No confirmation set it, so it is left alone",
		},
		"a guarded object's": {
			api.DiffRow{Reason: compare.OtherLeader, Guarded: true, Shows: must, Should: must, Push: &api.PushState{State: "in-sync"}},
			"It is the system's own object",
		},
		"superseded": {
			api.DiffRow{Reason: compare.OtherLeader, Shows: must, Should: must, Push: &api.PushState{State: "drifted", Error: "99, not 12"}},
			"It is left alone until something changes: 99, not 12.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.row.State = compare.Differs
			require.Contains(t, diffWords(&c.row, now), c.says)
		})
	}
}

func TestManyDifferencesAreNotAllTold(t *testing.T) {
	var told strings.Builder
	d := &differ{remote: &remote{process: &process{err: &told}}}
	rows := make([]api.DiffRow, mostExplained+5)
	for i := range rows {
		rows[i].State = api.Unreachable
	}
	d.explain(rows, time.Now())
	require.Equal(t, mostExplained+1, strings.Count(told.String(), "\n"))
	require.Contains(t, told.String(), "the rest is in the table")
}
