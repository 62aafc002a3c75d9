package standing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
	"github.com/leadership-journal/journald/view/standing"
)

// story is a view that records are told to, a second apart.
type story struct {
	t *testing.T
	v *view.View
}

func (s *story) say(component string, data journal.Data) uint64 {
	s.t.Helper()
	n := s.v.Sequence() + 1
	group := "flink"
	if _, ok := data.(*journal.Takeover); ok {
		group = "_"
	}
	r := journal.Record{Sequence: n, Time: at(n), Event: journal.Event{
		ID: time.Duration(n).String(), Source: journal.SourceOf(data), Group: group, Component: component, Data: data,
	}}
	result := s.v.Apply(&r)
	require.Equal(s.t, view.Applied, result.Verdict, result.Reason)
	return n
}

func at(sequence uint64) time.Time { return time.Unix(1700000000+int64(sequence), 0).UTC() }

func (s *story) of(candidate string) standing.Candidate { return standing.Of(s.v, "flink", candidate) }

func TestNobodyKnown(t *testing.T) {
	s := &story{t, view.New()}
	want := standing.Candidate{Candidate: "jm-1", Health: "unknown", Policy: policy.Default()}
	require.Equal(t, want, s.of("jm-1"))
	want.Sequence = s.say("", &journal.Join{Candidate: "jm-2", Incarnation: "a", Components: []string{"rest"}})
	require.Equal(t, want, s.of("jm-1"), "its group is known by now")
}

func TestWhereACandidateStands(t *testing.T) {
	s := &story{t, view.New()}
	s.say("", &journal.Join{Candidate: "jm-1", Incarnation: "a", Components: []string{"rest"}})
	rest := s.say("rest", &journal.Grant{Candidate: "jm-1", Session: "S1"})
	dispatcher := s.say("dispatcher", &journal.Grant{Candidate: "jm-1", Session: "S2"})
	s.say("rest", &journal.Confirm{Session: "S1", Candidate: "jm-1", Address: "http://jm-1", Attempt: 3})
	s.say("rest", &journal.Ready{Session: "S1", Ready: true})
	last := s.say("", &journal.Health{Candidate: "jm-1", Incarnation: "a", Check: "disk", Run: 1, Status: "pass"})
	want := standing.Candidate{
		Sequence: last, Candidate: "jm-1", Incarnation: "a", Joined: true, Health: "pass", Policy: policy.Default(),
		Terms: []standing.Term{
			{Component: "dispatcher", Epoch: dispatcher, Session: "S2", Incarnation: "a", Since: at(dispatcher), Ready: "unknown"},
			{Component: "rest", Epoch: rest, Session: "S1", Incarnation: "a", Since: at(rest), Confirmed: true, Ready: "true", Attempt: 3},
		},
	}
	require.Equal(t, want, s.of("jm-1"))
	require.Empty(t, s.of("jm-2").Terms)

	s.say("rest", &journal.Release{Session: "S1", Reason: "resigned"})
	s.say("dispatcher", &journal.Revoke{Session: "S2", Reason: "lost"})
	want.Sequence, want.Terms = s.v.Sequence(), want.Terms[1:]
	want.Terms[0].Released = true
	require.Equal(t, want, s.of("jm-1"))

	s.say("", &journal.Leave{Candidate: "jm-1", Incarnation: "a", Reason: "shutdown"})
	require.False(t, s.of("jm-1").Joined)
	require.Equal(t, "a", s.of("jm-1").Incarnation)
}

func TestAnOrderToYield(t *testing.T) {
	s := &story{t, view.New()}
	epoch := s.say("", &journal.Takeover{Instance: "journald-0"})
	for _, name := range []string{"jm-1", "jm-2"} {
		s.say("", &journal.Join{Candidate: name, Incarnation: "a", Components: []string{"rest"}})
	}
	s.say("rest", &journal.Grant{Candidate: "jm-1", Session: "S1"})
	s.say("rest", &journal.Transfer{To: "jm-2", Force: true, Order: journal.Order{Actor: "ada", Reason: "upgrade"}})
	yield := s.say("rest", &journal.Yield{
		Session: "S1", Reason: "transfer", To: "jm-2",
		Decision: journal.Decision{Projector: epoch, Basis: s.v.Group("flink").Version},
	})
	want := &standing.Yield{Sequence: yield, Reason: "transfer", To: "jm-2", Since: at(yield), Ordered: true}
	require.Equal(t, want, s.of("jm-1").Terms[0].Yield)
}

func TestSame(t *testing.T) {
	s := &story{t, view.New()}
	s.say("", &journal.Join{Candidate: "jm-1", Incarnation: "a", Components: []string{"rest"}})
	s.say("rest", &journal.Grant{Candidate: "jm-1", Session: "S1"})
	before := s.of("jm-1")
	s.say("dispatcher", &journal.Grant{Candidate: "jm-2", Session: "S2"})
	require.NotEqual(t, before, s.of("jm-1"), "the sequence")
	require.True(t, standing.Same(before, s.of("jm-1")))
	s.say("rest", &journal.Release{Session: "S1", Reason: "resigned"})
	require.False(t, standing.Same(before, s.of("jm-1")))
}
