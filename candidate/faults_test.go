package candidate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// schedulesVariable says how many random fault schedules to play; seedVariable, which one alone.
const (
	schedulesVariable = "JOURNALD_SCHEDULES"
	seedVariable      = "JOURNALD_SCHEDULE"
	usualSchedules    = 500
)

// Whatever is killed, cut off, delayed, lost or set wrong: two processes never both hold a component, each sees the ones
// before it end, and once the faults stop somebody leads.
func TestRandomFaults(t *testing.T) {
	first, count := uint64(1), uint64(usualSchedules)
	if text := os.Getenv(schedulesVariable); text != "" {
		count = number(t, schedulesVariable, text)
	}
	if text := os.Getenv(seedVariable); text != "" {
		first, count = number(t, seedVariable, text), 1
	}
	for seed := first; seed < first+count; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { newChaos(t, seed).play() })
		})
	}
}

func number(t *testing.T, name, text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

// chaos is a managed group under faults.
type chaos struct {
	*testing.T
	*world
	random   *rand.Rand
	services []*used // the newest life of each candidate
	uses     *history
}

var components = []string{"web", "db"}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{T: t, random: rand.New(rand.NewPCG(seed, 0)), uses: &history{}}
	c.world = newWorld(t, managed())
	for i := range 3 {
		c.services = append(c.services, c.launch(fmt.Sprintf("c%d", i)))
	}
	return c
}

// used is a service that uses what it leads, as often as it may. It makes the most of it: told to stop it goes on for a
// while, as long as its lease lasts.
type used struct {
	*service
	chaos  *chaos
	skew   time.Duration // of its wall clock
	mu     sync.Mutex
	killed bool
	works  map[*Term]bool
}

func (c *chaos) launch(name string) *used {
	u := &used{chaos: c, works: map[*Term]bool{}, skew: time.Duration(c.random.IntN(3)-1) * time.Hour}
	slow := time.Duration(c.random.IntN([]int{1_000, 20_000, 40_000, 120_000}[c.random.IntN(4)])) * time.Millisecond
	u.service = start(c.T, c.world, name, func(cfg *Config, cb *Callbacks) {
		cfg.Components, cfg.StopWithin = components, 3*time.Minute
		cfg.wall = func() time.Time { return time.Now().Add(u.skew) }
		cb.OnGranted = func(ctx context.Context, t *Term) error { return u.work(ctx, t, slow) }
	})
	return u
}

// work uses the component again and again, and takes its time to stop.
func (u *used) work(ctx context.Context, t *Term, slow time.Duration) error {
	u.set(t, true)
	defer u.set(t, false)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		u.use(t)
		<-tick.C
	}
	for over := time.After(slow); ; {
		select {
		case <-tick.C:
			u.use(t)
		case <-over:
			return nil
		}
	}
}

func (u *used) set(t *Term, works bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if works {
		for other := range u.works {
			require.NotEqual(u.chaos.T, other.Component, t.Component, "two terms of a component at one time in one process")
		}
		u.works[t] = true
	} else {
		delete(u.works, t)
	}
}

// use notes that the component was used, where this process may believe that it leads.
func (u *used) use(t *Term) {
	u.chaos.uses.note(t.Component, t.epoch.known(), func() bool { return u.holds(t) })
}

// holds says whether a process that works in a term has a lease for it.
func (u *used) holds(t *Term) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.killed && u.works[t] && t.member.lease.covers(t)
}

// believes says whether a process holds a component.
func (u *used) believes(component string) bool {
	u.mu.Lock()
	var works []*Term
	for t := range u.works {
		if t.Component == component {
			works = append(works, t)
		}
	}
	u.mu.Unlock()
	return slices.ContainsFunc(works, u.holds)
}

func (u *used) kill() {
	u.mu.Lock()
	u.killed = true
	u.mu.Unlock()
	u.link.set(true, false)
	u.end()
}

// play has faults come and go for some minutes, and then none.
func (c *chaos) play() {
	defer func() {
		if c.Failed() {
			c.tell(c.T)
		}
	}()
	for range 12 + c.random.IntN(14) {
		c.fault()
		wait := time.Duration(c.random.IntN(20_000)) * time.Millisecond
		for end := time.Now().Add(wait); time.Now().Before(end); {
			elapse(500 * time.Millisecond)
			c.check()
		}
	}
	c.calm()
	for _, name := range components {
		c.await(c.T, name+" is led in the end", func(g *view.Group) bool {
			t := g.Components[name].Term
			return t != nil && t.Confirmed
		})
	}
	c.uses.check(c.T)
}

// check looks for two that both believe that they lead.
func (c *chaos) check() {
	for _, name := range components {
		var holders []string
		for _, u := range c.services {
			if u.believes(name) {
				holders = append(holders, u.name)
			}
		}
		require.LessOrEqual(c.T, len(holders), 1, "%s is held by %v", name, holders)
	}
}

func (c *chaos) any() *used { return c.services[c.random.IntN(len(c.services))] }

// fault has one thing happen.
func (c *chaos) fault() {
	kind := c.random.IntN(14)
	c.locked(func() { c.say("fault %d", kind) })
	switch kind {
	case 0: // kill -9, and a new process of the name
		i := c.random.IntN(len(c.services))
		c.services[i].kill()
		c.services[i] = c.launch(c.services[i].name)
	case 1, 2:
		c.any().link.set(true, false)
	case 3:
		c.any().link.set(false, true)
	case 4, 5:
		c.any().link.set(false, false)
	case 6: // another instance takes over
		c.locked(c.restart)
	case 7: // the bucket is lost with the servers that had it in memory
		c.locked(func() {
			clear(c.keys)
			c.revision = 0
			c.core.Listen()
		})
	case 8: // the log's next leader has another idea of the time
		c.locked(func() { c.skew = time.Duration(c.random.IntN(7200)-3600) * time.Second })
	case 9:
		c.publish(components[c.random.IntN(2)], &journal.Transfer{
			To: c.any().name, Force: c.random.IntN(2) == 0, Order: journal.Order{Actor: "alice", Reason: "chaos"},
		})
	case 12: // an operator has leases last longer, or shorter
		p := managed()
		p.Lease.Duration = policy.Duration(6+c.random.IntN(40)) * policy.Duration(time.Second)
		p.Lease.RenewEvery = p.Lease.Duration / 4
		c.publish("", &journal.Policy{Policy: p, Order: journal.Order{Actor: "alice", Reason: "chaos"}})
	case 11, 13:
		c.any().link.slowDown(time.Duration(c.random.IntN(12_000)) * time.Millisecond)
	case 10: // the projector stands still, and goes on as if nothing had been
		c.locked(func() { c.frozen = true })
		elapse(time.Duration(c.random.IntN(30_000)) * time.Millisecond)
		c.locked(func() { c.frozen = false })
	}
}

func (c *chaos) calm() {
	for _, u := range c.services {
		u.link.set(false, false)
	}
	elapse(5 * time.Minute)
	c.check()
}

// history is what was used, by whom and in which order.
type history struct {
	mu         sync.Mutex
	moment     int64
	operations []porcupine.Operation
}

type use struct {
	component string
	epoch     uint64
}

func (h *history) next() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moment++
	return h.moment
}

// note notes a use of a component, if held says that it may be.
func (h *history) note(component string, epoch uint64, held func() bool) {
	call := h.next()
	if !held() {
		return
	}
	back := h.next()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, porcupine.Operation{Input: use{component, epoch}, Call: call, Return: back})
}

// check looks for an order in which each component went from one epoch to a higher one, and never back.
func (h *history) check(t *testing.T) {
	require.NotEmpty(t, h.operations)
	require.True(t, porcupine.CheckOperations(fencing(), h.operations), "a component was used by an older term after a newer one")
}

// fencing is a register that refuses whoever comes with a lower epoch than it has seen.
func fencing() porcupine.Model {
	return porcupine.Model{
		Partition: func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
			for _, name := range components {
				var part []porcupine.Operation
				for _, o := range all {
					if o.Input.(use).component == name {
						part = append(part, o)
					}
				}
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() any { return uint64(0) },
		Step: func(state, input, _ any) (bool, any) {
			epoch := input.(use).epoch
			return epoch >= state.(uint64), epoch
		},
	}
}
