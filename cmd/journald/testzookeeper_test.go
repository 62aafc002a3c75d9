package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv"
)

func TestScenariosAgainstZooKeeper(t *testing.T) {
	server := testenv.ZooKeeper(t).Addr(0)
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte("name: "+name+"\n"+text), 0o600))
	}
	const steps = `
steps:
  - grant:   {component: restserver, candidate: jm-1, session: S1}
  - confirm: {component: restserver, session: S1, address: "http://jm-1:8081"}
  - expect:  {target: {cm: {restserver: {session: S1}}}}
`
	write("guarded", "policy: {authority: backend}"+steps)
	write("shown", steps)
	r := call(t.Context(), "", []string{"JOURNALD_ZOOKEEPER_SERVERS=" + server}, "test", "--backend", "zk", dir)
	require.Equal(t, exitYes, r.code, r.out+r.err)
	require.Regexp(t, `^skip  \S+/guarded.yaml: .*target cm: guarded: .*\nok    \S+/shown.yaml \(\S+\)\n$`, r.out)

	write("wrong", steps+"  - expect:  {target: {cm: {restserver: {session: S2}}}}\n")
	r = call(t.Context(), "", nil, "test", "--backend", "zk", "--zookeeper", server+"/below", dir)
	require.Equal(t, exitNo, r.code, r.out+r.err)
	require.Contains(t, r.out, "expected S2")
	require.Contains(t, r.err, "1 of 3 scenarios failed")

	r = call(t.Context(), "", nil, "test", "--backend", "zk", "--zookeeper", "127.0.0.1:1", dir)
	require.Equal(t, exitUnreachable, r.code, r.out+r.err)
	r = call(t.Context(), "", nil, "test", "--backend", "zk", "--zookeeper", "nowhere:none", dir)
	require.Equal(t, exitUsage, r.code, r.out+r.err)
	require.Contains(t, r.err, "--zookeeper")
}
