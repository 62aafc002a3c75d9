package crash_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/internal/testenv/journald"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/journal/stream"
	"github.com/leadership-journal/journald/view"
)

const (
	succession  = 3 * time.Second // from the end of the one that acts to the next one acting, of which the lease is 2 s
	journalSize = 256 << 20
	natsSize    = "nats: {maxBytes: 256MiB}\n"
)

// pair is two journalds on one journal, and its servers elsewhere.
type pair struct {
	t       *testing.T
	cluster *cluster
	client  *client
	url     string // of NATS
	log     *stream.Log
	seats   *seats
	acts    *journald.Process // the one that acts, as far as is known
	other   *journald.Process
	rest    map[*journald.Process][]string // what each was started with
}

func newPair(t *testing.T) *pair {
	t.Helper()
	_, url := testenv.NATS(t)
	return &pair{t: t, cluster: newCluster(t), client: newClient(), url: url, seats: newSeats(), rest: map[*journald.Process][]string{}}
}

// start begins the pair: the first one acts. Each reaches the API server in its own way.
func (p *pair) start(first, second *rest.Config) {
	p.t.Helper()
	p.acts = p.launch("--instance=a", p.cluster.settings(first, natsSize))
	p.awaitActing(p.acts)
	p.other = p.launch("--instance=b", p.cluster.settings(second, natsSize))
	p.awaitStandby(p.other)
	p.log = openLog(p.t, stream.Options{URL: p.url, MaxBytes: journalSize})
}

func (p *pair) launch(args ...string) *journald.Process {
	p.t.Helper()
	i := bin.Start(p.t, append([]string{"--nats-url", p.url}, args...)...)
	p.rest[i] = args
	p.seats.add(i)
	return i
}

// again starts an instance anew that has ended.
func (p *pair) again(i *journald.Process) *journald.Process {
	p.t.Helper()
	return p.launch(p.rest[i]...)
}

func (p *pair) swap() { p.acts, p.other = p.other, p.acts }

func (p *pair) standing(i *journald.Process) standing {
	s, err := p.client.standing(p.t.Context(), i)
	if err != nil {
		return standing{} // nothing is known of it now
	}
	return s
}

func (p *pair) awaitActing(i *journald.Process) {
	p.t.Helper()
	await(p.t, patient, "it acts", func() bool { s := p.standing(i); return s.ready && s.acts })
}

func (p *pair) awaitStandby(i *journald.Process) {
	p.t.Helper()
	await(p.t, patient, "it stands by", func() bool { s := p.standing(i); return s.ready && !s.acts && s.epoch > 0 })
}

// agree waits until both have folded everything, to the same view.
func (p *pair) agree() {
	p.t.Helper()
	var a, b standing
	await(p.t, patient, "both have the same view", func() bool {
		a, b = p.standing(p.acts), p.standing(p.other)
		return a.ready && b.ready && a.sequence == b.sequence
	})
	require.Equal(p.t, a.hash, b.hash)
	require.True(p.t, a.acts && !b.acts, "exactly one acts")
}

// TestTakeover kills the one that acts, ten times, under load. The other acts in under three seconds, and nothing is
// lost or goes back.
func TestTakeover(t *testing.T) {
	const rounds = 10
	seed := seeded(t)
	p := newPair(t)
	load := newLoad(t, p.seats, seed, 3, shown, plain)
	p.cluster.witness.expect(load)
	p.start(p.cluster.config, p.cluster.config)
	load.begin()
	var killed []time.Time
	var took []time.Duration
	for range rounds {
		load.more(20)
		dead := p.acts
		began := time.Now()
		dead.Kill()
		p.awaitActing(p.other)
		killed, took = append(killed, began), append(took, time.Since(began))
		p.swap()
		p.other = p.again(dead)
		p.awaitStandby(p.other)
	}
	load.settle()
	load.converges(p.cluster, p.url)
	p.agree()
	p.cluster.witness.faultless(t)

	records := readAll(t, p.log)
	load.checkRecords(records)
	load.checkView(load.replay(records, seed).view)
	recorded := successions(t, records, killed)
	t.Logf("from the kill to the takeover record: %s; to acting, as readyz says it: %s", summary(recorded), summary(took))
	require.Less(t, slices.Max(recorded), succession)
	require.Less(t, slices.Max(took), succession)
}

// successions are the times from each kill to the takeover record that followed it.
func successions(t *testing.T, records []journal.Record, killed []time.Time) (took []time.Duration) {
	t.Helper()
	for _, at := range killed {
		i := slices.IndexFunc(records, func(r journal.Record) bool {
			_, ok := r.Event.Data.(*journal.Takeover)
			return ok && r.Time.After(at)
		})
		require.GreaterOrEqual(t, i, 0)
		took = append(took, records[i].Time.Sub(at))
	}
	return took
}

func summary(took []time.Duration) string {
	sorted := slices.Sorted(slices.Values(took))
	return fmt.Sprintf("median %s, max %s of %d", sorted[len(sorted)/2].Round(time.Millisecond), sorted[len(sorted)-1].Round(time.Millisecond), len(sorted))
}

// TestFrozen freezes the one that acts, under load, until the other has taken over and published, and lets it go on. It
// changes nothing, stands by, and acts again when its turn comes.
func TestFrozen(t *testing.T) {
	const rounds = 5
	seed := seeded(t)
	p := newPair(t)
	load := newLoad(t, p.seats, seed, 3, shown, plain)
	p.cluster.witness.expect(load)
	p.start(p.cluster.config, p.cluster.config)
	load.begin()
	for range rounds {
		load.more(20)
		p.acts.Freeze()
		p.awaitActing(p.other)
		epoch := p.standing(p.other).epoch
		await(t, patient, "the new one publishes what came after it took over", func() bool {
			fence, _ := p.cluster.witness.state()
			return fence > epoch
		})
		p.acts.Thaw()
		p.awaitStandby(p.acts)
		p.swap()
	}
	p.acts.Kill()
	p.awaitActing(p.other)
	p.swap()
	p.other = p.again(p.other)
	load.settle()
	load.converges(p.cluster, p.url)
	p.awaitStandby(p.other)
	p.agree()
	p.cluster.witness.faultless(t)

	records := readAll(t, p.log)
	load.checkRecords(records)
	found := load.replay(records, seed)
	load.checkView(found.view)
	t.Logf("%d records, %d of them of a projector that had been replaced", len(records), found.void)
}

// TestFrozenInAPush freezes the one that acts while the API server has not answered its write. The other publishes what
// is newer; whether the write never arrives or arrives after that, it changes nothing.
func TestFrozenInAPush(t *testing.T) {
	t.Run("the write is lost", func(t *testing.T) {
		p := newPair(t)
		faults := testenv.NewHTTPFaults(t, p.cluster.config)
		p.start(faults.Config(), p.cluster.config)
		p.publish(p.acts, 1, "?wait=published&timeout=20s")
		faults.Set(testenv.Fault{Match: testenv.Writes, Hang: true})
		p.frozenInPush(func() bool { return faults.Count() > 0 })
		faults.Set()
		p.resume()
	})
	t.Run("the write arrives late", func(t *testing.T) {
		p := newPair(t)
		gate := newGate(t, p.cluster.config)
		p.start(gate.config, p.cluster.config)
		p.publish(p.acts, 1, "?wait=published&timeout=20s")
		gate.close()
		p.frozenInPush(func() bool { return gate.holding() > 0 })
		gate.open()
		await(t, patient, "the API server answers the late write", func() bool { return len(gate.answers()) == gate.holding() })
		for _, status := range gate.answers() {
			require.Equal(t, http.StatusConflict, status, "the late write is refused")
		}
		p.shows(3)
		p.resume()
	})
}

// frozenInPush confirms anew, freezes the one that acts once its write hangs, and has the other publish what is newer.
func (p *pair) frozenInPush(hangs func() bool) {
	p.t.Helper()
	p.publish(p.acts, 2, "")
	await(p.t, patient, "the write is under way", hangs)
	p.acts.Freeze()
	p.awaitActing(p.other)
	p.publish(p.other, 3, "?wait=published&timeout=20s")
	p.shows(3)
}

// resume lets the frozen one go on. What it says late is void, and it acts again once the other one is gone.
func (p *pair) resume() {
	p.t.Helper()
	p.void()
	p.acts.Thaw()
	p.awaitStandby(p.acts)
	p.swap()
	p.agree()
	p.acts.Kill()
	p.awaitActing(p.other)
	p.publish(p.other, 4, "?wait=published&timeout=20s")
	p.shows(4)
	p.cluster.witness.faultless(p.t)
}

// publish says where the leader of the one component is, in its one session.
func (p *pair) publish(i *journald.Process, number int, query string) {
	p.t.Helper()
	data := []journal.Data{
		&journal.Grant{Candidate: "web-1", Session: "s1"},
		&journal.Confirm{Session: "s1", Candidate: "web-1", Address: fmt.Sprintf("http://web-1:8080/%d", number), Attempt: uint64(number)},
	}
	var events []journal.Event
	for _, d := range data {
		events = append(events, journal.Event{
			ID: fmt.Sprintf("%s-%d", d.Kind(), number), Source: "candidate/web-1", Group: shown, Component: "web", Time: time.Now().UTC(), Data: d,
		})
	}
	acks, err := p.client.Publish(p.t.Context(), i.URL(), query, events...)
	require.NoError(p.t, err)
	if query != "" {
		require.Equal(p.t, view.Applied, acks[1].Verdict, acks[1].Reason)
		require.True(p.t, acks[1].Published)
	}
}

// shows waits until the ConfigMap shows what was confirmed under a number, and its fence.
func (p *pair) shows(number int) {
	p.t.Helper()
	must := map[string]journal.LeaderInfo{"web": {Session: "s1", Candidate: "web-1", Address: fmt.Sprintf("http://web-1:8080/%d", number)}}
	await(p.t, patient, "the ConfigMap shows it", func() bool {
		_, entries := p.cluster.witness.state()
		return reflect.DeepEqual(entries, must)
	})
}

// void appends a record as the frozen one would have that did not know of the takeover, and holds the other, and a
// replay, to its being void.
func (p *pair) void() {
	p.t.Helper()
	records := readAll(p.t, p.log)
	epochs := takeovers(records)
	require.GreaterOrEqual(p.t, len(epochs), 2)
	acks, err := p.log.Append(p.t.Context(), journal.Event{
		ID: "late", Source: "projector/a", Group: shown, Component: "web", Time: time.Now().UTC(), Data: &journal.Push{
			Target: "cm", Intent: records[len(records)-1].Sequence, Attempt: 1, Outcome: journal.Failed, Error: "late",
			Decision: journal.Decision{Projector: epochs[len(epochs)-2], Basis: 1},
		},
	})
	require.NoError(p.t, err)
	late := acks[0].Sequence
	var record api.Record
	await(p.t, patient, "the late record is folded", func() bool {
		text, err := p.client.Do(p.t.Context(), http.MethodGet, fmt.Sprintf("%s/v1/events/%d", p.other.URL(), late), nil)
		require.NoError(p.t, err)
		require.NoError(p.t, json.Unmarshal(text, &record))
		return record.Verdict != ""
	})
	require.Equal(p.t, view.Void, record.Verdict)
	records, f := readAll(p.t, p.log), replayed{view: view.New()}
	for i := range records[:late-1] {
		f.apply(p.t, &records[i])
	}
	before := f.view.Hash()
	f.apply(p.t, &records[late-1])
	require.Equal(p.t, before, f.view.Hash(), "the late record changes nothing")
	require.NotZero(p.t, f.void)
}

// takeovers are the epochs of the projectors that there were.
func takeovers(records []journal.Record) (epochs []uint64) {
	for i := range records {
		if _, ok := records[i].Event.Data.(*journal.Takeover); ok {
			epochs = append(epochs, records[i].Sequence)
		}
	}
	return epochs
}
