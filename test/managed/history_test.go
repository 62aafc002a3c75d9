package managed_test

import (
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// history is every use of a component.
type history struct {
	mu      sync.Mutex
	uses    []use
	newest  map[string]*process // who used a component last
	last    map[string]use
	changed chan struct{}
}

func newHistory() *history {
	return &history{newest: map[string]*process{}, last: map[string]use{}, changed: make(chan struct{})}
}

func (h *history) add(p *process, u use) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.uses = append(h.uses, u)
	if u.Epoch >= h.last[u.Component].Epoch {
		h.newest[u.Component], h.last[u.Component] = p, u
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

// leader is whoever used a component last.
func (h *history) leader(component string) *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest[component]
}

// await waits until every component has been used after a moment, and says how long that took.
func (h *history) await(t *testing.T, after int64, what string) time.Duration {
	t.Helper()
	limit := time.After(patience)
	for {
		h.mu.Lock()
		changed, all := h.changed, true
		for _, c := range components {
			all = all && h.last[c].Before > after
		}
		h.mu.Unlock()
		if all {
			return time.Duration(now() - after)
		}
		select {
		case <-changed:
		case <-limit:
			require.FailNow(t, "nobody leads", "after %s", what)
		}
	}
}

// check looks for an order of the uses, each at some moment within its two readings of the clock, in which a component goes
// from one epoch to a higher one and never back.
func (h *history) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range components {
		var operations []porcupine.Operation
		epochs := map[uint64]bool{}
		for _, u := range h.uses {
			if u.Component == c {
				epochs[u.Epoch] = true
				operations = append(operations, porcupine.Operation{Input: u.Epoch, Call: u.Before, Return: u.After})
			}
		}
		t.Logf("%s was used %d times, in %d terms", c, len(operations), len(epochs))
		require.Greater(t, len(epochs), 1, c)
		require.True(t, porcupine.CheckOperations(fencing(), operations), "%s was used by an older term after a newer one", c)
	}
}

// fencing is a register that refuses whoever comes with a lower epoch than it has seen.
func fencing() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return uint64(0) },
		Step: func(state, input, _ any) (bool, any) {
			return input.(uint64) >= state.(uint64), input
		},
	}
}
