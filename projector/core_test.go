package projector

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// bench drives one or more cores over a log in memory, at a time that only moves when told to.
type bench struct {
	t     *testing.T
	now   time.Time
	log   []journal.Record
	seen  map[string]uint64
	cores []*driven
	ahead time.Duration // by how much the log's clock has jumped
}

// driven is a core, how far it has read, and the pushes that it has under way.
type driven struct {
	*Core
	read   int
	under  []Push
	barred int // barriers asked for
	asked  []Expiry
	wake   time.Time
	manual bool // barriers are answered by the test
}

func newBench(t *testing.T) *bench {
	return &bench{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), seen: map[string]uint64{}}
}

func (b *bench) start(settings Settings) *driven {
	d := &driven{Core: NewCore(Options{
		Instance: fmt.Sprintf("journald-%d", len(b.cores)), Settings: settings, Random: rand.New(rand.NewPCG(1, 2)),
		PerComponent: func(_ string, spec journal.Target) bool { return strings.Contains(spec.Object, "{component}") },
	})}
	b.cores = append(b.cores, d)
	sequence := b.append(journal.Event{
		ID: d.opts.Instance, Source: d.source, Group: "_", Data: &journal.Takeover{Instance: d.opts.Instance},
	})
	d.Lead(sequence)
	b.settle()
	return d
}

func settings(targets ...journal.Target) Settings {
	return Settings{
		Defaults: policy.Default(), Groups: map[string]Group{"g": {Policy: policy.Default(), Targets: targets}},
	}
}

func configMap(name string, components ...string) journal.Target {
	return journal.Target{Name: name, Kind: "test", Object: "leaders", Components: components}
}

func (b *bench) append(e journal.Event) uint64 {
	b.t.Helper()
	require.NoError(b.t, e.Validate())
	if first, ok := b.seen[e.MessageID()]; ok {
		return first
	}
	raw, err := e.Encode()
	require.NoError(b.t, err)
	r := journal.NewRecord(uint64(len(b.log))+1, b.now, e.Subject(), raw)
	require.NoError(b.t, r.Err)
	b.log = append(b.log, r)
	b.seen[e.MessageID()] = r.Sequence
	return r.Sequence
}

// say appends an event of a service and lets the cores work.
func (b *bench) say(component string, data journal.Data) uint64 {
	b.t.Helper()
	source := "candidate/test"
	if _, ok := data.(*journal.Policy); ok {
		source = "operator/test"
	}
	sequence := b.append(journal.Event{
		ID: fmt.Sprint(len(b.log)), Source: source, Group: "g", Component: component, Time: b.now, Data: data,
	})
	b.settle()
	return sequence
}

// confirm grants a session and confirms it.
func (b *bench) confirm(component, session, address string) uint64 {
	b.t.Helper()
	b.say(component, &journal.Grant{Candidate: "jm-1", Session: session})
	return b.say(component, &journal.Confirm{Session: session, Candidate: "jm-1", Address: address, Attempt: uint64(len(b.log))})
}

// own is the cores' own clock.
func (b *bench) own() time.Duration {
	return b.now.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) - b.ahead
}

// settle runs every core until nothing is left to do but the pushes.
func (b *bench) settle() {
	b.t.Helper()
	for range 1000 {
		busy := false
		for _, d := range b.cores {
			busy = b.step(d) || busy
		}
		if !busy {
			return
		}
	}
	require.Fail(b.t, "the cores do not come to rest")
}

func (b *bench) step(d *driven) bool {
	busy := d.read < len(b.log)
	for ; d.read < len(b.log); d.read++ {
		d.Apply(&b.log[d.read])
	}
	work := d.Poll(b.now, b.own())
	d.wake = work.Wake
	for _, batch := range work.Batches {
		var last uint64
		for _, e := range batch.Events {
			last = b.append(e)
		}
		d.Appended(batch.ID, last)
	}
	d.under = append(d.under, work.Pushes...)
	d.asked = append(d.asked, work.Expiries...)
	if work.Barrier {
		d.barred++
		if !d.manual {
			d.Last(uint64(len(b.log)))
		}
	}
	return busy || len(work.Batches) > 0 || work.Barrier
}

// finish ends the oldest push under way.
func (b *bench) finish(d *driven, receipt Receipt, err error) Push {
	b.t.Helper()
	require.NotEmpty(b.t, d.under, "no push is under way")
	p := d.under[0]
	d.under = d.under[1:]
	d.Pushed(p, receipt, err, b.now)
	b.settle()
	return p
}

// at moves the time.
func (b *bench) after(d time.Duration) {
	b.t.Helper()
	b.now = b.now.Add(d)
	b.settle()
}

// pushes are the push records so far.
func (b *bench) pushes() []*journal.Push {
	var all []*journal.Push
	for i := range b.log {
		if p, ok := b.log[i].Event.Data.(*journal.Push); ok {
			all = append(all, p)
		}
	}
	return all
}

func (b *bench) target(d *driven, component, name string) *view.Target {
	b.t.Helper()
	c := d.View().Group("g").Components[component]
	require.NotNil(b.t, c)
	require.NotNil(b.t, c.Targets[name])
	return c.Targets[name]
}

func TestOnePushCarriesEveryComponentAndTheHighestSequence(t *testing.T) {
	b := newBench(t)
	d := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a")
	require.Len(t, d.under, 1)
	require.Len(t, d.under[0].Document.Entries, 1)
	second := b.confirm("dispatcher", "S1", "akka://a")

	require.Len(t, d.under, 1, "one writer for one object: the second intent waits")
	b.finish(d, Receipt{Revision: 7, Changed: []string{"rest"}, Wrote: true}, nil)
	require.Len(t, d.under, 1)
	doc := d.under[0].Document
	require.Len(t, doc.Entries, 2)
	require.Equal(t, second, doc.Sequence)
	require.False(t, doc.Fresh)
	b.finish(d, Receipt{Revision: 8, Changed: []string{"dispatcher"}, Wrote: true}, nil)

	require.Empty(t, d.under)
	require.Equal(t, view.InSync, b.target(d, "rest", "cm").State)
	require.Equal(t, view.InSync, b.target(d, "dispatcher", "cm").State)
	require.Len(t, b.pushes(), 2)
}

func TestTheMailboxHoldsOneIntent(t *testing.T) {
	b := newBench(t)
	d := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a/0")
	var last uint64
	for i := range 100 {
		last = b.say("rest", &journal.Confirm{Session: "S1", Candidate: "jm-1", Address: fmt.Sprint("http://a/", i), Attempt: uint64(1000 + i)})
	}
	b.finish(d, Receipt{Revision: 1, Wrote: true}, nil)
	require.Len(t, d.under, 1)
	require.Equal(t, last, d.under[0].Document.Sequence)
	b.finish(d, Receipt{Revision: 2, Wrote: true}, nil)
	require.Empty(t, d.under, "a hundred intents, two writes")
}

func TestATargetOfManyObjectsHasAWriterForEach(t *testing.T) {
	b := newBench(t)
	d := b.start(settings(journal.Target{Name: "lease", Kind: "test", Object: "x-{component}"}))
	b.confirm("rest", "S1", "http://a")
	b.confirm("dispatcher", "S1", "akka://a")
	require.Len(t, d.under, 2)
	require.Equal(t, "rest", d.under[0].Document.Component)
	require.Equal(t, "dispatcher", d.under[1].Document.Component)
}

func TestAtMostSoManyWritesToOneTargetAtOnce(t *testing.T) {
	b := newBench(t)
	d := b.start(settings(journal.Target{Name: "lease", Kind: "test", Object: "x-{component}"}))
	for i := range parallel + 10 {
		b.confirm(fmt.Sprint("c", i), "S1", "http://a")
	}
	require.Len(t, d.under, parallel)
	for range parallel + 10 {
		b.finish(d, Receipt{Revision: 1, Wrote: true}, nil)
	}
	require.Empty(t, d.under)
	require.Len(t, b.pushes(), parallel+10)
}

func TestFailuresBackOffWithJitterUpToThirtySeconds(t *testing.T) {
	b := newBench(t)
	d := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a")
	limit := firstRetry
	for range 10 {
		b.finish(d, Receipt{}, errors.New("503"))
		require.Empty(t, d.under)
		wait := d.writers[Object{Group: "g", Target: "cm"}].retryAt.Sub(b.now)
		require.GreaterOrEqual(t, wait, limit/2)
		require.LessOrEqual(t, wait, limit)
		p := b.pushes()[len(b.pushes())-1]
		require.Equal(t, journal.Failed, p.Outcome)
		require.Equal(t, wait, time.Duration(p.RetryAfter), "the record says how long the wait is")
		require.Equal(t, len(b.pushes()), p.Attempt)
		b.after(wait)
		require.Len(t, d.under, 1)
		require.True(t, d.under[0].Document.Fresh)
		limit = min(2*limit, lastRetry)
	}
	b.finish(d, Receipt{Revision: 3, Wrote: true}, nil)
	require.Equal(t, view.InSync, b.target(d, "rest", "cm").State)
}

func TestANewerIntentCutsTheWaitShort(t *testing.T) {
	for name, err := range map[string]error{"retryable": errors.New("503"), "permanent": fmt.Errorf("%w: 403", ErrPermanent)} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			d := b.start(settings(configMap("cm")))
			b.confirm("rest", "S1", "http://a")
			b.finish(d, Receipt{}, err)
			require.Empty(t, d.under)
			newer := b.say("rest", &journal.Confirm{Session: "S1", Candidate: "jm-1", Address: "http://b", Attempt: 99})
			require.Len(t, d.under, 1)
			require.Equal(t, newer, d.under[0].Document.Sequence)
		})
	}
}

func TestAPermanentErrorIsTriedEveryFiveMinutes(t *testing.T) {
	b := newBench(t)
	d := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a")
	b.finish(d, Receipt{}, fmt.Errorf("%w: 403", ErrPermanent))
	require.True(t, b.target(d, "rest", "cm").Permanent)
	b.after(permanentRetry - 1)
	require.Empty(t, d.under)
	b.after(1)
	require.Len(t, d.under, 1)
}

func TestTheBackendsRetryAfterIsKept(t *testing.T) {
	b := newBench(t)
	d := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a")
	b.finish(d, Receipt{}, &RetryAfter{After: time.Minute, Err: errors.New("429")})
	b.after(time.Minute - 1)
	require.Empty(t, d.under)
	b.after(1)
	require.Len(t, d.under, 1)
}

// TestAWriteComesBackWithItsTarget has a target away for long: what failed meanwhile is written within a second after
// its observer is back, not when the backoff ends. What is refused, or asked to wait, waits.
func TestAWriteComesBackWithItsTarget(t *testing.T) {
	for name, c := range map[string]struct {
		target    journal.Target
		component string // of the gap
		err       error
		soon      bool
	}{
		"one object":                     {configMap("cm"), "", errors.New("unreachable"), true},
		"one for each component":         {journal.Target{Name: "cm", Kind: "test", Object: "{component}"}, "rest", ErrUnknownOutcome, true},
		"all that are one for each":      {journal.Target{Name: "cm", Kind: "test", Object: "{component}"}, "", errors.New("unreachable"), true},
		"another component's":            {journal.Target{Name: "cm", Kind: "test", Object: "{component}"}, "other", errors.New("unreachable"), false},
		"what is refused stays so":       {configMap("cm"), "", fmt.Errorf("%w: 403", ErrPermanent), false},
		"what was asked to wait does so": {configMap("cm"), "", &RetryAfter{After: time.Minute, Err: errors.New("429")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			d := b.start(settings(c.target))
			b.confirm("rest", "S1", "http://a")
			w := d.writers[d.object(d.view.Group("g"), &c.target, "rest")]
			for range 8 {
				b.finish(d, Receipt{}, c.err)
				b.after(w.retryAt.Sub(b.now))
			}
			b.finish(d, Receipt{}, c.err)
			b.say(c.component, &journal.Watch{Target: "cm", Gap: true})
			b.after(spread)
			require.Equal(t, c.soon, len(d.under) == 1)
			if c.soon {
				b.finish(d, Receipt{}, c.err)
				b.after(firstRetry)
				require.Len(t, d.under, 1, "the backoff begins anew")
			}
		})
	}
}

func TestAConflictIsReadAgainAtOnceAfterTheLogIsReadToItsEnd(t *testing.T) {
	b := newBench(t)
	d := b.start(settings(configMap("cm")))
	d.manual = true
	b.confirm("rest", "S1", "http://a")
	b.finish(d, Receipt{}, ErrConflict)
	require.Empty(t, d.under, "not before the end of the log is known")
	require.Equal(t, 1, d.barred)

	d.Last(uint64(len(b.log)) + 1)
	b.settle()
	require.Empty(t, d.under, "not before it is read")
	b.say("rest", &journal.Confirm{Session: "S1", Candidate: "jm-1", Address: "http://b", Attempt: 99})
	require.Len(t, d.under, 1)
	require.True(t, d.under[0].Document.Fresh)
	require.Equal(t, "http://b", d.under[0].Document.Entries["rest"].Leader.Address)
}

func TestAnUnknownOutcomeIsReadBack(t *testing.T) {
	b := newBench(t)
	d := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a")
	b.finish(d, Receipt{}, fmt.Errorf("%w: time-out", ErrUnknownOutcome))
	require.Equal(t, view.Unclear, b.target(d, "rest", "cm").State)
	require.Empty(t, d.under)
	b.after(firstRetry)
	require.True(t, d.under[0].Document.Fresh)
	b.finish(d, Receipt{Revision: 5}, nil) // it had landed: nothing was written now
	require.Equal(t, view.InSync, b.target(d, "rest", "cm").State)
	require.Equal(t, journal.OK, b.pushes()[1].Outcome, "what was unknown is known, which the journal has to say")
}

func TestASupersededPushIsLeftAlone(t *testing.T) {
	b := newBench(t)
	d := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a")
	b.finish(d, Receipt{}, ErrSuperseded)
	require.Equal(t, journal.Superseded, b.pushes()[0].Outcome)
	b.after(time.Hour)
	require.Empty(t, d.under)
	b.say("rest", &journal.Watch{Target: "cm", Revision: 99}) // the object is gone
	require.Len(t, d.under, 1)
}

func TestAComponentThatTheLayoutCannotHoldDoesNotKeepTheOthers(t *testing.T) {
	b := newBench(t)
	d := b.start(settings(configMap("cm")))
	b.confirm("a/b:c", "S1", "http://a")
	b.finish(d, Receipt{Revision: 1, Wrote: true, Rejected: map[string]error{"a/b:c": errors.New("no such key")}}, nil)
	require.True(t, b.target(d, "a/b:c", "cm").Permanent)
	b.after(time.Hour)
	require.Empty(t, d.under, "it is not tried over and over")

	b.confirm("rest", "S1", "http://a")
	b.finish(d, Receipt{Revision: 2, Wrote: true, Changed: []string{"rest"}}, nil)
	require.Equal(t, view.InSync, b.target(d, "rest", "cm").State)
	require.Empty(t, d.under)
	require.Len(t, b.pushes(), 2)
}

func TestADriftIsReadBeforeItIsRepaired(t *testing.T) {
	b := newBench(t)
	d := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a")
	b.finish(d, Receipt{Revision: 1, Wrote: true}, nil)
	b.say("rest", &journal.Watch{Target: "cm", Revision: 2, Sequence: 99})
	require.Len(t, d.under, 1)
	require.True(t, d.under[0].Document.Fresh, "the adapter still knows its own last write, which is gone")
}

func TestATakeoverReadsEveryObjectAndWritesNothingThatIsRight(t *testing.T) {
	b := newBench(t)
	first := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a")
	b.finish(first, Receipt{Revision: 1, Wrote: true}, nil)

	second := b.start(settings(configMap("cm")))
	require.False(t, first.Active())
	require.True(t, second.Active())
	require.Len(t, second.under, 1)
	require.True(t, second.under[0].Document.Fresh)
	before := len(b.log)
	b.finish(second, Receipt{Revision: 1}, nil)
	require.Len(t, b.log, before, "an attempt that found nothing to write leaves no record")
}

func TestATakeoverRepairsWhatDriftedMeanwhile(t *testing.T) {
	b := newBench(t)
	first := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a")
	b.finish(first, Receipt{Revision: 1, Wrote: true}, nil)
	second := b.start(settings(configMap("cm")))
	b.finish(second, Receipt{Revision: 9, Changed: []string{"rest"}, Wrote: true}, nil)
	require.Len(t, b.pushes(), 2)
	require.Equal(t, uint64(9), b.target(second, "rest", "cm").Revision)
}

func TestAVerificationThatFailsIsTriedAgain(t *testing.T) {
	b := newBench(t)
	first := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a")
	b.finish(first, Receipt{Revision: 1, Wrote: true}, nil)
	second := b.start(settings(configMap("cm")))
	b.finish(second, Receipt{}, errors.New("503"))
	require.Equal(t, view.Failing, b.target(second, "rest", "cm").State)
	b.after(firstRetry)
	b.finish(second, Receipt{Revision: 1}, nil)
	require.Equal(t, view.InSync, b.target(second, "rest", "cm").State)
}

func TestAReplacedInstanceStopsBeforeItsNextWrite(t *testing.T) {
	b := newBench(t)
	first := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a")
	stale := first.under[0]
	second := b.start(settings(configMap("cm")))
	b.say("rest", &journal.Confirm{Session: "S1", Candidate: "jm-1", Address: "http://b", Attempt: 99})
	before := len(b.log)
	first.under = nil
	first.Pushed(stale, Receipt{}, ErrConflict, b.now)
	b.settle()
	require.Empty(t, first.under)
	require.Len(t, b.log, before)
	require.Len(t, second.under, 1)
}

func TestARecordOfAReplacedInstanceIsVoid(t *testing.T) {
	b := newBench(t)
	first := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a")
	epoch := first.leading
	second := b.start(settings(configMap("cm")))
	late := &journal.Push{
		Target: "cm", Intent: first.under[0].Document.Sequence, Attempt: 1, Outcome: journal.OK,
		Decision: journal.Decision{Projector: epoch},
	}
	b.append(journal.Event{ID: "late", Source: first.source, Group: "g", Component: "rest", Data: late})
	b.settle()
	require.NotEqual(t, view.InSync, b.target(second, "rest", "cm").State)
}

func TestPolicyComesFromTheConfigurationButAnOperatorsStands(t *testing.T) {
	b := newBench(t)
	d := b.start(settings(configMap("cm")))
	g := d.View().Group("g")
	require.Equal(t, policy.Default(), g.Policy)
	require.Len(t, g.Targets, 1)

	changed := policy.Default()
	changed.Flapping = 9
	b.say("", &journal.Policy{Policy: changed, Order: journal.Order{Actor: "lin", Reason: "test"}})
	require.Equal(t, 9, g.Policy.Flapping)
	b.start(settings(configMap("cm")))
	require.Equal(t, 9, b.cores[1].View().Group("g").Policy.Flapping, "a restart with the same file changes nothing")

	other := policy.Default()
	other.Flapping = 7
	b.cores[1].Configure(Settings{Defaults: policy.Default(), Groups: map[string]Group{"g": {Policy: other}}})
	b.settle()
	require.Equal(t, 7, b.cores[1].View().Group("g").Policy.Flapping, "a changed file does")
	require.Empty(t, b.cores[1].View().Group("g").Targets)
}

func TestAConfigurationThatSaysTheSameInOtherWordsIsNotAppendedAgain(t *testing.T) {
	b := newBench(t)
	same := settings(configMap("cm"))
	same.Groups["g"].Targets[0].Components = []string{}
	b.start(same)
	b.start(same)
	b.start(settings(configMap("cm")))
	policies := 0
	for i := range b.log {
		if _, ok := b.log[i].Event.Data.(*journal.Policy); ok {
			policies++
		}
	}
	require.Equal(t, 1, policies)
}

func TestAGroupThatOnlyAppearsInEventsGetsTheDefaults(t *testing.T) {
	b := newBench(t)
	s := Settings{Defaults: policy.Default()}
	s.Defaults.ConfirmWithin = policy.Duration(time.Second)
	d := b.start(s)
	b.say("rest", &journal.Grant{Candidate: "jm-1", Session: "S1"})
	require.Equal(t, s.Defaults, d.View().Group("g").Policy)
	b.after(time.Second)
	require.Len(t, d.View().Group("g").Components["rest"].Alerts, 1)
}

func TestAnOperatorsPolicyStandsThoughItWasTheFirst(t *testing.T) {
	b := newBench(t)
	first := policy.Default()
	first.Flapping = 9
	b.append(journal.Event{ID: "p", Source: "operator/lin", Group: "g", Data: &journal.Policy{
		Policy: first, Targets: &[]journal.Target{configMap("cm")}, Order: journal.Order{Actor: "lin", Reason: "test"},
	}})
	d := b.start(Settings{Defaults: policy.Default()})
	b.say("rest", &journal.Grant{Candidate: "jm-1", Session: "S1"})
	b.after(time.Hour) // decisions come and go
	g := d.View().Group("g")
	require.NotEmpty(t, g.Components["rest"].Alerts)
	require.Equal(t, 9, g.Policy.Flapping)
	require.Len(t, g.Targets, 1)
}

func TestADecisionInVainIsNotMadeAgainAtOnce(t *testing.T) {
	b := newBench(t)
	d := b.start(settings())
	b.say("rest", &journal.Grant{Candidate: "jm-1", Session: "S1"})
	b.now = b.now.Add(time.Minute)
	for range 3 {
		work := d.Poll(b.now, b.own())
		require.Len(t, work.Batches, 1)
		d.Appended(work.Batches[0].ID, d.View().Sequence()) // taken for a record that is something else
		require.Empty(t, d.Poll(b.now, b.own()).Batches)
		b.now = b.now.Add(time.Second)
	}
}

func TestTheBuiltInBucketFollowsWithoutATraceInTheJournal(t *testing.T) {
	b := newBench(t)
	d := b.start(Settings{Defaults: policy.Default()})
	d.opts.Leaders = true
	grant := b.say("rest", &journal.Grant{Candidate: "jm-1", Session: "S1"})
	require.Len(t, d.under, 1)
	require.Equal(t, Object{Group: "g", Component: "rest"}, d.under[0].Object)
	require.Equal(t, grant, d.under[0].Document.Sequence)
	require.Equal(t, "granted", d.under[0].Document.Entries["rest"].Phase)
	confirm := b.say("rest", &journal.Confirm{Session: "S1", Candidate: "jm-1", Address: "http://a", Attempt: 1})
	before := len(b.log)
	b.finish(d, Receipt{Revision: 1, Wrote: true}, nil)
	require.Equal(t, confirm, d.under[0].Document.Sequence, "what came meanwhile is written next")
	b.finish(d, Receipt{}, errors.New("no leader"))
	b.after(firstRetry)
	b.finish(d, Receipt{Revision: 2, Wrote: true}, nil)
	require.Empty(t, d.under)
	require.Empty(t, d.writers)
	require.Len(t, b.log, before)
}

func TestADecisionWaitsForTheOneBefore(t *testing.T) {
	b := newBench(t)
	d := b.start(settings())
	for i := range 5 {
		b.say(fmt.Sprint("c", i), &journal.Grant{Candidate: "jm-1", Session: "S1"})
	}
	b.after(time.Minute)
	for i := range 5 {
		require.Len(t, d.View().Group("g").Components[fmt.Sprint("c", i)].Alerts, 1, "GrantedUnconfirmed")
	}
	for i := range b.log {
		_, ok := b.log[i].Event.Data.(*journal.Alert)
		require.False(t, ok && b.log[i].Err != nil)
	}
}

func TestTheAnswerOfAnEarlierTimeIsNotTakenForTheNewOne(t *testing.T) {
	b := newBench(t)
	first := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a")
	stale := first.under[0]
	first.under = nil
	b.start(settings(configMap("cm")))
	b.say("rest", &journal.Confirm{Session: "S1", Candidate: "jm-1", Address: "http://b", Attempt: 99})
	first.Lead(b.append(journal.Event{
		ID: "again", Source: first.source, Group: "_", Data: &journal.Takeover{Instance: first.opts.Instance},
	}))
	b.settle()
	require.Len(t, first.under, 1)
	first.Pushed(stale, Receipt{Revision: 1, Wrote: true}, nil, b.now)
	b.settle()
	require.NotEqual(t, view.InSync, b.target(first, "rest", "cm").State)
	b.finish(first, Receipt{Revision: 2, Wrote: true}, nil)
	require.Equal(t, view.InSync, b.target(first, "rest", "cm").State)
}

func TestAWriterThatHasNothingToDoIsForgotten(t *testing.T) {
	b := newBench(t)
	d := b.start(settings(configMap("cm")))
	b.confirm("rest", "S1", "http://a")
	b.finish(d, Receipt{Revision: 1, Wrote: true}, nil)
	require.Empty(t, d.writers)
	require.Zero(t, d.running["cm"])
}
