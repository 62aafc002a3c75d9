package view_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

var update = flag.Bool("update", false, "write the files in testdata anew, to be read before they are committed")

// TestStories plays the files of testdata/stories. A line is a record, wait, look or decide, or what the projector has
// seen of a liveness key; what is indented below it is the verdict and, where it is another one than before, the state of
// the component or group. The records' numbers are their sequences. M1 is the first session that the projector made.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			got := play(t, want)
			if *update {
				require.NoError(t, os.WriteFile(file, got, 0o600))
			}
			require.Equal(t, string(want), string(got), "run go test -update, and read what it changes")
		})
	}
}

// play tells a file again with what comes of its lines.
func play(t *testing.T, text []byte) []byte {
	var out bytes.Buffer
	s := newTeller(t)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "  "): // what came of it last time
			continue
		case line == "" || strings.HasPrefix(line, "#"):
			fmt.Fprintln(&out, line)
			if strings.HasPrefix(line, "# ---") {
				s = newTeller(t)
			}
			continue
		}
		fmt.Fprintln(&out, line)
		for _, said := range s.line(line) {
			fmt.Fprintln(&out, "  "+said)
		}
	}
	require.NoError(t, lines.Err())
	return out.Bytes()
}

// teller makes records of lines and tells what they did.
type teller struct {
	t        *testing.T
	v        *view.View
	now      time.Time
	sequence uint64
	records  []journal.Record
	told     map[string]string // by component
	next     map[string]uint64 // runs and attempts
	live     view.Liveness
	made     []string // sessions, by the projector
}

// newTeller begins with a projector that has taken over, at 1.
func newTeller(t *testing.T) *teller {
	s := &teller{t: t, v: view.New(), now: epoch, told: map[string]string{}, next: map[string]uint64{}, live: emptyLiveness()}
	s.record(journal.Event{Source: "projector/p", Group: "_", Data: &journal.Takeover{Instance: "p"}})
	return s
}

func (s *teller) line(line string) []string {
	for i, session := range s.made {
		line = strings.ReplaceAll(line, fmt.Sprint("M", i+1), session)
	}
	w := words{t: s.t, all: strings.Fields(line)}
	switch verb := w.next(); verb {
	case "wait":
		d, err := time.ParseDuration(w.next())
		require.NoError(s.t, err, line)
		s.now = s.now.Add(d)
		return nil
	case "decide":
		return s.decide()
	case "before": // what was decided before it is stored after it
		return s.overtake(strings.TrimPrefix(line, "before "))
	case "quiet", "lapsed", "ended", "heard":
		s.watch(verb, w.next(), w.option("incarnation", "1"))
		return nil
	case "look":
		return []string{s.called(tell(s.v.Group("g").Components[w.next()]))}
	case "again":
		r := s.records[w.number()-1]
		s.sequence++
		r.Sequence, r.Time = s.sequence, s.now
		return s.apply(r)
	default:
		e := s.event(verb, &w)
		require.Empty(s.t, w.all, line)
		return s.record(e)
	}
}

// decide folds what is decided until nothing more is.
func (s *teller) decide() (said []string) {
	for range 20 {
		all := s.v.Decide(s.now, s.live, never)
		if len(all) == 0 {
			if at, ok := s.v.Wake(); ok {
				said = append(said, "next look in "+at.Sub(s.now).String())
			}
			return said
		}
		epoch, _ := s.v.Projector()
		for _, p := range all {
			for _, e := range p.Events("projector/p", epoch, s.now) {
				said = append(said, s.describe(&e))
				said = append(said, s.record(e)...)
			}
		}
	}
	require.Fail(s.t, "what is decided never comes to an end")
	return nil
}

// overtake has a line come between a decision and its records.
func (s *teller) overtake(line string) []string {
	all := s.v.Decide(s.now, s.live, never)
	require.NotEmpty(s.t, all)
	said := s.line(line)
	epoch, _ := s.v.Projector()
	for _, p := range all {
		for _, e := range p.Events("projector/p", epoch, s.now) {
			said = append(said, s.describe(&e))
			said = append(said, s.record(e)...)
		}
	}
	return said
}

// watch has the projector see, or miss, a candidate's signs of life.
func (s *teller) watch(verb, candidate, incarnation string) {
	h := view.Holder{Group: "g", Candidate: candidate, Incarnation: incarnation}
	switch verb {
	case "quiet":
		s.live.Stale[h] = s.now
	case "lapsed":
		s.live.Lapsed[h] = s.now
	case "ended":
		s.live.Ended[h] = view.Ending{Since: s.now, Sequence: s.sequence}
	case "heard":
		delete(s.live.Stale, h)
		delete(s.live.Lapsed, h)
	}
	s.v.Attend("g", candidate)
}

func emptyLiveness() view.Liveness {
	return view.Liveness{
		Stale: map[view.Holder]time.Time{}, Lapsed: map[view.Holder]time.Time{}, Ended: map[view.Holder]view.Ending{},
	}
}

func (s *teller) describe(e *journal.Event) string {
	switch d := e.Data.(type) {
	case *journal.Grant:
		s.made = append(s.made, d.Session)
		return s.called(fmt.Sprintf("grant %s %s: %s, by %v", e.Component, d.Candidate, d.Session, d.Cause))
	case *journal.Revoke:
		return s.called(fmt.Sprintf("revoke %s %s: %s, by %v", e.Component, d.Session, d.Reason, d.Cause))
	case *journal.Stale:
		return fmt.Sprintf("stale %s/%s since %s", d.Candidate, d.Incarnation, d.Since.Format("15:04:05"))
	case *journal.Yield:
		return s.called(fmt.Sprintf("yield %s to %s by %v: %s", d.Session, d.To, d.Cause, d.Reason))
	case *journal.Hold:
		return s.called(fmt.Sprintf("hold %s by %v: %s", d.Session, d.Cause, d.Reason))
	case *journal.Alert:
		return fmt.Sprintf("alert %s: %s", d.Name, d.Reason)
	case *journal.Clear:
		return fmt.Sprintf("clear %s: %s", d.Name, d.Reason)
	case *journal.Include:
		return fmt.Sprintf("include %s: %s", d.Candidate, d.Reason)
	case *journal.Resume:
		return "resume: " + d.Reason
	}
	return e.Data.Kind()
}

// called has the projector's sessions go by their short names.
func (s *teller) called(said string) string {
	for i, session := range s.made {
		said = strings.ReplaceAll(said, session, fmt.Sprint("M", i+1))
	}
	return said
}

// record stores an event and folds it.
func (s *teller) record(e journal.Event) []string {
	s.sequence++
	if e.ID == "" {
		e.ID = fmt.Sprintf("id-%d", s.sequence)
	}
	e.Time = s.now
	return s.apply(stored(s.t, s.sequence, s.now, e))
}

// stored is an event as it comes back from the journal.
func stored(t require.TestingT, sequence uint64, at time.Time, e journal.Event) journal.Record {
	require.NoError(t, e.Validate())
	raw, err := e.Encode()
	require.NoError(t, err)
	r := journal.NewRecord(sequence, at, e.Subject(), raw)
	require.NoError(t, r.Err)
	return r
}

func (s *teller) apply(r journal.Record) []string {
	s.records = append(s.records, r)
	result := s.v.Apply(&r)
	require.NoError(s.t, s.v.CheckDerived())
	said := fmt.Sprintf("%d %s", r.Sequence, result.Verdict)
	if result.Reason != "" {
		said += " (" + result.Reason + ")"
	}
	if result.Group == nil {
		return []string{said}
	}
	about, state := "", tellGroup(result.Group)
	if c := result.Component; c != nil {
		about, state = c.Name, tell(c)
	}
	if s.told[about] == state {
		return []string{s.called(said)}
	}
	s.told[about] = state
	return []string{s.called(said), "  " + s.called(state)}
}

// tell says what there is to say about a component.
func tell(c *view.Component) string {
	says := []string{c.Phase()}
	if t := c.Term; t != nil {
		says[0] += fmt.Sprintf(" %s %s since %d", t.Candidate, t.Session, t.Epoch)
		says = append(says, marks(map[string]bool{
			"ready": t.Ready == "true", "not ready": t.Ready == "false", "released": t.Released,
			"unfit": t.Unfit, "forced": t.Forced, "held": t.Held != 0, "for want of a better": t.Sole,
		})...)
		if y := t.Yield; y != nil {
			says = append(says, "told to yield to "+y.To)
		}
	}
	if i := c.Intent; i != nil {
		says = append(says, fmt.Sprintf("intent %d %s", i.Sequence, entry(i.Leader)))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Targets)) {
		says = append(says, name+" "+tellTarget(c.Targets[name]))
	}
	if !c.LeaderlessSince.IsZero() {
		says = append(says, "leaderless")
	}
	if h := c.Handover; h != nil {
		for _, s := range h.Stopping {
			says = append(says, s.Candidate+" may not have stopped")
		}
		for _, tried := range h.InVain {
			says = append(says, tried.Candidate+" tried in vain")
		}
		if h.Transfer != nil {
			says = append(says, "to be handed to "+h.Transfer.To)
		}
	}
	for _, a := range c.Anomalies {
		says = append(says, fmt.Sprintf("!%s %v", a.Name, a.Sequences))
	}
	for _, a := range c.Alerts {
		says = append(says, "ALERT "+a.Name)
	}
	return strings.Join(says, ", ")
}

func tellTarget(t *view.Target) string {
	said := t.State
	if t.State == "" {
		said = "untouched"
	}
	if t.Due {
		said += " due"
	}
	if t.Pushed != 0 {
		said += fmt.Sprintf(" (%d written)", t.Pushed)
	}
	return said
}

func tellGroup(g *view.Group) string {
	says := marks(map[string]bool{"paused": g.Paused})
	for _, name := range slices.Sorted(maps.Keys(g.Candidates)) {
		says = append(says, tellCandidate(g.Candidates[name]))
	}
	for _, a := range g.Anomalies {
		says = append(says, fmt.Sprintf("!%s %v", a.Name, a.Sequences))
	}
	for _, a := range g.Alerts {
		says = append(says, "ALERT "+a.Name)
	}
	return strings.Join(append([]string{fmt.Sprintf("version %d", g.Version)}, says...), ", ")
}

func tellCandidate(k *view.Candidate) string {
	said := k.Name + "/" + k.Incarnation
	if k.Joined == 0 {
		said += " not joined"
	}
	rank := k.Rank
	if rank == "" {
		rank = "unknown"
	}
	return strings.Join(append([]string{said, rank}, marks(map[string]bool{
		"excluded": k.Excluded, "silent": k.Silent != nil, "held down": k.HeldDown != nil, "expired": k.Expired > k.Spoke,
	})...), " ")
}

func marks(all map[string]bool) (says []string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] {
			says = append(says, name)
		}
	}
	return says
}

func entry(l *journal.LeaderInfo) string {
	if l == nil {
		return "nothing"
	}
	return l.Session + "@" + l.Address
}

// words are those of a line that are still to be read: first those that stand for themselves, then key=value.
type words struct {
	t   *testing.T
	all []string
}

func (w *words) next() string {
	require.NotEmpty(w.t, w.all)
	word := w.all[0]
	w.all = w.all[1:]
	return word
}

func (w *words) number() uint64 {
	n, err := strconv.ParseUint(w.next(), 10, 64)
	require.NoError(w.t, err)
	return n
}

// option takes key=value out of the line.
func (w *words) option(key, otherwise string) string {
	for i, word := range w.all {
		if value, ok := strings.CutPrefix(word, key+"="); ok {
			w.all = slices.Delete(w.all, i, i+1)
			return value
		}
	}
	return otherwise
}

func (w *words) count(key string, otherwise uint64) uint64 {
	n, err := strconv.ParseUint(w.option(key, strconv.FormatUint(otherwise, 10)), 10, 64)
	require.NoError(w.t, err)
	return n
}

func (w *words) flag(word string) bool {
	i := slices.Index(w.all, word)
	if i >= 0 {
		w.all = slices.Delete(w.all, i, i+1)
	}
	return i >= 0
}

// event reads a line. Options come off first, so that what is left over is a mistake.
func (s *teller) event(verb string, w *words) journal.Event {
	e := journal.Event{ID: w.option("id", ""), Source: w.option("by", "candidate/k"), Group: w.option("group", "g")}
	switch verb {
	case "grant", "revoke", "confirm", "ready", "release", "withdraw", "retry":
		e.Component = w.next()
		e.Data = s.ofSession(verb, w)
	case "join", "leave", "health":
		e.Data = s.ofCandidate(verb, w)
	case "watch":
		e.Source = "observer/o"
		e.Data = watch(w, &e)
	case "transfer", "exclude", "include", "pause", "resume", "policy":
		e.Source = w.option("from", "operator/alice")
		e.Data = s.order(verb, w, &e)
	default:
		e.Source = "projector/p"
		e.Data = s.decision(verb, w, &e)
	}
	return e
}

func (s *teller) ofSession(verb string, w *words) journal.Data {
	switch verb {
	case "grant":
		d := &journal.Grant{Candidate: w.next(), Session: w.next()}
		if lock := w.count("lock", 0); lock != 0 {
			d.Lock = &journal.Lock{Kind: "lease", Revision: lock}
		}
		return d
	case "revoke":
		return &journal.Revoke{Session: w.next(), Reason: w.option("reason", "lost")}
	case "confirm":
		d := &journal.Confirm{Candidate: w.next(), Session: w.next(), Address: w.next()}
		if zone := w.option("zone", ""); zone != "" {
			d.Properties = map[string]string{"zone": zone}
		}
		d.Attempt = w.count("attempt", s.next[d.Session]+1)
		s.next[d.Session] = max(s.next[d.Session], d.Attempt)
		return d
	case "ready":
		return &journal.Ready{Session: w.next(), Ready: w.next() == "true"}
	case "release":
		return &journal.Release{Session: w.next(), Reason: "stopped"}
	case "retry":
		return &journal.Retry{Session: w.next(), Attempt: 1, Error: "503", After: policy.Duration(time.Second)}
	}
	session := w.option("session", "")
	return &journal.Withdraw{Session: session, Actor: "alice", Reason: "moved"}
}

func (s *teller) ofCandidate(verb string, w *words) journal.Data {
	name, incarnation := w.next(), w.option("incarnation", "1")
	switch verb {
	case "join":
		priority, err := strconv.Atoi(w.option("priority", "0"))
		require.NoError(s.t, err)
		return &journal.Join{
			Candidate: name, Incarnation: incarnation, Priority: priority, Components: strings.Split(w.option("components", "rest"), ","),
		}
	case "leave":
		return &journal.Leave{Candidate: name, Incarnation: incarnation}
	}
	d := &journal.Health{Candidate: name, Incarnation: incarnation, Status: w.next(), Check: w.option("check", "disk"), Reason: "test"}
	key := name + incarnation + d.Check
	d.Run = w.count("run", s.next[key]+1)
	s.next[key] = max(s.next[key], d.Run)
	return d
}

// watch reads: watch rest cm 7 S1@a sequence=3 holder=jm-1, or watch rest cm gap, or watch - cm gap.
func watch(w *words, e *journal.Event) journal.Data {
	if e.Component = w.next(); e.Component == "-" {
		e.Component = ""
	}
	d := &journal.Watch{Target: w.next(), Sequence: w.count("sequence", 0), Holder: w.option("holder", "")}
	if d.Gap = w.flag("gap"); d.Gap && len(w.all) == 0 {
		return d
	}
	d.Revision = w.number()
	if seen := w.next(); seen != "nothing" {
		session, address, _ := strings.Cut(seen, "@")
		d.Entry = &journal.LeaderInfo{Session: session, Address: address, Candidate: w.option("candidate", "")}
	}
	return d
}

func (s *teller) order(verb string, w *words, e *journal.Event) journal.Data {
	o := order()
	until := time.Time{}
	if d, err := time.ParseDuration(w.option("until", "")); err == nil {
		until = s.now.Add(d)
	}
	switch verb {
	case "transfer":
		e.Component = w.next()
		return &journal.Transfer{To: w.option("to", ""), Force: w.flag("force"), Order: o}
	case "exclude":
		return &journal.Exclude{Candidate: w.next(), Until: until, Order: o}
	case "include":
		return &journal.Include{Candidate: w.next(), Order: o}
	case "pause":
		return &journal.Pause{Until: until, Order: o}
	case "resume":
		return &journal.Resume{Order: o}
	}
	return s.policy(w, o, e)
}

// policy reads: policy authority=backend targets=cm,zk:guarded maxYields=1, where what is not named is built in.
func (s *teller) policy(w *words, o journal.Order, e *journal.Event) journal.Data {
	d := &journal.Policy{Policy: rules(), Order: o}
	d.Policy.Authority = w.option("authority", policy.Journal)
	d.Policy.Election = w.option("election", policy.External)
	d.Policy.OnRevoke = w.option("onRevoke", policy.Retain)
	d.Policy.OnErase.Default = w.option("onErase", policy.Restore)
	d.Policy.Flapping = int(w.count("flapping", 5))
	d.Policy.Health.MaxYields = int(w.count("maxYields", 3))
	d.Policy.Health.SilentLeader = w.option("silentLeader", policy.Hold)
	if names := w.option("targets", ""); names != "" {
		d.Targets = &[]journal.Target{}
		for name := range strings.SplitSeq(names, ",") {
			name, mark, _ := strings.Cut(name, ":")
			spec := journal.Target{Name: name, Kind: "k8s/configmap", Guarded: mark == "guarded", Observe: mark == "observe"}
			if mark == "other" {
				spec.Components = []string{"other"}
			}
			*d.Targets = append(*d.Targets, spec)
		}
	}
	if basis := w.option("basis", ""); basis != "" {
		e.Source = "projector/p"
		d.Decision = s.basis(basis, w)
	}
	return d
}

// basis is a number, or now for the group's version.
func (s *teller) basis(word string, w *words) *journal.Decision {
	projector, _ := s.v.Projector()
	d := &journal.Decision{Projector: w.count("projector", projector)}
	if word != "now" {
		n, err := strconv.ParseUint(word, 10, 64)
		require.NoError(s.t, err)
		d.Basis = n
	} else if g := s.v.Group("g"); g != nil {
		d.Basis = g.Version
	}
	return d
}

func (s *teller) decision(verb string, w *words, e *journal.Event) journal.Data {
	d := *s.basis(w.option("basis", "now"), w)
	switch verb {
	case "takeover":
		e.Group = "_"
		return &journal.Takeover{Instance: w.next()}
	case "stale":
		return &journal.Stale{Candidate: w.next(), Incarnation: "1", Since: s.now, Decision: d}
	}
	e.Component = w.next()
	switch verb {
	case "push":
		p := &journal.Push{Target: w.next(), Intent: w.number(), Outcome: w.next(), Decision: d}
		p.Revision = w.count("revision", 0)
		if p.Permanent = w.flag("permanent"); p.Outcome != journal.OK {
			p.Error = "test"
		}
		key := fmt.Sprintf("%s %d", p.Target, p.Intent)
		p.Attempt = int(w.count("attempt", s.next[key]+1))
		s.next[key] = uint64(p.Attempt)
		return p
	case "yield":
		return &journal.Yield{Session: w.next(), To: w.next(), Reason: "test", Decision: d}
	case "hold":
		return &journal.Hold{Session: w.next(), Reason: "test", Decision: d}
	case "alert":
		return &journal.Alert{Name: w.next(), Reason: "test", Decision: d}
	case "clear":
		return &journal.Clear{Name: w.next(), Reason: "test", Decision: d}
	}
	require.Fail(s.t, "no such verb", verb)
	return nil
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func rules() policy.Policy { return policy.Default() }

func order() journal.Order { return journal.Order{Actor: "alice", Reason: "test"} }
