package view_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// restored is a view by way of a snapshot, with everything to be looked at anew.
func restored(t require.TestingT, v *view.View) *view.View {
	var b bytes.Buffer
	require.NoError(t, v.Snapshot(&b))
	again, err := view.Restore(&b)
	require.NoError(t, err)
	return again
}

// state is what Hash is the hash of.
func state(t require.TestingT, v *view.View) string {
	var b bytes.Buffer
	require.NoError(t, v.Snapshot(&b))
	_, text, found := bytes.Cut(b.Bytes(), []byte(`"projector":`)) // sequence and time come before
	require.True(t, found)
	return string(text)
}

// TestEpochsRise holds I3: at most one term is open, which is the newest; epochs strictly rise.
func TestEpochsRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, epochs := newGenerator(t), map[*view.Component]uint64{}
		for range g.length(150) {
			r, result := g.step()
			require.NoError(t, g.v.CheckDerived())
			c := result.Component
			if c == nil {
				continue
			}
			was := epochs[c]
			epochs[c] = c.Epoch
			require.True(t, c.Epoch == was || c.Epoch == r.Sequence && c.Epoch > was, "from %d to %d at %d", was, c.Epoch, r.Sequence)
			if c.Term != nil {
				require.Equal(t, c.Epoch, c.Term.Epoch)
			}
		}
	})
}

// TestOnlyAWithdrawalClearsAnIntent holds rules 4 and 5 of the contract: nothing but a confirmation, or the adoption of
// what a guarded target shows, sets an intent; nothing but a withdrawal, or a revoke by policy, clears one.
func TestOnlyAWithdrawalClearsAnIntent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, intents := newGenerator(t), map[*view.Component]*view.Intent{}
		for range g.length(150) {
			r, result := g.step()
			c := result.Component
			if c == nil || c.Intent == intents[c] {
				continue
			}
			intents[c] = c.Intent
			require.Equal(t, view.Applied, result.Verdict)
			require.Equal(t, r.Sequence, c.Intent.Sequence)
			rules := result.Group.Policy
			switch d := r.Event.Data.(type) {
			case *journal.Confirm:
				require.Equal(t, d.Session, c.Leader().Session)
				require.Equal(t, d.Session, c.Term.Session)
			case *journal.Watch:
				require.Equal(t, policy.Backend, rules.Authority)
				require.True(t, result.Group.TargetSpec(d.Target).Guarded)
				require.Equal(t, d.Holder, c.Leader().Candidate)
			case *journal.Withdraw:
				require.Nil(t, c.Leader())
			case *journal.Revoke:
				require.Nil(t, c.Leader())
				require.Equal(t, policy.Clear, rules.OnRevoke)
			default:
				require.Fail(t, "a "+r.Event.Data.Kind()+" changed an intent")
			}
		}
	})
}

// TestSameRecordsSameHash holds I6: over snapshots at any point, and records that were decoded anew.
func TestSameRecordsSameHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := newGenerator(t).journal()
		one, other := view.New(), view.New()
		for i := range records {
			result := one.Apply(&records[i])
			r := journal.NewRecord(records[i].Sequence, records[i].Time, records[i].Subject, records[i].Raw)
			require.Equal(t, result.Verdict, other.Apply(&r).Verdict)
			if rapid.IntRange(1, 8).Draw(t, "restart") == 1 {
				other = restored(t, other)
			}
		}
		require.Equal(t, state(t, one), state(t, other))
		require.Equal(t, one.Hash(), other.Hash())
		require.Equal(t, one.Sequence(), other.Sequence())
		require.True(t, one.Time().Equal(other.Time()))
	})
}

// TestTwiceAtOnceChangesNothing holds I7, and that a void record changes nothing even once.
func TestTwiceAtOnceChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		for range g.length(40) {
			before, groups := state(t, g.v), len(g.v.Groups())
			r, result := g.step()
			after := state(t, g.v)
			if result.Verdict == view.Void && len(g.v.Groups()) == groups {
				require.Equal(t, before, after)
			}
			if _, ok := r.Event.Data.(*journal.Takeover); ok {
				continue // it is about its own sequence
			}
			v := restored(t, g.v)
			again := *r
			again.Sequence++
			second := v.Apply(&again)
			require.Equal(t, after, state(t, v), "a %s that was %s, then %s", r.Event.Data.Kind(), result.Verdict, second.Verdict)
		}
	})
}

// TestTwiceMuchLaterChangesNothing holds rule 9 of the contract: what was applied is known by its content, or by its
// id, whatever came in between.
func TestTwiceMuchLaterChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		g.fixed, g.redelivered = true, false
		verdicts := map[uint64]view.Verdict{}
		for range g.length(100) {
			r, result := g.step()
			verdicts[r.Sequence] = result.Verdict
		}
		want := state(t, g.v)
		for i := range g.records {
			r := g.records[i]
			if _, ok := r.Event.Data.(*journal.Takeover); ok || verdicts[r.Sequence] != view.Applied || g.unknownThen(&r) {
				continue
			}
			v := restored(t, g.v)
			r.Sequence = uint64(len(g.records)) + 1
			second := v.Apply(&r)
			require.Equal(t, want, state(t, v), "the %s at %d, now %s", r.Event.Data.Kind(), i+1, second.Verdict)
		}
	})
}

// TestWhatMeansTheSameIsTheSame holds that a description of targets is compared by what it means, so that a view that
// went by way of a snapshot, where an empty list and none are written alike, keeps what it knows of them as any other.
func TestWhatMeansTheSameIsTheSame(t *testing.T) {
	f := newFolder(t)
	describe := func(components string) { // as another publisher may write them
		f.sequence++
		r := stored(t, f.sequence, f.now, journal.Event{
			ID: fmt.Sprintf("id-%d", f.sequence), Source: "operator/alice", Group: "g",
			Data: &journal.Policy{Policy: rules(), Order: order(), Targets: &[]journal.Target{{Name: "cm", Kind: "k8s/configmap"}}},
		})
		raw := bytes.Replace(r.Raw, []byte(`"k8s/configmap"`), []byte(`"k8s/configmap"`+components), 1)
		r = journal.NewRecord(r.Sequence, r.Time, r.Subject, raw)
		require.NoError(t, r.Err)
		require.Equal(t, view.Applied, f.v.Apply(&r).Verdict)
	}
	describe(`,"components":[]`)
	f.service("rest", &journal.Grant{Candidate: "k", Session: "S1"})
	f.service("rest", &journal.Confirm{Candidate: "k", Session: "S1", Address: "a", Attempt: 1})
	f.fold("g", "rest", "projector/p", &journal.Push{
		Target: "cm", Intent: f.component("rest").Intent.Sequence, Attempt: 1, Outcome: journal.OK, Decision: journal.Decision{Projector: 1},
	})
	for _, components := range []string{`,"components":[]`, "", `,"components":[]`} {
		f.v = restored(t, f.v)
		describe(components)
		require.Equal(t, view.InSync, f.component("rest").Targets["cm"].State)
	}
	describe(`,"components":["rest"]`)
	require.Equal(t, view.Pending, f.component("rest").Targets["cm"].State, "it may be another object now")
}

// unknownThen says whether a record was about a target that its group does not have.
func (g *generator) unknownThen(r *journal.Record) bool {
	w, ok := r.Event.Data.(*journal.Watch)
	return ok && g.v.Group(r.Event.Group).TargetSpec(w.Target) == nil
}

// TestDecideIsPure holds that it gives the same at the same moment, and that looking at what was touched gives the same
// as looking at everything.
func TestDecideIsPure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		for range g.length(40) {
			g.step()
			before := g.v.Hash()
			first := g.v.Decide(g.now, g.live, never)
			require.Equal(t, first, g.v.Decide(g.now, g.live, never))
			require.Equal(t, restored(t, g.v).Decide(g.now, g.live, never), first)
			require.Equal(t, before, g.v.Hash())
		}
	})
}

// TestDecideComesToAnEnd holds that what is decided settles what there was to decide: while time stands still nothing is
// decided to and fro.
func TestDecideComesToAnEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		g.journal()
		g.settle()
		for range rapid.IntRange(0, 5).Draw(t, "waits") {
			at, ok := g.v.Wake()
			if !ok {
				break
			}
			g.now = at
			g.settle()
		}
	})
}

// settle folds what is decided until nothing is.
func (g *generator) settle() {
	current, _ := g.v.Projector()
	for range 100 {
		all := g.v.Decide(g.now, g.live, never)
		if len(all) == 0 {
			return
		}
		for _, p := range all {
			for _, e := range p.Events("projector/p", current, g.now) {
				_, result := g.add(e)
				require.Equal(g.t, view.Applied, result.Verdict, "%+v", e.Data)
			}
		}
	}
	require.Fail(g.t, "what is decided never comes to an end")
}

// TestWakeNeverLies holds that before the moment at which the view asks to be woken, time alone gives nothing to decide.
func TestWakeNeverLies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		g.journal()
		g.settle()
		at, ok := g.v.Wake()
		if !ok {
			at = g.now.AddDate(1, 0, 0)
		}
		require.True(t, at.After(g.now))
		before := at.Sub(g.now)
		for range 4 {
			early := g.now.Add(time.Duration(rapid.Int64Range(0, int64(before)-1).Draw(t, "early")))
			require.Empty(t, restored(t, g.v).Decide(early, g.live, never), "at %s, where nothing was to come before %s", early, at)
		}
		require.Empty(t, restored(t, g.v).Decide(at.Add(-1), g.live, never))
	})
}

// TestBusyGroupsWait holds that a group with a decision on its way is passed over, and looked at when it is not busy any
// more.
func TestBusyGroupsWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		g.journal()
		want := restored(t, g.v).Decide(g.now, g.live, never)
		for _, p := range g.v.Decide(g.now, g.live, func(group string) bool { return group == "plain" }) {
			require.NotEqual(t, "plain", p.Group)
		}
		require.Equal(t, want, g.v.Decide(g.now, g.live, never))
	})
}
