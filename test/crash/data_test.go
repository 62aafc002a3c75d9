package crash_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/testenv/journald"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/journal/stream"
)

const exitUnreachable = 3 // the exit code that says that a dependency can't be used

// digest is the content of every file below a directory.
func digest(t *testing.T, dir, pattern string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if match, err := filepath.Match(pattern, d.Name()); err != nil || !match {
			return err
		}
		text, err := os.ReadFile(name)
		sum := sha256.Sum256(text)
		sums[name] = hex.EncodeToString(sum[:])
		return err
	}))
	require.NotEmpty(t, sums)
	return sums
}

// one publishes events of one component and waits until they are acknowledged.
func one(t *testing.T, i *journald.Process, ids ...string) {
	t.Helper()
	var events []journal.Event
	for _, id := range ids {
		events = append(events, journal.Event{
			ID: id, Source: "candidate/web-1", Group: plain, Component: "web", Time: time.Now().UTC(),
			Data: &journal.Grant{Candidate: "web-1", Session: id},
		})
	}
	_, err := newClient().Publish(t.Context(), i.URL(), "?wait=applied", events...)
	require.NoError(t, err)
}

// TestDataInUse starts a second journald on the data of one that runs. It says so, ends, and touches nothing.
func TestDataInUse(t *testing.T) {
	data := t.TempDir()
	owner := bin.Start(t, "--data", data)
	one(t, owner, "s1")
	owner.Freeze() // so that nobody but the second one could change a file
	before := digest(t, data, "*")
	second := bin.Launch(t, "--data", data)
	require.Equal(t, exitUnreachable, second.Exit(patient), second.Said())
	require.Contains(t, second.Said(), data)
	require.Contains(t, second.Said(), "in use by another process")
	require.Equal(t, before, digest(t, data, "*"))
	owner.Thaw()
	one(t, owner, "s2")
	owner.Terminate(patient)
}

// TestDamagedData starts journald on data that it can't use. It says what is wrong and ends; what is left of the
// journal stays as it is.
func TestDamagedData(t *testing.T) {
	const blocks = "*.blk"
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, data string)
		says   []string
	}{
		{"a record is flipped", func(t *testing.T, data string) {
			block := glob(t, data, "jetstream", "*", "streams", stream.Name, "msgs", "1.blk")
			text, err := os.ReadFile(block)
			require.NoError(t, err)
			text[len(text)/2] ^= 0xff
			require.NoError(t, os.WriteFile(block, text, 0o600))
		}, []string{"hole", "missing", "restore a backup"}},
		{"the size can't be read", func(t *testing.T, data string) {
			require.NoError(t, os.WriteFile(filepath.Join(data, "max-store"), []byte("much\n"), 0o600))
		}, []string{"max-store", "much", "not a number"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := t.TempDir()
			i := bin.Start(t, "--data", data)
			for _, id := range []string{"s1", "s2", "s3", "s4", "s5", "s6"} {
				one(t, i, id)
			}
			i.Terminate(patient)
			c.damage(t, data)
			before := digest(t, data, blocks)
			again := bin.Launch(t, "--data", data)
			require.Equal(t, exitUnreachable, again.Exit(patient), again.Said())
			for _, word := range c.says {
				require.Contains(t, again.Said(), word)
			}
			require.Equal(t, before, digest(t, data, blocks))
		})
	}
	t.Run("the directory is a file", func(t *testing.T) {
		data := filepath.Join(t.TempDir(), "data")
		require.NoError(t, os.WriteFile(data, []byte("mine"), 0o600))
		i := bin.Launch(t, "--data", data)
		require.Equal(t, exitUnreachable, i.Exit(patient), i.Said())
		require.Contains(t, i.Said(), data)
		text, err := os.ReadFile(data)
		require.NoError(t, err)
		require.Equal(t, "mine", string(text))
	})
}

func glob(t *testing.T, parts ...string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(parts...))
	require.NoError(t, err)
	require.Len(t, found, 1, parts)
	return found[0]
}

// TestDescriptionLost takes away what the NATS server knows the journal's stream by. It is made anew over the records that
// are there: all of them, at their places.
func TestDescriptionLost(t *testing.T) {
	for name, damage := range map[string]func(file string) error{
		"removed": os.Remove,
		"cut off": func(file string) error { return os.Truncate(file, 20) },
	} {
		t.Run(name, func(t *testing.T) {
			data, seats := t.TempDir(), newSeats()
			load := newLoad(t, seats, seeded(t), 2, plain)
			i := bin.Start(t, "--data", data)
			seats.add(i)
			load.begin()
			load.more(20)
			load.settle()
			i.Terminate(patient)
			require.NoError(t, damage(glob(t, data, "jetstream", "*", "streams", stream.Name, "meta.inf")))
			again := bin.Start(t, "--data", data)
			one(t, again, "s1")
			again.Terminate(patient)
			load.checkRecords(readAll(t, openLog(t, stream.Options{Embedded: &stream.Embedded{Dir: data}})))
		})
	}
}

// TestTermination ends journald with SIGTERM under load, again and again. It ends with 0, soon, and loses nothing.
func TestTermination(t *testing.T) {
	const (
		rounds = 10
		soon   = 15 * time.Second
	)
	seed := seeded(t)
	cluster, seats := newCluster(t), newSeats()
	load := newLoad(t, seats, seed, 5, shown, plain)
	cluster.witness.expect(load)
	data := t.TempDir()
	args := []string{"--data", data, "--instance", "journald-0", cluster.settings(cluster.config, "")}
	load.begin()
	var took []time.Duration
	for range rounds {
		i := bin.Start(t, args...)
		seats.add(i)
		load.more(20)
		took = append(took, i.Terminate(soon))
	}
	last := bin.Start(t, append(args, "--nats-listen", "127.0.0.1:0")...)
	seats.add(last)
	load.settle()
	load.converges(cluster, last.NATS())
	last.Terminate(soon)
	cluster.witness.faultless(t)
	_, lost, refused := load.counts()
	t.Logf("SIGTERM under load took %s; %d answers lost, refused %v", summary(took), lost, refused)

	records := readAll(t, openLog(t, stream.Options{Embedded: &stream.Embedded{Dir: data}}))
	load.checkRecords(records)
	load.checkView(load.replay(records, seed).view)
}
