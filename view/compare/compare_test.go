package compare_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
	"github.com/leadership-journal/journald/view/compare"
)

func leader(n string) *journal.LeaderInfo {
	return &journal.LeaderInfo{Session: "S" + n, Candidate: "jm-" + n, Address: "http://jm-" + n}
}

// bare is a leader as a layout shows it that has no place for the candidate.
func bare(n string) *journal.LeaderInfo {
	l := leader(n)
	l.Candidate = ""
	return l
}

// newest is the view's sequence.
const newest = 20

func confirmed() *view.Intent {
	return &view.Intent{Sequence: 12, Epoch: 11, Leader: leader("2"), Before: leader("1"), Replaced: 8}
}

func withdrawn() *view.Intent {
	return &view.Intent{Sequence: 12, Epoch: 7, Before: leader("1"), Replaced: 8}
}

func TestTarget(t *testing.T) {
	own := journal.Target{Name: "t", Kind: "k8s/configmap", Layout: "flink"}
	guarded, observed := own, own
	guarded.Guarded, observed.Observe = true, true
	shown := func(entry *journal.LeaderInfo, sequence uint64) compare.Shown {
		return compare.Shown{Entry: entry, Sequence: sequence}
	}
	for name, c := range map[string]struct {
		spec   journal.Target
		intent *view.Intent
		known  *view.Target
		shown  compare.Shown
		state  string
		reason string
	}{
		"the intent":                             {own, confirmed(), nil, shown(leader("2"), 12), compare.Same, ""},
		"the intent, without its candidate":      {own, confirmed(), nil, shown(bare("2"), 12), compare.Same, ""},
		"the intent, beside a newer one's":       {own, confirmed(), nil, shown(leader("2"), 15), compare.Same, ""},
		"the intent, with the newest sequence":   {own, confirmed(), nil, shown(leader("2"), newest), compare.Same, ""},
		"the intent, unfenced":                   {own, confirmed(), nil, shown(leader("2"), 0), compare.Differs, compare.LowerSequence},
		"the intent, with the sequence before":   {own, confirmed(), nil, shown(leader("2"), 8), compare.Differs, compare.LowerSequence},
		"the intent, from another journal":       {own, confirmed(), nil, shown(leader("2"), newest+1), compare.Differs, compare.Ahead},
		"nobody":                                 {own, confirmed(), nil, shown(nil, 12), compare.Differs, compare.Missing},
		"no object":                              {own, confirmed(), nil, shown(nil, 0), compare.Differs, compare.Missing},
		"the leader before":                      {own, confirmed(), nil, shown(bare("1"), 8), compare.Differs, compare.Outdated},
		"the leader before that":                 {own, confirmed(), &view.Target{Shows: leader("0")}, shown(leader("0"), 4), compare.Differs, compare.Outdated},
		"another leader":                         {own, confirmed(), &view.Target{}, shown(leader("9"), 12), compare.Differs, compare.OtherLeader},
		"another candidate at the same address":  {own, confirmed(), nil, shown(&journal.LeaderInfo{Session: "S2", Candidate: "x", Address: "http://jm-2"}, 12), compare.Differs, compare.OtherLeader},
		"another leader, from another journal":   {own, confirmed(), nil, shown(leader("9"), newest+1), compare.Differs, compare.Ahead},
		"nobody, while nobody confirmed":         {own, nil, nil, shown(nil, 0), compare.Same, ""},
		"nobody, beside others":                  {own, nil, nil, shown(nil, 15), compare.Same, ""},
		"somebody, while nobody confirmed":       {own, nil, nil, shown(leader("9"), 0), compare.Differs, compare.Foreign},
		"nobody, after a withdrawal":             {own, withdrawn(), nil, shown(nil, 12), compare.Same, ""},
		"no object, after a withdrawal":          {own, withdrawn(), nil, shown(nil, 0), compare.Same, ""},
		"nobody, from another journal":           {own, withdrawn(), nil, shown(nil, newest+1), compare.Differs, compare.Ahead},
		"what was withdrawn":                     {own, withdrawn(), nil, shown(leader("1"), 8), compare.Differs, compare.Outdated},
		"somebody else, after a withdrawal":      {own, withdrawn(), nil, shown(leader("9"), 12), compare.Differs, compare.Foreign},
		"a guarded object's own":                 {guarded, confirmed(), nil, shown(bare("2"), 0), compare.Same, ""},
		"a guarded object's other":               {guarded, confirmed(), nil, shown(leader("9"), 0), compare.Differs, compare.OtherLeader},
		"an erasure":                             {guarded, confirmed(), nil, shown(nil, 0), compare.Differs, compare.Missing},
		"a fence on a guarded object":            {guarded, confirmed(), nil, shown(leader("2"), newest+1), compare.Same, ""},
		"a guarded object that is empty still":   {guarded, nil, nil, shown(nil, 0), compare.Same, ""},
		"a guarded object's, not adopted yet":    {guarded, nil, nil, shown(leader("9"), 0), compare.Differs, compare.Foreign},
		"an election of others":                  {observed, confirmed(), nil, shown(leader("9"), 0), compare.Observed, ""},
		"an election of others that is empty":    {observed, confirmed(), nil, shown(nil, 0), compare.Observed, ""},
		"an election of others, with nothing to": {observed, nil, nil, shown(leader("9"), 0), compare.Observed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := &view.Group{Policy: policy.Default()}
			if c.spec.Guarded {
				g.Policy.Authority = policy.Backend
			}
			component := &view.Component{Name: "rest", Intent: c.intent, Targets: map[string]*view.Target{"t": c.known}}
			f := compare.Target(newest, g, component, &c.spec, c.shown)
			require.Equal(t, c.state, f.State)
			require.Equal(t, c.reason, f.Reason)
			if c.intent != nil && c.state != compare.Observed {
				require.Equal(t, c.intent.Leader, f.Leader)
			}
		})
	}
}

// TestAGuardedObjectIsOnlyWatchedUnderTheJournalsAuthority is what the view does with it then.
func TestAGuardedObjectIsOnlyWatchedUnderTheJournalsAuthority(t *testing.T) {
	g := &view.Group{Policy: policy.Default()}
	f := compare.Target(newest, g, &view.Component{Intent: confirmed()}, &journal.Target{Name: "t", Guarded: true}, compare.Shown{})
	require.Equal(t, compare.Finding{State: compare.Observed}, f)
}

func TestBuiltIn(t *testing.T) {
	granted := &view.Component{Shown: 14}
	again := &view.Component{Shown: 14, Intent: confirmed()} // a term that began after the intent
	for name, c := range map[string]struct {
		component *view.Component
		shown     compare.Shown
		reason    string
	}{
		"as it must be":            {again, compare.Shown{Entry: leader("2"), Sequence: 14}, ""},
		"before the new term":      {again, compare.Shown{Entry: leader("2"), Sequence: 12}, compare.LowerSequence},
		"the leader before":        {again, compare.Shown{Entry: leader("1"), Sequence: 8}, compare.Outdated},
		"deleted":                  {again, compare.Shown{}, compare.Missing},
		"another's":                {again, compare.Shown{Entry: leader("9"), Sequence: 14}, compare.OtherLeader},
		"another journal's":        {again, compare.Shown{Entry: leader("2"), Sequence: newest + 1}, compare.Ahead},
		"nobody, in a term":        {granted, compare.Shown{Sequence: 14}, ""},
		"nobody, before the term":  {granted, compare.Shown{}, compare.LowerSequence},
		"nothing that ever was":    {&view.Component{}, compare.Shown{}, ""},
		"somebody, who never was":  {&view.Component{}, compare.Shown{Entry: leader("9")}, compare.Foreign},
		"somebody, not confirmed":  {granted, compare.Shown{Entry: leader("9"), Sequence: 14}, compare.Foreign},
		"what a withdrawal leaves": {&view.Component{Shown: 12, Intent: withdrawn()}, compare.Shown{Sequence: 12}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := compare.BuiltIn(newest, c.component, c.shown)
			require.Equal(t, c.reason, f.Reason)
			require.Equal(t, c.reason == "", f.State == compare.Same)
			require.Equal(t, c.component.Shown, f.Sequence)
		})
	}
}
