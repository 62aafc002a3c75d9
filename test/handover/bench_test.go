package handover_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/journal"
)

// contests is how many leases are contended for at one time.
const contests = 40

// BenchmarkHandover measures from a leader's crash, its release, an operator's transfer and the record that a health yield
// is decided on until a watcher of the API server sees the next leader.
func BenchmarkHandover(b *testing.B) {
	for _, t := range []timing{{15 * time.Second, 10 * time.Second, 2 * time.Second}, {3 * time.Second, 2 * time.Second, 300 * time.Millisecond}} {
		b.Run(fmt.Sprintf("lease=%s", t.duration), func(b *testing.B) {
			for range b.N {
				newArena(b, t).measure()
			}
		})
	}
}

// arena has two rivals contend for each of some leases, by each of the two elections.
type arena struct {
	*testing.B
	timing timing
	random *rand.Rand
	server string // journald

	client    kubernetes.Interface
	namespace string // of client-go's leases

	ours, theirs *shown
	members      []map[string]*member
	electors     []map[string]elector
}

func newArena(b *testing.B, t timing) *arena {
	b.StopTimer()
	config := kube.Config(b)
	config.QPS, config.Burst = 1000, 1000
	a := &arena{
		B: b, timing: t, random: rand.New(rand.NewPCG(1, 1)), client: kubernetes.NewForConfigOrDie(config), namespace: testenv.Namespace(b, config),
	}
	ours := testenv.Namespace(b, config)
	a.ours, a.theirs = watchLeases(b, a.client, ours), watchLeases(b, a.client, a.namespace)
	a.server = a.serve(config, ours)
	for n := range contests {
		a.members, a.electors = append(a.members, map[string]*member{}), append(a.electors, map[string]elector{})
		a.enter(n, groupName(n)+"-a")
		a.enter(n, groupName(n)+"-b")
	}
	for n := range contests {
		a.ours.other(b.Context(), b, groupName(n), "")
		a.theirs.other(b.Context(), b, groupName(n), "")
	}
	b.StartTimer()
	return a
}

// serve starts a journald for which every contest is a group of its own.
func (a *arena) serve(config *rest.Config, namespace string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "kubernetes: {kubeconfig: %q}\ngroups:\n", testenv.Kubeconfig(a, config))
	for n := range contests {
		fmt.Fprintf(&text, "  - name: %[1]s\n    policy: {election: managed, lease: {duration: %[2]s, renewEvery: %[3]s, releaseWithin: %[2]s}, "+
			"health: {holdDown: 1s, maxYields: 100}, flapping: 100}\n"+
			"    targets: [{name: lease, kind: k8s/lease, namespace: %[4]s, object: %[1]s, components: [leader]}]\n",
			groupName(n), a.timing.duration, a.timing.retry, namespace)
	}
	file := filepath.Join(a.TempDir(), "journald.yaml")
	require.NoError(a, os.WriteFile(file, []byte(text.String()), 0o600))
	return bin.Start(a, "--config", file, "--data", a.TempDir()).URL()
}

func (a *arena) measure() {
	a.yields()
	a.transfers()
	a.both("release", a.each, rival.release)
	a.refill()
	a.both("crash", a.together, rival.crash)
}

// each does something for one contest after the other, and collects how long each took.
func (a *arena) each(f func(n int) time.Duration) (times []time.Duration) {
	for n := range contests {
		<-time.After(time.Duration(a.random.Int64N(int64(a.timing.retry / 4)))) // at any moment between two renewals
		times = append(times, f(n))
	}
	return times
}

// together does something for all contests, at moments that are spread over some renewals.
func (a *arena) together(f func(n int) time.Duration) []time.Duration {
	times := make([]time.Duration, contests)
	var all sync.WaitGroup
	for n := range contests {
		phase := time.Duration(a.random.Int64N(int64(2 * a.timing.retry)))
		all.Go(func() {
			<-time.After(phase)
			times[n] = f(n)
		})
	}
	all.Wait()
	return times
}

func (a *arena) report(what string, times []time.Duration) {
	a.ReportMetric(float64(quantile(times, 0.5).Microseconds())/1000, what+"-p50-ms")
	a.ReportMetric(float64(quantile(times, 0.99).Microseconds())/1000, what+"-p99-ms")
}

// both has the leaders of both elections end in some way.
func (a *arena) both(what string, each func(func(n int) time.Duration) []time.Duration, end func(rival)) {
	ours := each(func(n int) time.Duration {
		leader, _ := a.ours.other(a.Context(), a.B, groupName(n), "")
		return a.follows(a.ours, n, leader, func() { end(a.members[n][leader]) })
	})
	theirs := each(func(n int) time.Duration {
		leader, _ := a.theirs.other(a.Context(), a.B, groupName(n), "")
		return a.follows(a.theirs, n, leader, func() { end(a.electors[n][leader]) })
	})
	a.report(what, ours)
	a.report("client-go-"+what, theirs)
}

func (a *arena) follows(s *shown, n int, leader string, end func()) time.Duration {
	ctx, cancel := context.WithTimeout(a.Context(), 2*time.Minute)
	defer cancel()
	began := time.Now()
	end()
	_, since := s.other(ctx, a.B, groupName(n), leader)
	return since.Sub(began)
}

func (a *arena) transfers() {
	a.report("transfer", a.each(func(n int) time.Duration {
		leader, _ := a.ours.other(a.Context(), a.B, groupName(n), "")
		return a.follows(a.ours, n, leader, func() {
			a.publish(journal.Event{
				ID: uuid.NewString(), Source: "operator/alice", Group: groupName(n), Component: "leader", Time: time.Now().UTC(),
				Data: &journal.Transfer{Order: journal.Order{Actor: "alice", Reason: "benchmark"}},
			})
		})
	}))
}

// yields has every leader fall ill, and measures from the record that the yield was decided on.
func (a *arena) yields() {
	a.report("yield", a.each(func(n int) time.Duration {
		leader, _ := a.ours.other(a.Context(), a.B, groupName(n), "")
		m := a.members[n][leader]
		m.ill.Store(true)
		ctx, cancel := context.WithTimeout(a.Context(), time.Minute)
		defer cancel()
		_, since := a.ours.other(ctx, a.B, groupName(n), leader)
		m.ill.Store(false)
		return since.Sub(a.decided(n))
	}))
	<-time.After(3 * time.Second) // until nobody is held down
}

// decided is when the last record was stored that the newest yield of a contest names as its cause.
func (a *arena) decided(n int) (at time.Time) {
	var yields, cause api.Records
	a.get("/v1/events?kind=yield&group="+groupName(n), &yields)
	require.NotEmpty(a, yields.Records)
	event, err := journal.Decode(yields.Records[len(yields.Records)-1].Event)
	require.NoError(a, err)
	causes := event.Data.(*journal.Yield).Cause
	last := causes[len(causes)-1]
	a.get(fmt.Sprintf("/v1/events?group=%s&from=seq:%d&to=seq:%d", groupName(n), last, last), &cause)
	require.Len(a, cause.Records, 1)
	require.Equal(a, "health", cause.Records[0].Kind)
	return cause.Records[0].Time
}

// refill has a second rival again in each contest.
func (a *arena) refill() {
	for n := range contests {
		a.enter(n, groupName(n)+"-c")
	}
	<-time.After(5*time.Second + 2*a.timing.retry) // until all have joined, and what that takes is over
}

// enter has one more rival contend, by each of the elections.
func (a *arena) enter(n int, name string) {
	a.members[n][name] = a.byJournald(groupName(n), name)
	a.electors[n][name] = a.byClientGo(groupName(n), name)
}

func (a *arena) get(path string, into any) {
	request, err := http.NewRequestWithContext(a.Context(), http.MethodGet, a.server+path, nil)
	require.NoError(a, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(a, err)
	defer answer.Body.Close()
	require.Equal(a, http.StatusOK, answer.StatusCode)
	require.NoError(a, json.NewDecoder(answer.Body).Decode(into))
}

func (a *arena) publish(e journal.Event) {
	text, err := e.Encode()
	require.NoError(a, err)
	request, err := http.NewRequestWithContext(a.Context(), http.MethodPost, a.server+"/v1/events", bytes.NewReader(text))
	require.NoError(a, err)
	request.Header.Set("Content-Type", "application/cloudevents+json")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(a, err)
	defer answer.Body.Close()
	require.Equal(a, http.StatusCreated, answer.StatusCode)
}
