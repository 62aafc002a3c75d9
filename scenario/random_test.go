package scenario

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestRandomIncidents plays random incidents: whatever happens, the invariants hold after every step, and once the
// faults stop every target shows its intent.
func TestRandomIncidents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { play(t, Options{}) })
}

func play(t *rapid.T, o Options) {
	g := &generator{t: t, open: map[string]string{}}
	text := g.incident()
	s, err := Parse([]byte(text))
	require.NoError(t, err, text)
	require.NoError(t, Run(t.Context(), s, o), text)
}

// generator writes a scenario file at random, but one that makes sense: what it revokes was granted at some time.
type generator struct {
	t        *rapid.T
	out      strings.Builder
	sessions int
	open     map[string]string
	all      []string
	events   int
	down     bool
}

func (g *generator) incident() string {
	onRevoke := rapid.SampledFrom([]string{"retain", "clear"}).Draw(g.t, "onRevoke")
	fmt.Fprintf(&g.out, "name: random\npolicy: {election: external, onRevoke: %s}\n", onRevoke)
	g.out.WriteString("targets: {cm: {}, zk: {components: [a]}}\nsteps:\n")
	g.grant("a")
	for range rapid.IntRange(1, 40).Draw(g.t, "steps") {
		g.step()
	}
	return g.out.String()
}

func (g *generator) line(format string, args ...any) {
	fmt.Fprintf(&g.out, "  - "+format+"\n", args...)
}

func (g *generator) event(format string, args ...any) {
	g.events++
	g.line(format, args...)
}

func (g *generator) component() string {
	return rapid.SampledFrom([]string{"a", "b"}).Draw(g.t, "component")
}

func (g *generator) target() string {
	return rapid.SampledFrom([]string{"cm", "zk"}).Draw(g.t, "target")
}

func (g *generator) session() string { return rapid.SampledFrom(g.all).Draw(g.t, "session") }

func (g *generator) address() string {
	return fmt.Sprint("h", rapid.IntRange(1, 3).Draw(g.t, "address"))
}

func (g *generator) grant(component string) {
	g.sessions++
	s := fmt.Sprint("S", g.sessions)
	g.all = append(g.all, s)
	g.open[component] = s
	g.event("grant: {component: %s, candidate: jm-%d, session: %s}", component, rapid.IntRange(1, 3).Draw(g.t, "candidate"), s)
}

func (g *generator) step() {
	c, target := g.component(), g.target()
	switch rapid.IntRange(0, 19).Draw(g.t, "verb") {
	case 0, 1:
		g.grant(c)
	case 2, 3, 4, 5:
		if s := g.open[c]; s != "" {
			g.event("confirm: {component: %s, session: %s, address: %s}", c, s, g.address())
		}
	case 6:
		g.event("confirm: {component: %s, session: %s, candidate: jm-1, address: %s}", c, g.session(), g.address())
	case 7:
		g.event("revoke: {component: %s, session: %s, reason: lost}", c, g.session())
	case 8:
		g.event("withdraw: {component: %s, session: %s, reason: test}", c, g.session())
	case 9:
		g.line("fail: {target: %s, error: %s, times: %d}", target,
			rapid.SampledFrom([]string{"unavailable", "throttled", "conflict", "forbidden", "timeout"}).Draw(g.t, "error"),
			rapid.IntRange(1, 4).Draw(g.t, "times"))
	case 10:
		g.line("fail: {target: %s, error: timeout, applied: true}", target)
	case 11:
		g.line("%s: %s", rapid.SampledFrom([]string{"hold", "let", "let"}).Draw(g.t, "hold"), target)
	case 12:
		g.line("write: {target: %s, component: a, entry: {session: F1, address: elsewhere}, by: somebody}", target)
	case 13:
		g.line("write: {target: %s, component: a, entry: null, by: somebody}", target)
	case 14:
		g.line("drop: %s", target)
	case 15:
		g.line("%s: %s", rapid.SampledFrom([]string{"deaf", "hear"}).Draw(g.t, "ears"), target)
	case 16, 17:
		g.line("advance: %s", rapid.SampledFrom([]string{"1s", "5s", "11s", "1m", "6m"}).Draw(g.t, "time"))
	case 18:
		g.projector()
	case 19:
		if g.events > 0 {
			g.line("redeliver: %d", rapid.IntRange(1, g.events).Draw(g.t, "which"))
		}
	}
}

// projector has something happen to an instance, if one is there for it to happen to.
func (g *generator) projector() {
	words := []string{"restart", "second", "wake"}
	if !g.down {
		words = append(words, "crash", "stall")
	}
	word := rapid.SampledFrom(words).Draw(g.t, "projector")
	g.down = word == "crash" || g.down && word == "wake"
	g.line("projector: %s", word)
}
