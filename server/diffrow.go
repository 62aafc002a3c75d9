package server

import (
	"cmp"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/view"
	"github.com/leadership-journal/journald/view/compare"
)

// diffRow is what was read of a subject for one component, beside what the view wants; false where the view has no
// such target any more.
func diffRow(v *view.View, one *subject, r *projector.Reading) (row api.DiffRow, ok bool) {
	g := v.Group(one.group)
	c := g.Components[r.Component]
	if c == nil {
		return row, false
	}
	shown := compare.Shown{Entry: r.Entry, Sequence: r.Sequence}
	row = api.DiffRow{Group: g.Name, Component: c.Name, Target: one.target}
	var f compare.Finding
	if one.target == "" {
		row.Target, row.Kind = projector.BuiltIn, api.BuiltIn
		f = compare.BuiltIn(v.Sequence(), c, shown)
	} else {
		spec := g.TargetSpec(one.target)
		if spec == nil {
			return row, false
		}
		row.Kind, row.Guarded = spec.Kind, spec.Guarded
		f = compare.Target(v.Sequence(), g, c, spec, shown)
		row.Push = pushState(c.Targets[spec.Name], f.State)
	}
	row.State, row.Reason = f.State, f.Reason
	if f.State != compare.Observed {
		row.Should = &api.Standing{Sequence: f.Sequence, Leader: f.Leader}
	}
	if r.Error != "" {
		row.State, row.Reason, row.Error = api.Unreachable, "", r.Error
		return row, true
	}
	row.Shows = &api.Standing{
		Sequence: r.Sequence, Revision: r.Revision, Leader: r.Entry, Holder: r.Holder, Participants: r.Participants,
	}
	return row, true
}

// pushState is what is known of writing a target, nil where nothing is kept there or was ever to be.
func pushState(t *view.Target, found string) *api.PushState {
	if t == nil || found == compare.Observed {
		return nil
	}
	return &api.PushState{
		State: cmp.Or(t.State, view.Pending), Due: t.Due, OutSince: t.OutSince, Attempts: t.Attempts, Error: t.Error,
		Permanent: t.Permanent, FailedAt: t.FailedAt, RetryAfter: t.RetryAfter, Drifts: t.DriftTotal,
	}
}
