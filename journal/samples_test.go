package journal_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

const (
	session     = "01234567-89ab-cdef-fedc-ba9876543210"
	incarnation = "2026-08-01T10:00:00Z/17"
)

func at(minute int) time.Time { return time.Date(2026, 8, 1, 10, minute, 0, 0, time.UTC) }

func order() journal.Order { return journal.Order{Actor: "alice", Reason: "rolling the node"} }

func decided() *journal.Decision {
	return &journal.Decision{Projector: 7, Basis: 40, Cause: []uint64{39, 40}}
}

func info() *journal.LeaderInfo {
	return &journal.LeaderInfo{
		Session: session, Candidate: "jm-1", Address: "http://10.0.0.1:8081", Properties: map[string]string{"zone": "a", "rack": "7"},
	}
}

// full is a policy whose every field differs from the default.
func full() policy.Policy {
	second := policy.Duration(time.Second)
	return policy.Policy{
		Election: policy.Managed, Authority: policy.Backend, OnRevoke: policy.Clear,
		Health: policy.Health{
			Period: 10 * second, FailureThreshold: 2, SuccessThreshold: 4, StaleAfter: 31 * second,
			HoldDown: 61 * second, MaxYields: 9, Window: 300 * second, SilentLeader: policy.Yield,
		},
		ConfirmWithin: 20 * second, LeaderlessAfter: 21 * second, Flapping: 6,
		OnErase:         policy.OnErase{Default: policy.Alert, Patterns: map[string]string{"rest*": policy.Restore}},
		GraceAfterErase: 6 * second,
		Lease:           policy.Lease{Duration: 16 * second, RenewEvery: 4 * second, ReleaseWithin: 17 * second},
	}
}

func targets() *[]journal.Target {
	return &[]journal.Target{
		{
			Name: "cm", Kind: "k8s/configmap", Layout: "flink", Namespace: "flink", Object: "leaders",
			Components: []string{"restserver"}, Guarded: true,
		},
		{Name: "zk", Kind: "zk", Layout: "latch", Path: "/leaders/{component}", Observe: true},
	}
}

// services are one event of each kind that services and observers send, with every member that the kind has.
func services() []journal.Data {
	return []journal.Data{
		&journal.Join{
			Candidate: "jm-1", Incarnation: incarnation, Components: []string{"restserver", "job-1/a:b%c"},
			Address: "http://10.0.0.1:8081", Priority: -3, Labels: map[string]string{"zone": "a"},
		},
		&journal.Leave{Candidate: "jm-1", Incarnation: incarnation, Reason: "shutdown"},
		&journal.Grant{Candidate: "jm-1", Session: session, Lock: &journal.Lock{Kind: "k8s/configmap", Revision: 77}, Decision: decided()},
		&journal.Revoke{Session: session, Candidate: "jm-1", Reason: "lost", Decision: decided()},
		&journal.Confirm{
			Session: session, Candidate: "jm-1", Address: "http://10.0.0.1:8081", Properties: map[string]string{"b": "2", "a": "1"},
			Attempt: 1785578400000,
		},
		&journal.Ready{Session: session, Ready: true, Reason: "fully leader"},
		&journal.Release{Session: session, Reason: "stopped"},
		&journal.Withdraw{Session: session, Actor: "alice", Reason: "moved away"},
		&journal.Retry{Session: session, Attempt: 2, Error: "503 Service Unavailable", After: policy.Duration(1500 * time.Millisecond)},
		&journal.Health{Candidate: "jm-1", Incarnation: incarnation, Check: "disk", Status: "fail", Reason: "no space left", Run: 12},
		&journal.Watch{
			Target: "cm", Revision: 1234, Sequence: 41, Entry: info(), Holder: "jm-1", Participants: []string{"jm-1", "jm-2"}, Gap: true,
		},
	}
}

func orders() []journal.Data {
	return []journal.Data{
		&journal.Transfer{To: "jm-2", Force: true, Order: order()},
		&journal.Exclude{Candidate: "jm-2", Until: at(30), Order: order()},
		&journal.Include{Candidate: "jm-2", Order: order(), Decision: decided()},
		&journal.Pause{Until: at(45), Order: order()},
		&journal.Resume{Order: order(), Decision: decided()},
		&journal.Policy{Policy: full(), Targets: targets(), Order: order(), Decision: decided()},
	}
}

func decisions() []journal.Data {
	return []journal.Data{
		&journal.Takeover{Instance: "journald-0"},
		&journal.Push{
			Target: "cm", Intent: 41, Attempt: 3, Outcome: journal.Failed, Revision: 1234, Error: "409 Conflict", Permanent: true,
			RetryAfter: policy.Duration(4 * time.Second), Decision: *decided(),
		},
		&journal.Yield{Session: session, Reason: "disk: no space left", To: "jm-2", Decision: *decided()},
		&journal.Hold{Session: session, Reason: "nobody fit", Decision: *decided()},
		&journal.Stale{Candidate: "jm-1", Incarnation: incarnation, Since: at(1), Decision: *decided()},
		&journal.Alert{Name: "NoLeader", Reason: "for 30s", Decision: *decided()},
		&journal.Clear{Name: "NoLeader", Reason: "jm-2 leads", Decision: *decided()},
		&journal.Checkpoint{Sequence: 1000, ViewHash: "5feceb66ffc86f38", TreeSize: 1000, RootHash: "6b86b273ff34fce1"},
	}
}

// sample is an event of the kind as it may be stored, with every member that the kind has.
func sample(kind string) journal.Event {
	for _, d := range append(append(services(), orders()...), decisions()...) {
		if d.Kind() == kind {
			return sampleOf(d)
		}
	}
	panic("no sample of kind " + kind)
}

func sampleOf(d journal.Data) journal.Event {
	e := journal.Event{ID: "01978d60-0d1c-7a52-9f0e-0d3c5a3d5b11", Source: "projector/journald-0", Group: "flink-1", Time: at(0), Data: d}
	switch d.(type) {
	case *journal.Join, *journal.Leave, *journal.Ready, *journal.Release, *journal.Retry, *journal.Health, *journal.Confirm, *journal.Withdraw:
		e.Source = "candidate/jm-1"
	case *journal.Watch:
		e.Source = "observer/k8s"
	case *journal.Transfer, *journal.Exclude, *journal.Pause:
		e.Source = "operator/alice"
	}
	switch d.(type) {
	case *journal.Takeover, *journal.Checkpoint:
		e.Group = "_"
	case *journal.Join, *journal.Leave, *journal.Health, *journal.Exclude, *journal.Include, *journal.Pause, *journal.Resume,
		*journal.Policy, *journal.Stale:
	default:
		e.Component = "restserver"
	}
	return e
}

// every runs a test once for each kind.
func every(t *testing.T, test func(*testing.T, journal.Event)) {
	for _, kind := range journal.Kinds() {
		t.Run(kind, func(t *testing.T) { test(t, sample(kind)) })
	}
}

func TestSamplesLeaveNothingOut(t *testing.T) {
	every(t, func(t *testing.T, e journal.Event) {
		require.NoError(t, e.Validate())
		requireFull(t, e.Data.Kind(), reflect.ValueOf(e.Data).Elem())
	})
}

// requireFull fails for an exported field without a value.
func requireFull(t *testing.T, at string, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		require.False(t, v.Field(i).IsZero(), "the sample has no %s in its %s", f.Name, at)
		inner := reflect.Indirect(v.Field(i))
		if inner.Kind() == reflect.Struct && inner.Type() != reflect.TypeFor[time.Time]() {
			requireFull(t, f.Name, inner)
		}
	}
}
