package projector

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// bucket holds the liveness keys of a bench's candidates. Every core is told of every change at once, unless it is deaf.
type bucket struct {
	*bench
	revision uint64
	keys     map[string]Beat
	deaf     bool
}

// newBucket is a bench with one core and a group whose leases are of 15 s.
func newBucket(t *testing.T, election string) (*bucket, *driven) {
	b := &bucket{bench: newBench(t), keys: map[string]Beat{}}
	s := settings()
	rules := policy.Default()
	rules.Election = election
	s.Groups["g"] = Group{Policy: rules}
	d := b.start(s)
	d.Listen()
	return b, d
}

func (b *bucket) put(beat Beat) {
	b.t.Helper()
	b.revision++
	beat.Group, beat.Revision = "g", b.revision
	b.keys[beat.Candidate] = beat
	if b.deaf {
		return
	}
	for _, d := range b.cores {
		d.Heard(beat, b.own())
	}
	b.settle()
}

// listen has a core watch the keys anew.
func (b *bucket) listen(d *driven) {
	b.t.Helper()
	d.Listen()
	for _, beat := range b.keys {
		d.Heard(beat, b.own())
	}
	b.settle()
}

func (b *bucket) beat(names ...string) {
	b.t.Helper()
	for _, name := range names {
		b.put(Beat{Candidate: name, Incarnation: "1"})
	}
}

// answer writes the oldest tombstone that is asked for, unless the key has changed.
func (b *bucket) answer(d *driven) bool {
	b.t.Helper()
	require.NotEmpty(b.t, d.asked, "no tombstone is asked for")
	e := d.asked[0]
	d.asked = d.asked[1:]
	written := b.keys[e.Holder.Candidate].Revision == e.Revision
	if written {
		b.put(Beat{Candidate: e.Holder.Candidate, Incarnation: e.Holder.Incarnation, Until: e.Until})
	}
	d.Expired(e, written, b.own())
	b.settle()
	return written
}

func (b *bucket) join(name, incarnation string) {
	b.t.Helper()
	b.say("", &journal.Join{Candidate: name, Incarnation: incarnation, Components: []string{"rest"}})
}

func (b *bucket) health(name, status string, run uint64) {
	b.t.Helper()
	b.say("", &journal.Health{Candidate: name, Incarnation: "1", Check: "disk", Status: status, Run: run})
}

func (b *bucket) policy(rules policy.Policy) {
	b.t.Helper()
	b.say("", &journal.Policy{Policy: rules, Order: order()})
}

func order() journal.Order { return journal.Order{Actor: "a", Reason: "r"} }

// term is the open one.
func (b *bucket) term(d *driven) *view.Term { return d.View().Group("g").Components["rest"].Term }

// confirmed has the holder say where it is.
func (b *bucket) confirmed(d *driven) {
	b.t.Helper()
	t := b.term(d)
	b.say("rest", &journal.Confirm{Session: t.Session, Candidate: t.Candidate, Address: "a", Attempt: uint64(len(b.log))})
}

// led is a bucket in which k1 leads and k2 waits.
func led(t *testing.T) (*bucket, *driven) {
	b, d := newBucket(t, policy.Managed)
	b.join("k1", "1")
	b.join("k2", "1")
	b.beat("k1", "k2")
	require.Equal(t, "k1", b.term(d).Candidate)
	b.confirmed(d)
	return b, d
}

// kinds are those of the records since.
func (b *bucket) kinds(since int) (all []string) {
	for i := since; i < len(b.log); i++ {
		all = append(all, b.log[i].Event.Data.Kind())
	}
	return all
}

const lease = 15 * time.Second

func TestALeaseThatIsNotRenewedEnds(t *testing.T) {
	b, d := led(t)
	b.after(lease - 1)
	b.beat("k2")
	require.Empty(t, d.asked)
	require.Equal(t, b.now.Add(1), d.wake, "the core knows when to look")
	before := len(b.log)
	b.after(1)
	require.Equal(t, []Expiry{{
		Holder: view.Holder{Group: "g", Candidate: "k1", Incarnation: "1"}, Revision: b.keys["k1"].Revision, Until: uint64(len(b.log)),
		Lease: lease,
	}}, d.asked)
	b.health("k1", "pass", 1)
	b.after(time.Second)
	require.Equal(t, []string{"health"}, b.kinds(before), "nothing is decided before the tombstone is known to stand")
	require.Len(t, d.asked, 1, "it is asked for once")
	before = len(b.log)

	require.True(t, b.answer(d))
	require.Equal(t, []string{"revoke", "grant"}, b.kinds(before))
	require.Equal(t, "k2", b.term(d).Candidate)
	require.Equal(t, "expired", b.log[before].Event.Data.(*journal.Revoke).Reason)
}

func TestAHolderThatRenewsInTimeKeepsItsTerm(t *testing.T) {
	b, d := led(t)
	before := len(b.log)
	for range 10 {
		b.after(lease - 1)
		b.beat("k1", "k2")
	}
	require.Empty(t, d.asked)
	require.Len(t, b.log, before)

	b.after(10 * time.Second)
	d.Heard(b.keys["k1"], b.own()) // what is told again is no renewal
	b.after(5 * time.Second)
	require.Len(t, d.asked, 1)
}

// TestARenewalThatWasNotHeardOf has the candidate renew between the request and the tombstone: the key has another
// revision, and nothing expires. Until it is heard of there is nothing to ask.
func TestARenewalThatWasNotHeardOf(t *testing.T) {
	b, d := led(t)
	b.after(lease)
	b.deaf = true
	b.beat("k1")
	require.False(t, b.answer(d))
	b.after(time.Minute)
	require.Empty(t, d.asked, "the same revision would be refused again")
	require.Equal(t, "k1", b.term(d).Candidate)

	b.deaf = false
	b.beat("k1", "k2")
	b.after(lease - 1)
	require.Empty(t, d.asked)
	b.after(1)
	require.Len(t, d.asked, 1)
}

// TestTheAnswerMayComeAfterTheNews has the watch tell of the renewal before the answer that no tombstone was written.
func TestTheAnswerMayComeAfterTheNews(t *testing.T) {
	b, d := led(t)
	b.after(lease)
	b.beat("k1")
	require.False(t, b.answer(d))
	b.after(lease)
	require.Len(t, d.asked, 1)
	require.True(t, b.answer(d))
}

// TestLeasesRunByTheInstancesOwnClock has the stream get a leader whose clock is an hour ahead.
func TestLeasesRunByTheInstancesOwnClock(t *testing.T) {
	b, d := led(t)
	b.health("k1", "pass", 1)
	b.ahead = time.Hour
	b.after(time.Hour)
	require.Empty(t, d.asked)
	require.NotContains(t, b.kinds(0), "stale")
	b.after(lease)
	require.Len(t, d.asked, 1)
}

func TestNobodyIsSilentWhileNobodyListens(t *testing.T) {
	b := &bucket{bench: newBench(t), keys: map[string]Beat{}}
	rules := policy.Default()
	rules.Election = policy.Managed
	d := b.start(Settings{Groups: map[string]Group{"g": {Policy: rules}}})
	b.join("k1", "1")
	b.health("k1", "pass", 1)
	b.confirmed(d)
	b.policy(rules)
	d = b.start(d.opts.Settings)
	b.after(time.Hour)
	require.Empty(t, d.asked)
	require.NotContains(t, b.kinds(0), "stale")
	d.Listen()
	b.after(0) // who had joined by then has the whole time
	b.after(lease - 1)
	require.Empty(t, d.asked)
	b.after(1)
	require.Len(t, d.asked, 1)
}

func TestANewProjectorWaitsAFullLeaseItself(t *testing.T) {
	b, first := led(t)
	b.after(lease - 1)
	second := b.start(first.opts.Settings)
	b.listen(second)
	b.after(lease - 1)
	b.beat("k2")
	require.Empty(t, second.asked)
	b.after(1)
	require.Len(t, second.asked, 1)
	require.Equal(t, b.keys["k1"].Revision, second.asked[0].Revision)
	require.Empty(t, first.asked, "it acts no more")
}

// TestWhatWasHeardBeforeTheTakeoverIsKnown has an instance listen long before it acts.
func TestWhatWasHeardBeforeTheTakeoverIsKnown(t *testing.T) {
	b, first := led(t)
	second := &driven{Core: NewCore(first.opts)}
	b.cores = append(b.cores, second)
	b.listen(second)
	b.after(10 * time.Second)
	second.Lead(b.append(journal.Event{ID: "t", Source: second.source, Group: "_", Data: &journal.Takeover{Instance: "x"}}))
	b.settle()
	b.beat("k2")
	b.after(lease - 1)
	require.Empty(t, second.asked)
	b.after(1)
	require.Len(t, second.asked, 1)
	require.Equal(t, b.keys["k1"].Revision, second.asked[0].Revision)
}

func TestALostBucketGivesEverybodyAFullLease(t *testing.T) {
	b, d := led(t)
	b.health("k1", "pass", 1)
	b.after(lease - 1)
	clear(b.keys)
	b.listen(d)
	b.after(lease - 1)
	require.Empty(t, d.asked)
	b.after(1)
	require.Len(t, d.asked, 1)
	require.Zero(t, d.asked[0].Revision, "the tombstone is to be the key's first revision")
	b.listen(d) // and lost again, with the request
	d.Expired(d.asked[0], true, b.own())
	for range 4 {
		b.after(5 * time.Second)
		b.beat("k1", "k2")
	}
	require.Equal(t, "k1", b.term(d).Candidate, "an answer from before is about another bucket")
}

// TestATombstoneThatIsLostEndsNothing has the bucket be lost before the holder can have found its tombstone: it may have
// made its key again.
func TestATombstoneThatIsLostEndsNothing(t *testing.T) {
	b, d := led(t)
	b.transfer()
	b.after(lease)
	b.beat("k1", "k2")
	b.after(0)
	for len(d.asked) > 0 {
		b.answer(d)
	}
	clear(b.keys)
	b.listen(d)
	for range 5 {
		b.beat("k1", "k2")
		b.after(5 * time.Second)
	}
	require.Equal(t, "k1", b.term(d).Candidate)
}

func TestANewIncarnationEndsTheOldOnesLease(t *testing.T) {
	b, d := led(t)
	b.after(5 * time.Second)
	b.beat("k1", "k2")
	b.join("k1", "2")
	b.after(3 * time.Second) // in which the old one may have renewed its lease, unheard of
	b.put(Beat{Candidate: "k1", Incarnation: "2"})
	for i := range 14 { // whatever else happens meanwhile does not put it off
		b.after(time.Second)
		b.health("k2", "pass", uint64(i+1))
		b.put(Beat{Candidate: "k1", Incarnation: "2"})
	}
	require.Equal(t, "1", b.term(d).Incarnation)
	b.after(time.Second)
	require.Empty(t, d.asked, "the key is not the old one's any more: it needs no tombstone")
	require.Equal(t, "k2", b.term(d).Candidate)
}

// TestANewIncarnationThatANewProjectorFinds has the key change hands before the projector began to listen.
func TestANewIncarnationThatANewProjectorFinds(t *testing.T) {
	b, first := led(t)
	b.join("k1", "2")
	b.put(Beat{Candidate: "k1", Incarnation: "2"})
	d := b.start(first.opts.Settings)
	b.listen(d)
	b.after(lease - 1)
	b.put(Beat{Candidate: "k1", Incarnation: "2"})
	b.beat("k2")
	require.Equal(t, "1", b.term(d).Incarnation)
	b.after(1)
	require.Empty(t, d.asked, "a tombstone would take the key from the new one")
	require.Equal(t, "k2", b.term(d).Candidate)
}

// TestAnOlderIncarnationsKey is what a holder finds that has not taken its key yet. It still may, so a tombstone has to
// stand in its way.
func TestAnOlderIncarnationsKey(t *testing.T) {
	b, d := newBucket(t, policy.Managed)
	b.put(Beat{Candidate: "k1", Incarnation: "0"})
	b.join("k1", "1")
	b.join("k2", "1")
	b.beat("k2")
	b.put(Beat{Candidate: "k1", Incarnation: "0"})
	b.after(lease - 1)
	b.beat("k2")
	b.after(1)
	require.Equal(t, "k1", b.term(d).Candidate)
	require.Len(t, d.asked, 1)
	require.Equal(t, b.keys["k1"].Revision, d.asked[0].Revision)
	require.True(t, b.answer(d))
	require.Equal(t, "k2", b.term(d).Candidate)
}

// overstay has k1 be told to yield, and not release in time.
func overstay(t *testing.T) (*bucket, *driven) {
	b, d := led(t)
	b.policy(hasty())
	b.after(time.Second)
	b.transfer()
	b.after(10 * time.Second)
	b.beat("k1", "k2")
	b.after(2*time.Second - 1)
	require.Empty(t, d.asked)
	require.Equal(t, b.now.Add(1), d.wake)
	b.after(1)
	require.Len(t, d.asked, 1)
	return b, d
}

// hasty gives a holder 12 s to release.
func hasty() policy.Policy {
	rules := policy.Default()
	rules.Election, rules.Lease.ReleaseWithin = policy.Managed, policy.Duration(12*time.Second)
	return rules
}

// transfer has the holder be told to yield to k2.
func (b *bucket) transfer() {
	b.t.Helper()
	b.say("rest", &journal.Transfer{To: "k2", Force: true, Order: order()})
	require.NotNil(b.t, b.term(b.cores[0]).Yield)
}

func TestAYieldThatIsNotCarriedOutIsForced(t *testing.T) {
	b, d := overstay(t)
	require.True(t, b.answer(d))
	b.after(lease - 1)
	b.health("k1", "pass", 1)
	b.beat("k2")
	require.Equal(t, "k1", b.term(d).Candidate, "it may have renewed its lease just before")
	b.after(1)
	require.Equal(t, "k2", b.term(d).Candidate)
	require.Empty(t, d.asked)
}

func TestAYieldThatIsNotCarriedOutBetweenTwoRenewals(t *testing.T) {
	b, d := overstay(t)
	b.beat("k1") // it is asked for again with the new revision
	require.False(t, b.answer(d))
	require.True(t, b.answer(d))
}

// TestWhatWasReleasedWhilePaused stays open, and is no reason to end anything.
func TestWhatWasReleasedWhilePaused(t *testing.T) {
	b, d := led(t)
	b.say("", &journal.Join{Candidate: "k1", Incarnation: "1", Components: []string{"rest", "other"}})
	b.say("other", &journal.Confirm{
		Session: d.View().Group("g").Components["other"].Term.Session, Candidate: "k1", Address: "a", Attempt: 1,
	})
	b.transfer()
	b.say("", &journal.Pause{Order: order()})
	b.say("rest", &journal.Release{Session: b.term(d).Session, Reason: "yielded"})
	for range 10 {
		b.after(5 * time.Second)
		b.beat("k1", "k2")
	}
	require.Empty(t, d.asked)
	other := d.View().Group("g").Components["other"].Term
	b.say("other", &journal.Release{Session: other.Session, Reason: "yielded"})
	b.after(time.Hour)
	require.Empty(t, d.asked, "it holds nothing any more")
}

// TestTheYieldOfALifeBefore is not the next one's.
func TestTheYieldOfALifeBefore(t *testing.T) {
	b, d := led(t)
	b.policy(hasty())
	b.transfer()
	b.say("", &journal.Join{Candidate: "k1", Incarnation: "2", Components: []string{"other"}})
	b.put(Beat{Candidate: "k1", Incarnation: "2"})
	require.Equal(t, "2", d.View().Group("g").Components["other"].Term.Incarnation)
	b.after(14 * time.Second)
	b.put(Beat{Candidate: "k1", Incarnation: "2"})
	b.beat("k2")
	require.Equal(t, "k1", b.term(d).Candidate)
	b.after(time.Second)
	require.Equal(t, "k2", b.term(d).Candidate)
	require.Empty(t, d.asked)
}

// TestALifeHoldsItsOwnTermsOnly has the term of the life before stay open, since nobody may have the next.
func TestALifeHoldsItsOwnTermsOnly(t *testing.T) {
	b, d := led(t)
	b.say("", &journal.Pause{Order: order()})
	b.join("k1", "2")
	b.put(Beat{Candidate: "k1", Incarnation: "2"})
	b.after(time.Minute)
	require.Equal(t, "1", b.term(d).Incarnation)
	require.Empty(t, d.asked)
}

// TestATermThatWasGrantedToALifeThatIsOver has the grant cross the start of the next life, which has taken the key.
func TestATermThatWasGrantedToALifeThatIsOver(t *testing.T) {
	b, d := led(t)
	b.put(Beat{Candidate: "k1", Incarnation: "2"})
	b.health("k1", "pass", 1)
	d.live.lives[candidate{"g", "k1"}][0].fence.until = 0 // as if the grant had been folded later
	b.after(lease)
	b.after(lease)
	b.beat("k2")
	require.Empty(t, d.asked, "a tombstone would take the key from a life that is about to join")
	require.Equal(t, "k2", b.term(d).Candidate)
}

func TestAReleaseInTimeNeedsNoTombstone(t *testing.T) {
	b, d := led(t)
	b.transfer()
	session := b.term(d).Session
	b.after(10 * time.Second)
	b.beat("k1", "k2")
	before := len(b.log)
	b.say("rest", &journal.Release{Session: session, Reason: "yielded"})
	require.Equal(t, []string{"release", "revoke", "grant"}, b.kinds(before))
	b.after(10 * time.Second)
	require.Empty(t, d.asked)
}

// TestWhatATombstoneEnds has a candidate go on in the same life after it: what was granted before is over, what comes
// later is not.
func TestWhatATombstoneEnds(t *testing.T) {
	b, d := overstay(t)
	require.True(t, b.answer(d))
	b.after(time.Second)
	b.say("", &journal.Join{Candidate: "k1", Incarnation: "1", Components: []string{"rest", "other"}})
	require.Nil(t, d.View().Group("g").Components["other"].Term, "it may have stopped")
	b.beat("k1", "k2")
	other := d.View().Group("g").Components["other"].Term
	require.Equal(t, "k1", other.Candidate)
	b.say("other", &journal.Confirm{Session: other.Session, Candidate: "k1", Address: "a", Attempt: 1})
	for range 10 {
		b.after(5 * time.Second)
		b.beat("k1", "k2")
	}
	require.Equal(t, "k2", b.term(d).Candidate)
	require.Equal(t, other.Epoch, d.View().Group("g").Components["other"].Term.Epoch)
	require.Empty(t, d.asked)
}

// TestATombstoneThatIsFound was written by the projector before, which did not come to decide anything.
func TestATombstoneThatIsFound(t *testing.T) {
	b, first := led(t)
	b.after(lease)
	e := first.asked[0]
	b.put(Beat{Candidate: "k1", Incarnation: "1", Until: e.Until})
	d := b.start(first.opts.Settings)
	b.listen(d)
	b.after(5 * time.Second)
	b.beat("k1", "k2") // it goes on as a candidate, and leads nothing any more
	b.after(lease - 5*time.Second - 1)
	b.beat("k1", "k2")
	require.Equal(t, "k1", b.term(d).Candidate)
	b.after(1)
	require.Equal(t, "k2", b.term(d).Candidate)
}

func TestWhoIsNotHeardIsNotChosen(t *testing.T) {
	b, d := led(t)
	b.after(lease - 1)
	b.beat("k1")
	b.after(1) // k2 is quiet
	require.Empty(t, d.asked, "it holds nothing")
	b.after(lease)
	require.True(t, b.answer(d))
	require.Equal(t, "k1", b.term(d).Candidate, "a term is not closed where nobody can have the next")
	b.beat("k2")
	require.Equal(t, "k2", b.term(d).Candidate)
}

// TestAReportIsASignOfLifeOfWhoeverDoesNotLead holds what a report is good for: it makes its candidate one to be chosen,
// and renews no lease.
func TestAReportIsASignOfLifeOfWhoeverDoesNotLead(t *testing.T) {
	b, d := led(t)
	b.after(lease - 1)
	b.health("k1", "pass", 1)
	b.health("k2", "pass", 1)
	b.after(1)
	require.Len(t, d.asked, 1)
	require.True(t, b.answer(d))
	require.Equal(t, "k2", b.term(d).Candidate)
	b.after(lease - 1)
	require.Empty(t, d.asked, "a term begins with a full lease")
	b.after(1)
	require.Len(t, d.asked, 1)
}

// TestALapsedHolderThatSpeaks is alone, and gets a new term.
func TestALapsedHolderThatSpeaks(t *testing.T) {
	b, d := newBucket(t, policy.Managed)
	b.join("k1", "1")
	b.beat("k1")
	b.confirmed(d)
	b.health("k1", "pass", 1)
	epoch := b.term(d).Epoch
	b.after(lease)
	require.True(t, b.answer(d))
	b.beat("k1")
	require.Equal(t, epoch, b.term(d).Epoch)
	b.health("k1", "pass", 2)
	require.Greater(t, b.term(d).Epoch, epoch)
}

func TestAnAgentFallsSilent(t *testing.T) {
	const staleAfter = 90 * time.Second
	for sign, give := range map[string]func(b *bucket){
		"a heartbeat": func(b *bucket) { b.beat("k1") },
		"a report":    func(b *bucket) { b.health("k1", "fail", 2) },
		"a join":      func(b *bucket) { b.join("k1", "1") },
	} {
		t.Run(sign, func(t *testing.T) {
			b, d := newBucket(t, policy.External)
			b.join("k1", "1")
			b.join("k2", "1") // which never reports
			b.health("k1", "pass", 1)
			b.after(staleAfter - 1)
			give(b)
			since := b.now
			b.after(staleAfter - 1)
			require.NotContains(t, b.kinds(0), "stale")
			require.Equal(t, b.now.Add(1), d.wake)
			before := len(b.log)
			b.after(1)
			b.after(time.Hour)
			require.Equal(t, []string{"stale"}, b.kinds(before))
			stale := b.log[before].Event.Data.(*journal.Stale)
			require.Equal(t, "k1", stale.Candidate)
			require.True(t, since.Equal(stale.Since), "%s", stale.Since)

			b.health("k1", "pass", 3)
			b.after(staleAfter - 1)
			require.Len(t, b.kinds(before), 2)
			b.after(1)
			require.Equal(t, []string{"stale", "health", "stale"}, b.kinds(before))
			require.Empty(t, d.asked, "it is its own elector that decides who leads")
			require.Empty(t, d.live.seen.Lapsed)
		})
	}
}

// TestAHeartbeatWithoutAWord makes an agent that was silent no better known than it was.
func TestAHeartbeatWithoutAWord(t *testing.T) {
	b, d := newBucket(t, policy.External)
	b.join("k1", "1")
	b.health("k1", "pass", 1)
	b.after(90 * time.Second)
	b.beat("k1")
	require.NotNil(t, d.View().Group("g").Candidates["k1"].Silent)
	require.Empty(t, d.live.seen.Stale)
	before := len(b.log)
	b.after(time.Hour)
	require.Len(t, b.log, before, "it is silent, which is said once")
}

func TestAShorterLeaseHoldsAtOnce(t *testing.T) {
	b, d := led(t)
	rules := policy.Default()
	rules.Election, rules.Lease.Duration, rules.Lease.RenewEvery = policy.Managed, policy.Duration(6*time.Second), policy.Duration(time.Second)
	b.after(5 * time.Second)
	b.policy(rules)
	b.beat("k2")
	require.Empty(t, d.asked)
	b.after(time.Second)
	require.Len(t, d.asked, 1)
}

func TestWhoTakesNoPartIsForgotten(t *testing.T) {
	b, d := led(t)
	b.after(time.Hour)
	require.NotEmpty(t, d.live.seen.Lapsed)
	b.say("", &journal.Leave{Candidate: "k1", Incarnation: "1"})
	b.say("", &journal.Leave{Candidate: "k2", Incarnation: "1"})
	require.Nil(t, b.term(d))
	b.after(2 * time.Minute)
	require.Empty(t, d.live.lives)
	require.Empty(t, d.live.due)
	require.Empty(t, d.live.seen.Lapsed)
	require.Empty(t, d.live.seen.Stale)
}

// TestAHeartbeatCostsNothingElse holds that beats are no work, and leave no trace in the journal.
func TestAHeartbeatCostsNothingElse(t *testing.T) {
	b, d := led(t)
	before := len(b.log)
	for range 100 {
		b.after(time.Second)
		b.beat("k1", "k2")
	}
	require.Len(t, b.log, before)
	require.Len(t, d.live.due, 2)
}

// BenchmarkHeartbeats is what a round of 10,000 candidates costs, each of which renews its lease once.
func BenchmarkHeartbeats(b *testing.B) {
	const many = 10_000
	c := NewCore(Options{Instance: "x", Settings: Settings{Defaults: policy.Default()}})
	c.Listen()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	record := func(sequence uint64, e journal.Event) {
		raw, err := e.Encode()
		require.NoError(b, err)
		r := journal.NewRecord(sequence, now, e.Subject(), raw)
		require.NoError(b, r.Err)
		c.Apply(&r)
	}
	record(1, journal.Event{ID: "t", Source: "projector/x", Group: "_", Data: &journal.Takeover{Instance: "x"}})
	c.Lead(1)
	for i := range many {
		record(uint64(i+2), journal.Event{ID: fmt.Sprint(i), Source: "candidate/k", Group: "g", Data: &journal.Join{
			Candidate: fmt.Sprint("k", i), Incarnation: "1", Components: []string{"rest"},
		}})
	}
	var revision uint64
	at := time.Duration(0)
	for b.Loop() {
		at += 5 * time.Second
		for i := range many {
			revision++
			c.Heard(Beat{Group: "g", Candidate: fmt.Sprint("k", i), Incarnation: "1", Revision: revision}, at)
		}
		c.Poll(now.Add(at), at)
	}
}

// TestWhatIsHeardBeforeTheJoin is known when it counts: the key was the joined one's own.
func TestWhatIsHeardBeforeTheJoin(t *testing.T) {
	b, d := newBucket(t, policy.Managed)
	b.beat("k1")
	b.join("k1", "1")
	b.join("k2", "1")
	b.put(Beat{Candidate: "k1", Incarnation: "2"})
	b.after(lease - 1)
	b.beat("k2")
	require.Equal(t, "k1", b.term(d).Candidate)
	b.after(1)
	require.Empty(t, d.asked)
	require.Equal(t, "k2", b.term(d).Candidate)
}

// TestALostBucketGivesAgentsTheirWholeTime holds the same of silence as of leases.
func TestALostBucketGivesAgentsTheirWholeTime(t *testing.T) {
	b, d := newBucket(t, policy.External)
	b.join("k1", "1")
	b.health("k1", "pass", 1)
	b.after(89 * time.Second)
	b.listen(d)
	b.after(89 * time.Second)
	require.NotContains(t, b.kinds(0), "stale")
	b.after(time.Second)
	require.Contains(t, b.kinds(0), "stale")
}

// TestTheEndOfALeaseIsOnce holds that NoLeader counts from it, whatever is looked at meanwhile.
func TestTheEndOfALeaseIsOnce(t *testing.T) {
	b, d := led(t)
	b.after(lease)
	b.say("", &journal.Pause{Order: order()})
	require.True(t, b.answer(d))
	b.after(29 * time.Second)
	b.health("k1", "pass", 1)
	require.NotContains(t, b.kinds(0), "alert")
	b.after(time.Second)
	require.Contains(t, b.kinds(0), "alert")
}

// long is a renewal by a candidate that counts on a longer lease than the policy has by now.
func (b *bucket) long(name string, lease time.Duration) {
	b.t.Helper()
	b.put(Beat{Candidate: name, Incarnation: "1", Lease: lease})
}

// shorten has an operator make the group's leases short.
func (b *bucket) shorten(to time.Duration) {
	b.t.Helper()
	rules := policy.Default()
	rules.Election = policy.Managed
	rules.Lease.Duration, rules.Lease.RenewEvery = policy.Duration(to), policy.Duration(to/3)
	b.policy(rules)
}

// TestALeaseLastsAsLongAsItsHolderCountsOnIt has leases be made shorter after the holder's last renewal, of which it
// may not have heard.
func TestALeaseLastsAsLongAsItsHolderCountsOnIt(t *testing.T) {
	b, d := led(t)
	b.long("k1", 15*time.Second)
	b.shorten(6 * time.Second)
	b.after(15*time.Second - 1)
	b.beat("k2")
	require.Empty(t, d.asked)
	b.after(1)
	require.Len(t, d.asked, 1)
	require.Equal(t, 15*time.Second, d.asked[0].Lease)
	require.True(t, b.answer(d))
	require.Equal(t, "k2", b.term(d).Candidate)
}

func TestARenewalWithAShorterLeaseCounts(t *testing.T) {
	b, d := led(t)
	b.long("k1", 15*time.Second)
	b.shorten(6 * time.Second)
	b.long("k1", 6*time.Second)
	b.after(6 * time.Second)
	require.Len(t, d.asked, 1)
}

// TestANewProjectorKnowsTheLease from what the key shows.
func TestANewProjectorKnowsTheLease(t *testing.T) {
	b, first := led(t)
	b.long("k1", 15*time.Second)
	b.shorten(6 * time.Second)
	second := b.start(first.opts.Settings)
	b.shorten(6 * time.Second)
	b.listen(second)
	b.after(15*time.Second - 1)
	require.Empty(t, second.asked)
	b.after(1)
	require.NotEmpty(t, second.asked)
}

// TestAFenceLastsAsLongAsTheLease has the holder's key be taken from it, by a tombstone that tells what it counted on,
// or by its next incarnation.
func TestAFenceLastsAsLongAsTheLease(t *testing.T) {
	for name, taken := range map[string]Beat{
		"tombstone":   {Candidate: "k1", Incarnation: "1", Until: 1000, Lease: 15 * time.Second},
		"incarnation": {Candidate: "k1", Incarnation: "2", Lease: 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b, d := led(t)
			b.shorten(6 * time.Second)
			if taken.Until == 0 {
				b.long("k1", 15*time.Second)
			}
			b.put(taken)
			b.after(15*time.Second - 1)
			b.beat("k2")
			require.Equal(t, "k1", b.term(d).Candidate)
			b.after(1)
			require.Equal(t, "k2", b.term(d).Candidate)
		})
	}
}

// TestNobodyFallsSilentUnheard has the watch break, and come back.
func TestNobodyFallsSilentUnheard(t *testing.T) {
	b, d := led(t)
	b.health("k1", "pass", 1)
	d.Deaf()
	b.after(time.Hour)
	b.join("k3", "1")
	b.after(time.Hour)
	require.Empty(t, d.asked)
	require.NotContains(t, b.kinds(0), "stale")
	b.listen(d)
	b.after(lease - 1)
	require.Empty(t, d.asked)
	b.after(1)
	require.Len(t, d.asked, 1)
	b.after(90 * time.Second)
	require.Contains(t, b.kinds(0), "stale")
}

// TestNoTombstoneBeforeTheKeyIsKnown has the bucket be lost while a holder has to be forced out: its revision of the old
// bucket may be the tombstone's in the new one.
func TestNoTombstoneBeforeTheKeyIsKnown(t *testing.T) {
	b, d := led(t)
	b.policy(hasty())
	b.transfer()
	clear(b.keys)
	b.after(10 * time.Second)
	b.listen(d)
	b.after(10 * time.Second)
	require.Empty(t, d.asked)
	b.beat("k1", "k2")
	require.Len(t, d.asked, 1, "it has a revision of this bucket")
	require.True(t, b.answer(d))

	b, d = led(t)
	b.policy(hasty())
	b.transfer()
	clear(b.keys)
	b.listen(d)
	b.after(lease)
	require.Len(t, d.asked, 1, "its lease is over, whatever it holds")
}

// TestATombstoneIsAskedForAgainOnceTheKeyIsHeardOf has the answer come before the news.
func TestATombstoneIsAskedForAgainOnceTheKeyIsHeardOf(t *testing.T) {
	b, d := overstay(t)
	b.deaf = true
	b.beat("k1")
	require.False(t, b.answer(d))
	require.Empty(t, d.asked)
	b.deaf = false
	b.beat("k1")
	require.Len(t, d.asked, 1)
}

func TestOnlyNewsMakeRestless(t *testing.T) {
	b, d := led(t)
	hear := func(name string) {
		b.revision++
		d.Heard(Beat{Group: "g", Candidate: name, Incarnation: "1", Revision: b.revision}, b.own())
	}
	hear("k1")
	hear("k1")
	require.False(t, d.Restless())
	b.after(lease)
	require.False(t, d.Restless())
	hear("k2")
	require.True(t, d.Restless(), "k2 can be chosen again")
	d.Resign()
	require.False(t, d.Restless())
}

// TestANewProjectorDoesNotKnowEveryLease has the holder's key be its next incarnation's when the projector begins: how long
// the holder counts on its last renewal can't be seen any more, only what the longest lease was that it may have had.
func TestANewProjectorDoesNotKnowEveryLease(t *testing.T) {
	b, first := led(t)
	b.long("k1", 15*time.Second)
	b.shorten(6 * time.Second)
	b.join("k1", "2")
	b.put(Beat{Candidate: "k1", Incarnation: "2", Lease: 6 * time.Second})
	second := b.start(first.opts.Settings)
	b.shorten(6 * time.Second)
	b.listen(second)
	for range 5 {
		b.after(3*time.Second - 1)
		b.beat("k2")
		require.Equal(t, "k1", b.term(second).Candidate)
	}
	b.after(5)
	require.Equal(t, "k2", b.term(second).Candidate)
}
