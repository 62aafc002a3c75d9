package journal

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/policy"
)

// This file keeps what v1 does not know, at any depth, and notices what must be there. The types that events share
// with files and adapters keep nothing by themselves, so that a file's reader can refuse what it does not know: the
// event around them does it.

// extra keeps the members of an object that v1 does not know. A pointer, since most objects have none.
type extra struct {
	Unknown *jsontext.Value `json:",embed"`
}

// stated is a member that must be there, though it may be null.
type stated[T any] struct {
	value T
	kind  jsontext.Kind // 0: not there
}

// UnmarshalJSONFrom reads the value, and notes that it was there.
func (s *stated[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	s.kind = dec.PeekKind()
	return json.UnmarshalDecode(dec, &s.value)
}

// MarshalJSONTo writes the value.
func (s *stated[T]) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, &s.value)
}

// UnmarshalJSONFrom refuses a ready that says neither true nor false.
func (d *Ready) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Ready
	w := struct {
		*plain
		Ready *bool `json:"ready"`
	}{plain: (*plain)(d)}
	if err := json.UnmarshalDecode(dec, &w); err != nil {
		return err
	}
	if w.Ready == nil {
		return &FieldError{"ready", "is missing; it is true or false"}
	}
	d.Ready = *w.Ready
	return nil
}

type (
	plainGrant Grant
	lockMember struct {
		Lock
		extra
	}
	grantData struct {
		*plainGrant
		Lock *lockMember `json:"lock,omitzero"`
	}
)

func (d *Grant) written() any {
	w := &grantData{plainGrant: (*plainGrant)(d)}
	if d.Lock != nil {
		w.Lock = &lockMember{*d.Lock, d.lock}
	}
	return w
}

// MarshalJSONTo writes the lock with what was kept of it.
func (d *Grant) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, d.written())
}

// UnmarshalJSONFrom keeps what it does not know of the lock.
func (d *Grant) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	w := grantData{plainGrant: (*plainGrant)(d)}
	if err := json.UnmarshalDecode(dec, &w); err != nil {
		return err
	}
	if w.Lock != nil {
		d.Lock, d.lock = &w.Lock.Lock, w.Lock.extra
	}
	return nil
}

type (
	plainWatch  Watch
	entryMember struct {
		LeaderInfo
		extra
	}
	watchData struct {
		*plainWatch
		Entry stated[*entryMember] `json:"entry"`
	}
)

func (d *Watch) written() any {
	w := &watchData{plainWatch: (*plainWatch)(d)}
	if d.Entry != nil {
		w.Entry.value = &entryMember{*d.Entry, d.entry}
	}
	return w
}

// MarshalJSONTo writes the entry with what was kept of it.
func (d *Watch) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, d.written())
}

// UnmarshalJSONFrom refuses a watch that does not say what it saw, since nothing there would be taken for an erasure.
func (d *Watch) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	w := watchData{plainWatch: (*plainWatch)(d)}
	if err := json.UnmarshalDecode(dec, &w); err != nil {
		return err
	}
	if w.Entry.kind == 0 && !d.Gap {
		return &FieldError{"entry", "is missing; it is what the target shows, or null for nothing"}
	}
	if e := w.Entry.value; e != nil {
		d.Entry, d.entry = &e.LeaderInfo, e.extra
	}
	return nil
}

type (
	plainPolicy  Policy
	healthMember struct {
		policy.Health
		extra
	}
	leaseMember struct {
		policy.Lease
		extra
	}
	policyMember struct {
		policy.Policy
		Health healthMember `json:"health"`
		Lease  leaseMember  `json:"lease"`
		extra
	}
	targetMember struct {
		Target
		extra
	}
	policyData struct {
		*plainPolicy
		Policy  stated[policyMember] `json:"policy"`
		Targets *[]targetMember      `json:"targets,omitzero"`
	}
)

// policyExtras are the members inside a policy event's policy and targets that v1 does not know.
type policyExtras struct {
	policy, health, lease extra
	targets               []extra // of each target; nil: none anywhere
}

func (d *Policy) written() any { return d.data() }

func (d *Policy) data() *policyData {
	w := &policyData{plainPolicy: (*plainPolicy)(d)}
	w.Policy.value = policyMember{
		Policy: d.Policy,
		Health: healthMember{d.Policy.Health, d.inner.health},
		Lease:  leaseMember{d.Policy.Lease, d.inner.lease},
		extra:  d.inner.policy,
	}
	if d.Targets == nil {
		return w
	}
	all := make([]targetMember, len(*d.Targets))
	for i, t := range *d.Targets {
		all[i].Target = t
		if i < len(d.inner.targets) {
			all[i].extra = d.inner.targets[i]
		}
	}
	w.Targets = &all
	return w
}

// MarshalJSONTo writes the policy as a whole, and what was kept of it.
func (d *Policy) MarshalJSONTo(enc *jsontext.Encoder) error { return json.MarshalEncode(enc, d.data()) }

// UnmarshalJSONFrom reads what the event says; what it leaves out of the policy stays as it is.
func (d *Policy) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	w := d.data()
	if err := json.UnmarshalDecode(dec, w); err != nil {
		return err
	}
	if k := w.Policy.kind; k == 0 || k == jsontext.KindNull {
		return &FieldError{"policy", "is missing; it is the group's whole policy, and what it leaves out is as built in"}
	}
	p := &w.Policy.value
	d.Policy, d.inner = p.Policy, policyExtras{policy: p.extra, health: p.Health.extra, lease: p.Lease.extra}
	d.Policy.Health, d.Policy.Lease = p.Health.Health, p.Lease.Lease
	if d.Targets = nil; w.Targets != nil {
		d.setTargets(*w.Targets)
	}
	return nil
}

func (d *Policy) setTargets(all []targetMember) {
	targets, extras, some := make([]Target, len(all)), make([]extra, len(all)), false
	for i := range all {
		targets[i], extras[i] = all[i].Target, all[i].extra
		some = some || extras[i].Unknown != nil
	}
	d.Targets = &targets
	if some {
		d.inner.targets = extras
	}
}
