package scenario

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestRandomElections plays random incidents of groups whose candidates report health, fall silent and come back, in
// managed elections and in others: whatever happens, the invariants hold after every step, no two holders believe at one
// time that they lead, and no decision leaves a component without a leader.
func TestRandomElections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &electorate{t: t, incarnations: map[string]int{}}
		g.begin()
		defer func() { require.NoError(t, g.w.close()) }()
		g.join()
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			g.step()
		}
		g.w.alive.muffled = ""
		require.NoError(t, g.w.converge(), g.out.String())
	})
}

// electorate plays a scenario that it makes up as it goes. Those who have not joined are not spoken of.
type electorate struct {
	t            *rapid.T
	w            *world
	out          strings.Builder // the file that would do the same
	incarnations map[string]int  // of those that joined
	names        []string
	sessions     int
	rules        string // of the group, but for its leases
	leases       string
	managed      bool
	down         bool
}

func (g *electorate) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(g.t, label)
}

func (g *electorate) begin() {
	g.managed = g.pick("election", "managed", "managed", "managed", "external") == "managed"
	election := map[bool]string{true: "managed", false: "external"}[g.managed]
	g.rules = fmt.Sprintf("election: %s, onRevoke: %s, health: {failureThreshold: %s, staleAfter: %s, silentLeader: %s, maxYields: %s}",
		election, g.pick("onRevoke", "retain", "clear"), g.pick("threshold", "1", "2", "3"), g.pick("staleAfter", "10s", "90s"),
		g.pick("silentLeader", "hold", "yield"), g.pick("maxYields", "1", "3"))
	g.leases = fmt.Sprintf("renewEvery: %%s, releaseWithin: %s", g.pick("releaseWithin", "15s", "3s", "40s"))
	fmt.Fprintf(&g.out, "name: random\npolicy: {%s, lease: {duration: 15s, "+g.leases+"}}\nsteps:\n",
		g.rules, g.pick("renewEvery", "5s", "4s", "14s"))
	s, err := Parse([]byte(g.out.String() + "  - resume: {}\n"))
	require.NoError(g.t, err)
	g.w, err = newWorld(g.t.Context(), s, Options{Backend: simulated{}})
	require.NoError(g.t, err)
}

// line plays a step.
func (g *electorate) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(&g.out, "  - %s\n", text)
	s, err := Parse([]byte("name: step\nsteps: [{" + text + "}]"))
	require.NoError(g.t, err, text)
	require.NoError(g.t, g.w.run(s.steps[0]), g.out.String())
}

// wire has the instances miss what happens to liveness keys, hear it again, or lose them all.
func (g *electorate) wire() {
	word, name := g.pick("wire", "muffled", "muffled", "clear", "lost"), ""
	if word == "muffled" {
		name, _ = g.candidate()
	}
	fmt.Fprintf(&g.out, "  # the instances' watch of the liveness keys: %s %s\n", word, name)
	g.w.alive.muffled = name
	if word == "lost" {
		g.w.lose()
	}
	require.NoError(g.t, g.w.settle(), g.out.String())
}

// join has a candidate join, for the first time, anew or as another incarnation.
func (g *electorate) join() {
	name := g.pick("newcomer", "k-1", "k-2", "k-3", "k-4")
	if g.incarnations[name] == 0 {
		g.names = append(g.names, name)
		g.incarnations[name] = 1
	} else if g.pick("restarted", "yes", "no") == "yes" {
		g.incarnations[name]++
	}
	g.line("join: {candidate: %s, incarnation: %d, components: [%s], priority: %s}", name, g.incarnations[name],
		g.pick("components", "a", "a", "b", "a, b"), g.pick("priority", "0", "0", "5"))
}

func (g *electorate) candidate() (name string, incarnation int) {
	name = rapid.SampledFrom(g.names).Draw(g.t, "candidate")
	return name, g.incarnations[name]
}

// session is a new name for the one that is open, or an older one's.
func (g *electorate) session() string {
	if g.sessions > 0 && g.pick("session", "open", "open", "open", "old") == "old" {
		return fmt.Sprint("S", rapid.IntRange(1, g.sessions).Draw(g.t, "old session"))
	}
	g.sessions++
	return fmt.Sprint("S", g.sessions)
}

func (g *electorate) step() {
	c := g.pick("component", "a", "a", "b")
	switch rapid.IntRange(0, 26).Draw(g.t, "verb") {
	case 0, 1, 2:
		g.join()
	case 3:
		name, incarnation := g.candidate()
		g.line("leave: {candidate: %s, incarnation: %d}", name, incarnation)
	case 4, 5, 6, 7:
		name, incarnation := g.candidate()
		g.line("health: {candidate: %s, incarnation: %d, status: %s}", name, incarnation, g.pick("status", "pass", "pass", "fail"))
	case 8, 9, 10:
		g.confirm(c)
	case 11:
		g.line("release: {component: %s, session: %s, reason: test}", c, g.session())
	case 12, 13:
		name, _ := g.candidate()
		g.line("%s: %s", g.pick("agent", "silent", "silent", "alive", "alive"), name)
	case 14:
		g.grant(c)
	case 15:
		name, _ := g.candidate()
		g.line("transfer: {component: %s, to: %s, force: %s}", c, name, g.pick("force", "true", "false"))
	case 16:
		name, _ := g.candidate()
		g.line("%s: {candidate: %s}", g.pick("order", "exclude", "include", "include"), name)
	case 17:
		g.line("%s: {}", g.pick("pause", "pause", "resume", "resume", "resume"))
	case 18:
		g.projector()
	case 19:
		g.wire()
		g.line("advance: %s", g.pick("time", "1s", "14s", "15s", "16s"))
		g.confirm(c)
	case 20, 21:
		if t := g.w.component(c).Term; t != nil && g.incarnations[t.Candidate] != 0 {
			g.line("silent: %s", t.Candidate)
		}
	case 22:
		g.policy()
	default:
		g.line("advance: %s", g.pick("time", "1s", "5s", "5s", "14s", "15s", "16s", "31s", "1m", "2m", "5m"))
	}
}

// policy makes leases shorter or longer, of which whoever renewed before has not heard.
func (g *electorate) policy() {
	duration, every := "6s", "2s"
	if g.pick("lease", "shorter", "shorter", "longer") == "longer" {
		duration, every = "15s", "5s"
	}
	g.line("policy: {policy: {%s, lease: {duration: %s, "+g.leases+"}}}", g.rules, duration, every)
}

// confirm is mostly the open session's holder's.
func (g *electorate) confirm(component string) {
	if !g.managed {
		g.grant(component)
		g.line("confirm: {component: %s, session: S%d, address: h1}", component, g.sessions)
		return
	}
	name, _ := g.candidate()
	if t := g.w.component(component).Term; t != nil && g.pick("who", "the holder", "the holder", "the holder", "somebody") == "the holder" {
		name = t.Candidate
	}
	g.line("confirm: {component: %s, session: %s, candidate: %s, address: h%s}", component, g.session(), name, g.pick("address", "1", "2"))
}

// grant is an elector's, or of no effect where the projector elects; a revoke may come from either's services.
func (g *electorate) grant(component string) {
	if g.managed {
		if g.pick("revoke", "yes", "no", "no") == "yes" {
			g.line("revoke: {component: %s, session: %s, reason: shutdown}", component, g.session())
		}
		return
	}
	name, _ := g.candidate()
	g.sessions++
	g.line("grant: {component: %s, candidate: %s, session: S%d}", component, name, g.sessions)
}

// projector has something happen to an instance, if one is there for it to happen to.
func (g *electorate) projector() {
	words := []string{"restart", "second", "wake"}
	if !g.down {
		words = append(words, "crash", "stall", "stall")
	}
	word := g.pick("projector", words...)
	g.down = word == "crash" || g.down && word == "wake"
	g.line("projector: %s", word)
}
