package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

func TestAppendSaysWhatItDid(t *testing.T) {
	both(t, func(t *testing.T, w *world, k kind) {
		c := k.open(t, k.address(w))
		require.Equal(t, group, c.Group())
		acks, err := c.Append(t.Context())
		require.NoError(t, err)
		require.Empty(t, acks)

		first := grant("jm-1", "S1")
		acks, err = c.Append(t.Context(), join("jm-1"), first, event("rest", &journal.Release{Session: "S0", Reason: "resigned"}))
		require.NoError(t, err)
		require.Len(t, acks, 3)
		require.Equal(t, []view.Verdict{view.Applied, view.Applied, view.UnknownSession}, verdicts(acks))
		require.Equal(t, acks[0].Sequence+1, acks[1].Sequence, "they lie next to each other")

		again, err := c.Append(t.Context(), first)
		require.NoError(t, err)
		want := acks[1]
		want.Duplicate = true
		require.Equal(t, []client.Ack{want}, again, "with the verdict that it had")

		acks, err = c.Append(t.Context(),
			event("rest", &journal.Revoke{Session: "S1", Reason: "lost"}),
			event("rest", &journal.Ready{Session: "S1", Ready: true}),
			event("rest", &journal.Transfer{To: "nobody", Order: journal.Order{Actor: "ada", Reason: "upgrade"}}))
		require.NoError(t, err)
		require.Equal(t, []view.Verdict{view.Applied, view.Stale, view.Invalid}, verdicts(acks))
		require.Contains(t, acks[2].Reason, "nobody")
	})
}

func verdicts(acks []client.Ack) (all []view.Verdict) {
	for _, a := range acks {
		all = append(all, a.Verdict)
	}
	return all
}

// Verdicts that rest on takeovers, which are no records of the group, are right too.
func TestDecisionsCountWhileTheirProjectorDoes(t *testing.T) {
	both(t, func(t *testing.T, w *world, k kind) {
		c := k.open(t, k.address(w))
		f := follow(t, c, "jm-1")
		w.say(join("jm-1"), grant("jm-1", "S1"))
		f.until(leads("S1"))
		w.say(join("jm-2"), event("rest", &journal.Transfer{To: "jm-2", Force: true, Order: journal.Order{Actor: "ada", Reason: "upgrade"}}))
		y := f.until(func(s client.Standing) bool { return leads("S1")(s) && s.Terms[0].Yield != nil }).Terms[0].Yield
		require.True(t, y.Ordered, "journald decided so, and was taken at its word")
		require.Equal(t, "jm-2", y.To)
		w.stop()
		w.start() // another epoch
		w.say(grant("jm-1", "S2"), event("rest", &journal.Transfer{To: "jm-2", Force: true, Order: journal.Order{Actor: "ada", Reason: "again"}}))
		f.until(func(s client.Standing) bool { return leads("S2")(s) && s.Terms[0].Yield != nil })
	})
}

func TestAllOrNothing(t *testing.T) {
	both(t, func(t *testing.T, w *world, k kind) {
		c := k.open(t, k.address(w))
		invalid, foreign := grant("jm-1", ""), grant("jm-1", "S1")
		foreign.Group = "other"
		before := w.last()
		for problem, events := range map[string][]journal.Event{
			"session":           {join("jm-1"), invalid},
			"is of group other": {foreign},
			"1000":              make([]journal.Event, 1001),
			"event 2 of 2":      {join("jm-1"), foreign},
		} {
			for i := range events {
				if events[i].ID == "" {
					events[i] = grant("jm-1", fmt.Sprint(i))
				}
			}
			_, err := c.Append(t.Context(), events...)
			require.ErrorIs(t, err, journal.ErrInvalid)
			require.ErrorContains(t, err, problem)
			require.True(t, client.Final(err))
		}
		require.Equal(t, before, w.last())
	})
}

// The answer is lost, and the event sent again: it is stored once, and its acknowledgement is true.
func TestLostAnswers(t *testing.T) {
	both(t, func(t *testing.T, w *world, k kind) {
		c, proxy := k.behind(t, w)
		f := follow(t, c, "jm-1")
		f.next()
		_, err := c.Append(t.Context(), join("jm-1"))
		require.NoError(t, err)
		proxy.Delay(0, time.Hour)
		e := grant("jm-1", "S1")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err = c.Append(ctx, e)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, journal.ErrInvalid)
		require.False(t, client.Final(err))
		w.await(func() (led bool) {
			w.projector.Read(func(v *view.View) { led = v.Group(group).Components["rest"] != nil })
			return led
		})
		stored := w.last()
		proxy.Cut()
		proxy.Delay(0, 0)
		proxy.Resume()

		acks := appendUntil(t, c, e)
		require.LessOrEqual(t, acks[0].Sequence, stored)
		require.Equal(t, view.Applied, acks[0].Verdict)
		require.True(t, acks[0].Duplicate)
		require.Equal(t, acks[0].Sequence, f.until(leads("S1")).Terms[0].Epoch)
	})
}

// appendUntil appends, as a candidate does, until it is answered.
func appendUntil(t *testing.T, c client.Client, events ...journal.Event) []client.Ack {
	t.Helper()
	for began := time.Now(); time.Since(began) < patient; {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		acks, err := c.Append(ctx, events...)
		cancel()
		if err == nil {
			return acks
		}
		require.False(t, client.Final(err), err)
	}
	require.FailNow(t, "it was never answered")
	return nil
}

func TestFollow(t *testing.T) {
	both(t, func(t *testing.T, w *world, k kind) {
		w.say(join("jm-2"), grant("jm-2", "S1"))
		c := k.open(t, k.address(w))
		f := follow(t, c, "jm-1")
		s := f.next()
		require.False(t, s.Joined, "it is told at once, though nobody knows it")
		require.Equal(t, "unknown", s.Health)
		joined := w.say(join("jm-1"))
		s = f.until(func(s client.Standing) bool { return s.Joined })
		require.GreaterOrEqual(t, s.Sequence, joined)
		require.Equal(t, "1", s.Incarnation)
		require.Empty(t, s.Terms)
		epoch := w.say(grant("jm-1", "S2"))
		s = f.until(leads("S2"))
		require.Equal(t, epoch, s.Terms[0].Epoch)
		p := policy.Default()
		p.Election = policy.Managed
		w.say(event("", &journal.Policy{Policy: p, Order: journal.Order{Actor: "ada", Reason: "managed by now"}}))
		require.Equal(t, p, f.until(func(s client.Standing) bool { return s.Policy.Election == policy.Managed }).Policy)

		other := follow(t, c, "jm-2").next()
		require.Empty(t, other.Terms)
		require.True(t, other.Joined, "who comes later is told how it is by now")
		f.stop()
		require.ErrorIs(t, <-f.ended, context.Canceled)
	})
}

// Who has hardly any time left is told that, not that the events are wrong.
func TestHardlyAnyTimeIsLeft(t *testing.T) {
	both(t, func(t *testing.T, w *world, k kind) {
		c := k.open(t, k.address(w))
		for n := range 50 {
			_, err := c.Append(bounded(t, time.Duration(n)*20*time.Microsecond), join("jm-1"))
			if err != nil {
				require.False(t, client.Final(err), err)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
		}
	})
}

func TestFollowEndsWithTheErrorOfTell(t *testing.T) {
	both(t, func(t *testing.T, w *world, k kind) {
		enough := errors.New("enough")
		err := k.open(t, k.address(w)).Follow(t.Context(), "jm-1", func(client.Standing) error { return enough })
		require.Equal(t, enough, err)
	})
}

func TestFollowSurvivesARestart(t *testing.T) {
	both(t, func(t *testing.T, w *world, k kind) {
		c := k.open(t, k.address(w))
		f := follow(t, c, "jm-1")
		for n := range 3 {
			session := fmt.Sprintf("S%d", n)
			w.say(grant("jm-1", session))
			f.until(leads(session))
			w.stop()
			_, err := c.Append(bounded(t, 200*time.Millisecond), join("jm-1"))
			require.Error(t, err)
			require.False(t, client.Final(err), err)
			w.start()
			w.say(grant("jm-1", session+"b"), grant("jm-1", session+"c"))
			f.until(leads(session + "c"))
		}
	})
}

func bounded(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// A server that takes requests and never answers holds nobody up for longer than asked for, and is gone on with when it
// speaks again.
func TestMute(t *testing.T) {
	both(t, func(t *testing.T, w *world, k kind) {
		c, proxy := k.behind(t, w)
		client.SetSilence(c, time.Second)
		f := follow(t, c, "jm-1")
		f.next()
		proxy.Freeze()
		key := alive.Key{Group: group, Candidate: "jm-1"}
		for what, do := range map[string]func(ctx context.Context) error{
			"append": func(ctx context.Context) error { _, err := c.Append(ctx, join("jm-1")); return err },
			"renew": func(ctx context.Context) error {
				_, err := c.Renew(ctx, key, alive.Heartbeat{Incarnation: "1"}, 0)
				return err
			},
		} {
			began := time.Now()
			err := do(bounded(t, 200*time.Millisecond))
			require.ErrorIs(t, err, context.DeadlineExceeded, what)
			require.False(t, client.Final(err))
			require.Less(t, time.Since(began), 2*time.Second, what)
		}
		w.say(grant("jm-1", "S1"))
		proxy.Cut()
		proxy.Thaw()
		proxy.Resume()
		f.until(leads("S1"))
	})
}

func TestAYieldIsToldAtOnce(t *testing.T) {
	both(t, func(t *testing.T, w *world, k kind) {
		f := follow(t, k.open(t, k.address(w)), "jm-1")
		w.say(join("jm-1"), join("jm-2"), grant("jm-1", "S1"))
		f.until(leads("S1"))
		w.say(event("rest", &journal.Transfer{To: "jm-2", Force: true, Order: journal.Order{Actor: "ada", Reason: "upgrade"}}))
		s := f.until(func(s client.Standing) bool { return leads("S1")(s) && s.Terms[0].Yield != nil })
		took := time.Since(s.Terms[0].Yield.Since)
		t.Logf("told %s after it was stored", took)
		require.Less(t, took, 250*time.Millisecond)
	})
}

func TestRenew(t *testing.T) {
	both(t, func(t *testing.T, w *world, k kind) {
		c := k.open(t, k.address(w))
		key := alive.Key{Group: group, Candidate: "jm 1/a"}
		beat := alive.Heartbeat{Incarnation: "1", Lease: policy.Duration(15 * time.Second), Run: 4}
		first, err := c.Renew(t.Context(), key, beat, 0)
		require.NoError(t, err)
		second, err := c.Renew(t.Context(), key, beat, first)
		require.NoError(t, err)
		require.Greater(t, second, first)
		for _, stale := range []uint64{0, first} {
			_, err = c.Renew(t.Context(), key, alive.Heartbeat{Incarnation: "2"}, stale)
			conflict, ok := errors.AsType[*alive.Conflict](err)
			require.True(t, ok, err)
			require.Equal(t, &alive.Conflict{Key: key, Found: &alive.Entry{Heartbeat: beat, Revision: second}}, conflict)
			require.False(t, client.Final(err), "the next attempt goes by what stands there")
		}
		key.Candidate = "nobody"
		_, err = c.Renew(t.Context(), key, beat, second)
		conflict, ok := errors.AsType[*alive.Conflict](err)
		require.True(t, ok, err)
		require.Nil(t, conflict.Found)
	})
}

func TestClose(t *testing.T) {
	both(t, func(t *testing.T, w *world, k kind) {
		c := k.open(t, k.address(w))
		f := follow(t, c, "jm-1")
		f.next()
		began := time.Now()
		require.NoError(t, c.Close())
		require.Less(t, time.Since(began), 5*time.Second)
		require.ErrorContains(t, <-f.ended, "the client is closed")
		_, err := c.Append(t.Context(), join("jm-1"))
		require.ErrorContains(t, err, "the client is closed")
		require.True(t, client.Final(err))
		_, err = c.Renew(t.Context(), alive.Key{Group: group, Candidate: "jm-1"}, alive.Heartbeat{Incarnation: "1"}, 0)
		require.ErrorContains(t, err, "the client is closed")
		require.ErrorContains(t, c.Follow(t.Context(), "jm-1", nil), "the client is closed")
		require.NoError(t, c.Close(), "again")
	})
}
