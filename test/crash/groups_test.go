package crash_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/internal/testenv/journald"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// TestManyGroups has 10,000 groups spoken of that nobody knew, as fast as they come. Each request is answered, memory
// stays within bounds, and a confirmation of another group is shown within a second all the while.
func TestManyGroups(t *testing.T) {
	const (
		groups     = 10_000
		publishers = 32
		mostRSS    = 512 << 20
		soon       = time.Second
	)
	cluster := newCluster(t)
	i := bin.Start(t, "--data", t.TempDir(), cluster.settings(cluster.config, ""))
	client := newClient()
	confirm := confirmer(t, client, i)
	confirm(0)
	before := i.Resident()

	var next atomic.Int64
	var mu sync.Mutex
	answers := map[int]int{}
	var failed error
	var flood sync.WaitGroup
	began := time.Now()
	for range publishers {
		flood.Go(func() {
			for n := next.Add(1); n <= groups; n = next.Add(1) {
				status, err := speakOf(t, client, i, n)
				mu.Lock()
				answers[status]++
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	over := make(chan struct{})
	go func() { flood.Wait(); close(over) }()
	var took []time.Duration
	for n := 1; n == 1 || !closed(over); n++ {
		took = append(took, confirm(n))
	}
	<-over
	flooded := time.Since(began)
	require.NoError(t, failed)
	require.Equal(t, groups, answers[http.StatusCreated]+answers[http.StatusTooManyRequests], "each is answered: %v", answers)
	require.NotZero(t, answers[http.StatusCreated])
	require.Less(t, flooded, time.Minute)
	took = append(took, confirm(len(took)+1))
	require.Less(t, slices.Max(took), soon, "a confirmation of another group is shown soon")
	after := i.Resident()
	require.Less(t, after, uint64(mostRSS))
	t.Logf("%d groups in %s: %v; meanwhile a confirmation was shown in %s; memory %d MiB before, %d MiB after", groups,
		flooded.Round(time.Millisecond), answers, summary(took), before>>20, after>>20)
	await(t, patient, "the projector goes on", func() bool {
		s, err := client.standing(t.Context(), i)
		return err == nil && s.ready && s.acts
	})
	i.Terminate(patient)
}

// speakOf publishes an event of a group of its own, and returns the status of the answer.
func speakOf(t *testing.T, client *client, i *journald.Process, n int64) (int, error) {
	t.Helper()
	_, err := client.Publish(t.Context(), i.URL(), "", journal.Event{
		ID: fmt.Sprintf("flood-%d", n), Source: "candidate/x", Group: fmt.Sprintf("made-up-%d", n), Component: "web", Time: time.Now().UTC(),
		Data: &journal.Grant{Candidate: "x", Session: "s1"},
	})
	if r, ok := errors.AsType[*journald.Refusal](err); ok {
		return r.Status, nil
	}
	return http.StatusCreated, err
}

// confirmer says where the leader of one component is, and how long it took until the ConfigMap showed it.
func confirmer(t *testing.T, client *client, i *journald.Process) func(n int) time.Duration {
	t.Helper()
	publish := func(data journal.Data, n int) api.Ack {
		acks, err := client.Publish(t.Context(), i.URL(), "?wait=published&timeout=20s", journal.Event{
			ID: fmt.Sprintf("%s-%d", data.Kind(), n), Source: "candidate/web-1", Group: shown, Component: "web", Time: time.Now().UTC(), Data: data,
		})
		require.NoError(t, err)
		return acks[0]
	}
	publish(&journal.Grant{Candidate: "web-1", Session: "s1"}, 0)
	return func(n int) time.Duration {
		began := time.Now()
		ack := publish(&journal.Confirm{
			Session: "s1", Candidate: "web-1", Address: fmt.Sprintf("http://web-1:8080/%d", n), Attempt: uint64(n + 1),
		}, n)
		require.Equal(t, view.Applied, ack.Verdict)
		require.True(t, ack.Published)
		return time.Since(began)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
