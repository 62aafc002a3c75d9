package journal_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

// faults are the fields that an error is about, in order, each with its problem.
func faults(err error) [][2]string {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all [][2]string
		for _, e := range many.Unwrap() {
			all = append(all, faults(e)...)
		}
		return all
	}
	var f *journal.FieldError
	if errors.As(err, &f) {
		return [][2]string{{f.Field, f.Problem}}
	}
	return nil
}

func requireFault(t *testing.T, err error, field, problem string) {
	t.Helper()
	require.ErrorIs(t, err, journal.ErrInvalid)
	all := faults(err)
	require.Len(t, all, 1, "%v", err)
	require.Equal(t, field, all[0][0])
	require.Contains(t, all[0][1], problem)
	require.Less(t, len(err.Error()), 1000, "whatever was sent, the message is short")
}

// fault is one thing that can be wrong with the sample of a kind.
type fault struct {
	name, field, problem string
	make                 func(e *journal.Event)
}

func requireFaults(t *testing.T, kind string, all []fault) {
	for _, f := range all {
		t.Run(kind+" "+f.name, func(t *testing.T) {
			e := sample(kind)
			f.make(&e)
			requireFault(t, e.Validate(), f.field, f.problem)
		})
	}
}

// with makes a fault of the data of one type.
func with[T journal.Data](change func(T)) func(*journal.Event) {
	return func(e *journal.Event) { change(e.Data.(T)) }
}

var long = strings.Repeat("x", 129)

func TestValidateEnvelope(t *testing.T) {
	requireFaults(t, "confirm", []fault{
		{"id missing", "id", "is missing", func(e *journal.Event) { e.ID = "" }},
		{"id long", "id", "has 129 characters; at most 128", func(e *journal.Event) { e.ID = long }},
		{"id with a line break", "id", "control character", func(e *journal.Event) { e.ID = "a\r\nNats-Msg-Id: b" }},
		{"source missing", "source", "is missing", func(e *journal.Event) { e.Source = "" }},
		{"source long", "source", "has 513 characters", func(e *journal.Event) { e.Source = "candidate/" + strings.Repeat("a", 503) }},
		{"source with a space", "source", "URI reference", func(e *journal.Event) { e.Source = "candidate/jm 1" }},
		{"source with a bar", "source", "URI reference", func(e *journal.Event) { e.Source = "candidate/a|b" }},
		{"source with a line break", "source", "URI reference", func(e *journal.Event) { e.Source = "candidate/a\n" }},
		{"source beyond ASCII", "source", "percent-encode", func(e *journal.Event) { e.Source = "operator/josé" }},
		{"time before 1970", "time", "years 1970 and 9999", func(e *journal.Event) { e.Time = time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"time after 9999", "time", "years 1970 and 9999", func(e *journal.Event) { e.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"data missing", "data", "is missing", func(e *journal.Event) { e.Data = nil }},
		{"extensions no object", "event", "extensions", func(e *journal.Event) { e.Extensions = jsontext.Value(`[1]`) }},
		{"extensions no JSON", "event", "extensions", func(e *journal.Event) { e.Extensions = jsontext.Value(`{"a":`) }},
	})
	e := sample("confirm")
	e.ID = strings.Repeat("é", 128)
	require.NoError(t, e.Validate(), "characters are counted, not bytes")
}

func TestValidateNames(t *testing.T) {
	group := func(s string) func(*journal.Event) { return func(e *journal.Event) { e.Group = s } }
	component := func(s string) func(*journal.Event) { return func(e *journal.Event) { e.Component = s } }
	candidate := func(s string) func(*journal.Event) { return with(func(d *journal.Confirm) { d.Candidate = s }) }
	requireFaults(t, "confirm", []fault{
		{"group missing", "subject", "the group is missing", group("")},
		{"group long", "subject", "the group has 129 characters", group(long)},
		{"group .", "subject", `the group "." alone`, group(".")},
		{"group ..", "subject", `the group ".." alone`, group("..")},
		{"group _", "subject", `the group "_" alone`, group("_")},
		{"group with a slash", "subject", "none of A-Z a-z 0-9 ._-", group("a/b")},
		{"group with a colon", "subject", "none of", group("a:b")},
		{"group with a space", "subject", "none of", group("a b")},
		{"group with a wildcard", "subject", "none of", group("*")},
		{"group with all below", "subject", "none of", group(">")},
		{"group beyond ASCII", "subject", "none of", group("gruppe-ä")},
		{"group with NUL", "subject", "none of", group("a\x00")},
		{"group not UTF-8", "subject", "none of", group("a\xff")},
		{"component long", "subject", "the component has 129 characters", component(long)},
		{"component .", "subject", `the component "." alone`, component(".")},
		{"component ..", "subject", `the component ".." alone`, component("..")},
		{"component _", "subject", `the component "_" alone`, component("_")},
		{"component with a space", "subject", "none of A-Z a-z 0-9 ._-:/%", component("a b")},
		{"component with a brace", "subject", "none of", component("{component}")},
		{"component missing", "subject", "the component is missing", component("")},
		{"candidate missing", "data.candidate", "is missing", candidate("")},
		{"candidate long", "data.candidate", "has 129 characters", candidate(long)},
		{"candidate .", "data.candidate", "alone is not a name", candidate(".")},
		{"candidate ..", "data.candidate", "alone is not a name", candidate("..")},
		{"candidate _", "data.candidate", "alone is not a name", candidate("_")},
		{"candidate with a tab", "data.candidate", "printable ASCII", candidate("a\tb")},
		{"candidate with DEL", "data.candidate", "printable ASCII", candidate("a\x7f")},
		{"candidate beyond ASCII", "data.candidate", "printable ASCII", candidate("jm-ä")},
	})
	for _, good := range []func(*journal.Event){
		group("a"), group("A.b_c-9"), group("__"), group("..."), group(long[1:]),
		component("a"), component("job-1/x:y%z.w"), component("%2E"), component("/"), component(long[1:]),
		candidate("http://[::1]:8290"), candidate(`~!@#$^&*()+={}|\;'"<>?, `), candidate(long[1:]),
	} {
		e := sample("confirm")
		good(&e)
		require.NoError(t, e.Validate())
	}
}

// Each kind is about a component, a group, either, or all groups.
func TestValidateScope(t *testing.T) {
	every(t, func(t *testing.T, e journal.Event) {
		switch kind := e.Data.Kind(); kind {
		case "takeover", "checkpoint":
			e.Group = "g"
			requireFault(t, e.Validate(), "subject", `is "_" for a `+kind)
			e.Group, e.Component = "_", "c"
			requireFault(t, e.Validate(), "subject", `is "_" for a `+kind)
		case "join", "leave", "health", "exclude", "include", "pause", "resume", "policy", "stale":
			e.Component = "c"
			requireFault(t, e.Validate(), "subject", "is <group> alone for a "+kind)
		case "alert", "clear":
			e.Component = ""
			require.NoError(t, e.Validate())
		default:
			e.Component = ""
			requireFault(t, e.Validate(), "subject", "is <group>/<component> for a "+kind)
		}
	})
	bare := journal.Event{ID: "1", Source: "observer/k8s", Group: "g", Data: &journal.Watch{Target: "cm", Gap: true}}
	require.NoError(t, bare.Validate(), "a bare gap may be about the whole group")
	bare.Component = "c"
	require.NoError(t, bare.Validate(), "or about one component")
}

// A basis is a projector's, and a projector's decision has one.
func TestValidateAuthor(t *testing.T) {
	decides := map[string]bool{"grant": true, "revoke": true, "include": true, "resume": true, "policy": true}
	every(t, func(t *testing.T, e journal.Event) {
		kind := e.Data.Kind()
		if e.Source != "projector/journald-0" {
			return
		}
		for _, source := range []string{"projector/", "projector", "candidate/jm-1", "operator/alice", "xprojector/a"} {
			e.Source = source
			requireFault(t, e.Validate(), "source", "is projector/<instance>, not ")
		}
		if !decides[kind] {
			return
		}
		switch d := e.Data.(type) {
		case *journal.Grant:
			d.Decision = nil
		case *journal.Revoke:
			d.Decision = nil
		case *journal.Include:
			d.Decision = nil
		case *journal.Resume:
			d.Decision = nil
		case *journal.Policy:
			d.Decision = nil
		}
		e.Source = "projector/journald-0"
		requireFault(t, e.Validate(), "data.basis", "is missing; a projector says what its "+kind+" was decided on")
		e.Source = "operator/alice"
		require.NoError(t, e.Validate())
	})
}

func TestValidateOnlyOperatorsWithdrawWithoutASession(t *testing.T) {
	e := sample("withdraw")
	e.Data.(*journal.Withdraw).Session = ""
	for _, source := range []string{"candidate/jm-1", "observer/k8s", "projector/journald-0", "operator", "operator/", "Operator/alice"} {
		e.Source = source
		requireFault(t, e.Validate(), "data.session", "is missing; only operators")
	}
	e.Source = "operator/alice"
	require.NoError(t, e.Validate())
}

const unsafe = 1 << 53

func TestValidateServices(t *testing.T) {
	requireFaults(t, "join", []fault{
		{"candidate", "data.candidate", "is missing", with(func(d *journal.Join) { d.Candidate = "" })},
		{"incarnation", "data.incarnation", "is missing", with(func(d *journal.Join) { d.Incarnation = "" })},
		{"address", "data.address", "has 65536 bytes", with(func(d *journal.Join) { d.Address = strings.Repeat("a", 65536) })},
		{"labels", "data.labels", "has 65537 bytes", with(func(d *journal.Join) {
			d.Labels = map[string]string{"a": strings.Repeat("a", 65536)}
		})},
		{"no components", "data.components", "is missing", with(func(d *journal.Join) { d.Components = nil })},
		{"component", "data.components[1]", "none of", with(func(d *journal.Join) { d.Components[1] = "a b" })},
		{"many components", "data.components", "has 1025 elements", with(func(d *journal.Join) {
			d.Components = strings.Split(strings.Repeat("a,", 1024)+"a", ",")
		})},
		{"high priority", "data.priority", "2^53-1", with(func(d *journal.Join) { d.Priority = unsafe })},
		{"low priority", "data.priority", "2^53-1", with(func(d *journal.Join) { d.Priority = -unsafe })},
	})
	requireFaults(t, "leave", []fault{
		{"candidate", "data.candidate", "is missing", with(func(d *journal.Leave) { d.Candidate = "" })},
		{"incarnation", "data.incarnation", "is missing", with(func(d *journal.Leave) { d.Incarnation = "" })},
		{"reason", "data.reason", "has 4097 characters", with(func(d *journal.Leave) { d.Reason = strings.Repeat("é", 4097) })},
		{"reason with NUL", "data.reason", "control character", with(func(d *journal.Leave) { d.Reason = "a\x00" })},
	})
	requireFaults(t, "grant", []fault{
		{"candidate", "data.candidate", "is missing", with(func(d *journal.Grant) { d.Candidate = "" })},
		{"session", "data.session", "is missing", with(func(d *journal.Grant) { d.Session = "" })},
		{"lock kind", "data.lock.kind", "is missing", with(func(d *journal.Grant) { d.Lock.Kind = "" })},
		{"lock revision", "data.lock.revision", "2^53-1", with(func(d *journal.Grant) { d.Lock.Revision = unsafe })},
	})
	requireFaults(t, "revoke", []fault{
		{"session", "data.session", "is missing", with(func(d *journal.Revoke) { d.Session = "" })},
		{"candidate", "data.candidate", "printable", with(func(d *journal.Revoke) { d.Candidate = "ä" })},
		{"reason", "data.reason", "is missing", with(func(d *journal.Revoke) { d.Reason = "" })},
	})
	requireFaults(t, "confirm", []fault{
		{"session", "data.session", "is missing", with(func(d *journal.Confirm) { d.Session = "" })},
		{"address", "data.address", "is missing", with(func(d *journal.Confirm) { d.Address = "" })},
		{"long address", "data.address", "has 65536 bytes", with(func(d *journal.Confirm) { d.Address = strings.Repeat("é", 32768) })},
		{"properties", "data.properties", "bytes; at most 65535", with(func(d *journal.Confirm) {
			d.Properties[strings.Repeat("a", 65536)] = ""
		})},
		{"attempt", "data.attempt", "counts from 1", with(func(d *journal.Confirm) { d.Attempt = 0 })},
		{"great attempt", "data.attempt", "2^53-1", with(func(d *journal.Confirm) { d.Attempt = unsafe })},
	})
	requireFaults(t, "ready", []fault{
		{"session", "data.session", "is missing", with(func(d *journal.Ready) { d.Session = "" })},
	})
	requireFaults(t, "release", []fault{
		{"session", "data.session", "is missing", with(func(d *journal.Release) { d.Session = "" })},
		{"reason", "data.reason", "is missing", with(func(d *journal.Release) { d.Reason = "" })},
	})
	requireFaults(t, "withdraw", []fault{
		{"session", "data.session", "printable", with(func(d *journal.Withdraw) { d.Session = "ä" })},
		{"actor", "data.actor", "control character", with(func(d *journal.Withdraw) { d.Actor = "a\nb" })},
		{"reason", "data.reason", "is missing", with(func(d *journal.Withdraw) { d.Reason = "" })},
	})
	requireFaults(t, "retry", []fault{
		{"session", "data.session", "is missing", with(func(d *journal.Retry) { d.Session = "" })},
		{"attempt", "data.attempt", "counts from 1", with(func(d *journal.Retry) { d.Attempt = 0 })},
		{"error", "data.error", "is missing", with(func(d *journal.Retry) { d.Error = "" })},
		{"after", "data.after", "-1s is negative", with(func(d *journal.Retry) { d.After = -policy.Duration(time.Second) })},
	})
	requireFaults(t, "health", []fault{
		{"candidate", "data.candidate", "is missing", with(func(d *journal.Health) { d.Candidate = "" })},
		{"incarnation", "data.incarnation", "is missing", with(func(d *journal.Health) { d.Incarnation = "" })},
		{"check", "data.check", "is missing", with(func(d *journal.Health) { d.Check = "" })},
		{"status", "data.status", `"Pass" is none of pass, fail`, with(func(d *journal.Health) { d.Status = "Pass" })},
		{"long status", "data.status", `…" is none of`, with(func(d *journal.Health) { d.Status = strings.Repeat("é", 9999) })},
		{"run", "data.run", "counts from 1", with(func(d *journal.Health) { d.Run = 0 })},
	})
}

func TestValidateObservers(t *testing.T) {
	requireFaults(t, "watch", []fault{
		{"target", "data.target", "is missing", with(func(d *journal.Watch) { d.Target = "" })},
		{"revision", "data.revision", "2^53-1", with(func(d *journal.Watch) { d.Revision = unsafe })},
		{"sequence", "data.sequence", "2^53-1", with(func(d *journal.Watch) { d.Sequence = unsafe })},
		{"holder", "data.holder", "4097 characters", with(func(d *journal.Watch) { d.Holder = strings.Repeat("a", 4097) })},
		{"participant", "data.participants[1]", "4097 characters", with(func(d *journal.Watch) {
			d.Participants[1] = strings.Repeat("a", 4097)
		})},
		{"participants", "data.participants", "has 1025 elements", with(func(d *journal.Watch) { d.Participants = make([]string, 1025) })},
		{"session", "data.entry.session", "4097 characters", with(func(d *journal.Watch) { d.Entry.Session = strings.Repeat("a", 4097) })},
		{"candidate", "data.entry.candidate", "4097 characters", with(func(d *journal.Watch) {
			d.Entry.Candidate = strings.Repeat("a", 4097)
		})},
		{"address", "data.entry.address", "has 65536 bytes", with(func(d *journal.Watch) { d.Entry.Address = strings.Repeat("a", 65536) })},
		{"properties", "data.entry.properties", "has 65537 bytes", with(func(d *journal.Watch) {
			d.Entry.Properties = map[string]string{"a": strings.Repeat("a", 65536)}
		})},
	})
	e := sample("watch")
	w := e.Data.(*journal.Watch)
	w.Entry, w.Holder = &journal.LeaderInfo{Session: "\x00", Candidate: "_"}, "ä\n"
	require.NoError(t, e.Validate(), "what others wrote is reported as it is")
}

func TestValidateOperators(t *testing.T) {
	requireFaults(t, "transfer", []fault{
		{"to", "data.to", "printable", with(func(d *journal.Transfer) { d.To = "ä" })},
		{"actor", "data.actor", "is missing", with(func(d *journal.Transfer) { d.Actor = "" })},
		{"reason", "data.reason", "is missing", with(func(d *journal.Transfer) { d.Reason = "" })},
	})
	requireFaults(t, "exclude", []fault{
		{"candidate", "data.candidate", "is missing", with(func(d *journal.Exclude) { d.Candidate = "" })},
		{"until", "data.until", "years 1970 and 9999", with(func(d *journal.Exclude) { d.Until = time.Unix(-1, 0).UTC() })},
		{"actor", "data.actor", "is missing", with(func(d *journal.Exclude) { d.Actor = "" })},
		{"reason", "data.reason", "is missing", with(func(d *journal.Exclude) { d.Reason = "" })},
	})
	requireFaults(t, "include", []fault{
		{"candidate", "data.candidate", "is missing", with(func(d *journal.Include) { d.Candidate = "" })},
		{"actor", "data.actor", "is missing", with(func(d *journal.Include) { d.Actor = "" })},
		{"reason", "data.reason", "is missing", with(func(d *journal.Include) { d.Reason = "" })},
	})
	requireFaults(t, "pause", []fault{
		{"until", "data.until", "years 1970 and 9999", with(func(d *journal.Pause) { d.Until = time.Unix(-1, 0).UTC() })},
		{"actor", "data.actor", "is missing", with(func(d *journal.Pause) { d.Actor = "" })},
		{"reason", "data.reason", "is missing", with(func(d *journal.Pause) { d.Reason = "" })},
	})
	requireFaults(t, "resume", []fault{
		{"actor", "data.actor", "has 129 characters", with(func(d *journal.Resume) { d.Actor = long })},
		{"reason", "data.reason", "is missing", with(func(d *journal.Resume) { d.Reason = "" })},
	})
	requireFaults(t, "policy", []fault{
		{"actor", "data.actor", "is missing", with(func(d *journal.Policy) { d.Actor = "" })},
		{"reason", "data.reason", "is missing", with(func(d *journal.Policy) { d.Reason = "" })},
		{"policy", "data.policy", `election: "x" is none of ["external" "managed"]; flapping: 0 is less than 1`, with(func(d *journal.Policy) {
			d.Policy.Election, d.Policy.Flapping = "x", 0
		})},
		{"many targets", "data.targets", "has 1025 elements", with(func(d *journal.Policy) {
			all := make([]journal.Target, 1025)
			for i := range all {
				all[i] = journal.Target{Name: "t" + strings.Repeat("x", i%100) + strings.Repeat("y", i/100), Kind: "zk"}
			}
			d.Targets = &all
		})},
		{"two of one name", "data.targets[1].name", `"cm" names two targets`, with(func(d *journal.Policy) { (*d.Targets)[1].Name = "cm" })},
		{"target name", "data.targets[0].name", "none of", with(func(d *journal.Policy) { (*d.Targets)[0].Name = "a/b" })},
		{"target kind", "data.targets[1].kind", "is missing", with(func(d *journal.Policy) { (*d.Targets)[1].Kind = "" })},
		{"target layout", "data.targets[1].layout", "129 characters", with(func(d *journal.Policy) { (*d.Targets)[1].Layout = long })},
		{"target namespace", "data.targets[1].namespace", "control", with(func(d *journal.Policy) { (*d.Targets)[1].Namespace = "\n" })},
		{"target object", "data.targets[1].object", "control", with(func(d *journal.Policy) { (*d.Targets)[1].Object = "\n" })},
		{"target path", "data.targets[1].path", "control", with(func(d *journal.Policy) { (*d.Targets)[1].Path = "\n" })},
		{"target component", "data.targets[0].components[0]", "alone", with(func(d *journal.Policy) { (*d.Targets)[0].Components[0] = "_" })},
		{"target guarded", "data.targets[0].guarded", "not both", with(func(d *journal.Policy) { (*d.Targets)[0].Observe = true })},
	})
}

func TestValidateDecisions(t *testing.T) {
	requireFaults(t, "takeover", []fault{
		{"instance", "data.instance", "is missing", with(func(d *journal.Takeover) { d.Instance = "" })},
	})
	requireFaults(t, "push", []fault{
		{"target", "data.target", "is missing", with(func(d *journal.Push) { d.Target = "" })},
		{"intent", "data.intent", "counts from 1", with(func(d *journal.Push) { d.Intent = 0 })},
		{"attempt", "data.attempt", "counts from 1", with(func(d *journal.Push) { d.Attempt = 0 })},
		{"outcome", "data.outcome", `"" is none of ok, superseded, failed, unknown`, with(func(d *journal.Push) { d.Outcome = "" })},
		{"revision", "data.revision", "2^53-1", with(func(d *journal.Push) { d.Revision = unsafe })},
		{"error", "data.error", "control", with(func(d *journal.Push) { d.Error = "\x1b[31m" })},
		{"retryAfter", "data.retryAfter", "negative", with(func(d *journal.Push) { d.RetryAfter = -1 })},
		{"projector", "data.projector", "counts from 1", with(func(d *journal.Push) { d.Projector = 0 })},
		{"basis", "data.basis", "2^53-1", with(func(d *journal.Push) { d.Basis = unsafe })},
		{"cause", "data.cause[1]", "counts from 1", with(func(d *journal.Push) { d.Cause[1] = 0 })},
		{"causes", "data.cause", "has 1025 elements", with(func(d *journal.Push) {
			d.Cause = make([]uint64, 1025)
			for i := range d.Cause {
				d.Cause[i] = uint64(i) + 1
			}
		})},
	})
	requireFaults(t, "yield", []fault{
		{"session", "data.session", "is missing", with(func(d *journal.Yield) { d.Session = "" })},
		{"reason", "data.reason", "is missing", with(func(d *journal.Yield) { d.Reason = "" })},
		{"to", "data.to", "printable", with(func(d *journal.Yield) { d.To = "ä" })},
	})
	requireFaults(t, "hold", []fault{
		{"session", "data.session", "is missing", with(func(d *journal.Hold) { d.Session = "" })},
		{"reason", "data.reason", "is missing", with(func(d *journal.Hold) { d.Reason = "" })},
	})
	requireFaults(t, "stale", []fault{
		{"candidate", "data.candidate", "is missing", with(func(d *journal.Stale) { d.Candidate = "" })},
		{"incarnation", "data.incarnation", "is missing", with(func(d *journal.Stale) { d.Incarnation = "" })},
		{"since", "data.since", "is missing", with(func(d *journal.Stale) { d.Since = time.Time{} })},
		{"long since", "data.since", "years 1970", with(func(d *journal.Stale) { d.Since = time.Unix(-1, 0) })},
	})
	requireFaults(t, "alert", []fault{
		{"name", "data.name", "is missing", with(func(d *journal.Alert) { d.Name = "" })},
		{"reason", "data.reason", "is missing", with(func(d *journal.Alert) { d.Reason = "" })},
	})
	requireFaults(t, "clear", []fault{
		{"name", "data.name", "is missing", with(func(d *journal.Clear) { d.Name = "" })},
		{"reason", "data.reason", "is missing", with(func(d *journal.Clear) { d.Reason = "" })},
	})
	requireFaults(t, "checkpoint", []fault{
		{"sequence", "data.sequence", "counts from 1", with(func(d *journal.Checkpoint) { d.Sequence = 0 })},
		{"viewHash", "data.viewHash", "is missing", with(func(d *journal.Checkpoint) { d.ViewHash = "" })},
		{"treeSize", "data.treeSize", "counts from 1", with(func(d *journal.Checkpoint) { d.TreeSize = 0 })},
		{"rootHash", "data.rootHash", "is missing", with(func(d *journal.Checkpoint) { d.RootHash = "" })},
	})
	for kind, drop := range map[string]func(*journal.Event){
		"grant":   with(func(d *journal.Grant) { d.Decision.Projector = 0 }),
		"revoke":  with(func(d *journal.Revoke) { d.Decision.Projector = 0 }),
		"include": with(func(d *journal.Include) { d.Decision.Projector = 0 }),
		"resume":  with(func(d *journal.Resume) { d.Decision.Projector = 0 }),
		"policy":  with(func(d *journal.Policy) { d.Decision.Projector = 0 }),
		"yield":   with(func(d *journal.Yield) { d.Projector = 0 }),
		"hold":    with(func(d *journal.Hold) { d.Projector = 0 }),
		"stale":   with(func(d *journal.Stale) { d.Projector = 0 }),
		"alert":   with(func(d *journal.Alert) { d.Projector = 0 }),
		"clear":   with(func(d *journal.Clear) { d.Projector = 0 }),
	} {
		requireFaults(t, kind, []fault{{"projector", "data.projector", "counts from 1", drop}})
	}
}

// Everything that is wrong is said at once.
func TestValidateNamesAllFaults(t *testing.T) {
	e := journal.Event{Source: "candidate/a b", Component: "c", Data: &journal.Confirm{}}
	var fields []string
	for _, f := range faults(e.Validate()) {
		fields = append(fields, f[0])
	}
	require.Equal(t, []string{"id", "source", "subject", "data.session", "data.candidate", "data.address", "data.attempt"}, fields)
}

func TestValidateNamesNoMoreThanAnybodyReads(t *testing.T) {
	e := sample("join")
	e.Data.(*journal.Join).Components = make([]string, 1024)
	require.Len(t, faults(e.Validate()), 32)

	e = sample("policy")
	patterns := map[string]string{}
	for i := range 1000 {
		patterns[strings.Repeat("x", i)] = "keep"
	}
	e.Data.(*journal.Policy).Policy.OnErase.Patterns = patterns
	all := faults(e.Validate())
	require.Len(t, all, 1)
	require.Equal(t, "data.policy", all[0][0])
	require.Less(t, len(all[0][1]), 1100)
}

func TestTargetValidate(t *testing.T) {
	good := journal.Target{Name: "cm", Kind: "k8s/configmap"}
	require.NoError(t, good.Validate())
	bad := journal.Target{Name: "c m", Components: []string{"", "a b"}, Guarded: true, Observe: true}
	var fields []string
	for _, f := range faults(bad.Validate()) {
		fields = append(fields, f[0])
	}
	require.Equal(t, []string{"name", "kind", "components[0]", "components[1]", "guarded"}, fields)
}

func TestTargetShows(t *testing.T) {
	all, some := journal.Target{}, journal.Target{Components: []string{"a", "b"}}
	require.True(t, all.Shows("a"))
	require.True(t, some.Shows("b"))
	require.False(t, some.Shows("c"))
}
