package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// demoTimeout bounds the demo.
const demoTimeout = 30 * time.Second

func demoComponents() []string { return []string{"dispatcher", "restserver"} }

// play is one showing of the incident: the same events go to the unfenced rule and to journald.
type play struct {
	*process
	*stage
	naive   *unfenced
	session string
	events  int
	attempt uint64
	step    int
}

func (p *process) demoFlink(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	began := time.Now()
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	d := &play{process: p, stage: s, naive: newUnfenced()}
	fmt.Fprint(p.out, "FLINK-40114: a change event arrives while a new session has not confirmed yet.\n"+
		"Left: a handler without a fence. Right: journald, on a real journal.\n\n"+
		"                what clients find: unfenced    journald\n")
	for _, act := range []func(context.Context) error{d.begin, d.confirmPending, d.grantPending, d.sum} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.out, "\nIt took %s. Next: journald serve, or journald test a scenario of your own.\n", span(time.Since(began)))
	return nil
}

func (d *play) begin(ctx context.Context) error {
	if err := d.grant(ctx, "S1"); err != nil {
		return err
	}
	for _, c := range demoComponents() {
		d.naive.store[c] = d.leader(c)
		d.naive.confirmed[c] = d.leader(c)
		if err := d.confirm(ctx, c); err != nil {
			return err
		}
	}
	return d.show("jm-1 wins the lock; both components confirm session S1.", nil)
}

// confirmPending is the first window: the grant is processed, one confirmation is not.
func (d *play) confirmPending(ctx context.Context) error {
	fmt.Fprintln(d.out, "\nWindow 1: confirm pending")
	if err := d.revokeAll(ctx); err != nil {
		return err
	}
	if err := d.grant(ctx, "S2"); err != nil {
		return err
	}
	if err := d.show("jm-1 loses the lock and wins it again: session S2.", nil); err != nil {
		return err
	}
	d.naive.confirm("dispatcher", d.leader("dispatcher"), demoComponents())
	if err := d.confirm(ctx, "dispatcher"); err != nil {
		return err
	}
	if err := d.changed(ctx); err != nil {
		return err
	}
	err := d.show("The dispatcher confirms. Its write is a change event, which still carries\n     the restserver's S1.",
		[]string{"restserver"})
	if err != nil {
		return err
	}
	if err := d.retry(ctx, "restserver"); err != nil {
		return err
	}
	err = d.show("The restserver's confirmation fails: the API server says 503. Unfenced,\n"+
		"     nobody tries again; here the failure is in the journal.", []string{"restserver"})
	if err != nil {
		return err
	}
	if err := d.confirm(ctx, "restserver"); err != nil {
		return err
	}
	return d.show("It is tried again and lands.", []string{"restserver"})
}

// grantPending is the second window: the lock is won, the grant still queued.
func (d *play) grantPending(ctx context.Context) error {
	fmt.Fprintln(d.out, "\nWindow 2: grant pending")
	d.naive.confirm("restserver", d.leader("restserver"), demoComponents()) // as after a restart of the process
	if err := d.revokeAll(ctx); err != nil {
		return err
	}
	if err := d.changed(ctx); err != nil {
		return err
	}
	d.naive.changed(demoComponents())
	err := d.show("After a restart jm-1 wins the lock anew. Writing the lock is a change\n     event, and comes before the grant.",
		demoComponents())
	if err != nil {
		return err
	}
	if err := d.grant(ctx, "S3"); err != nil {
		return err
	}
	for _, c := range demoComponents() {
		if err := d.confirm(ctx, c); err != nil {
			return err
		}
		d.naive.confirm(c, d.leader(c), demoComponents())
	}
	return d.show("Both components confirm session S3.", nil)
}

// sum says what came of it, and fails if that is not what the demo claims.
func (d *play) sum(ctx context.Context) error {
	last, err := d.log.Last(ctx)
	if err != nil {
		return fmt.Errorf("read the demo's journal: %w", err)
	}
	fmt.Fprintf(d.out, "\nUnfenced: %d entries erased. TaskManagers disconnect at each, and look in vain\n"+
		"until the next confirmation, which may never come. journald: %d erased.\n"+
		"An observation is never an intent, and a revoke leaves the address in place\n"+
		"until the next confirmation replaces it: %d records say who led when, and why.\n", d.naive.erased, d.cm.erased, last)
	if d.naive.erased == 0 || d.cm.erased != 0 {
		return no(errors.New("the outcome is not the one that this demo claims"))
	}
	return nil
}

// show prints what both show after a step. gone are the components that the unfenced rule has lost by then; journald
// must show every one.
func (d *play) show(what string, gone []string) error {
	d.step++
	fmt.Fprintf(d.out, "%3d. %s\n", d.step, what)
	for _, c := range demoComponents() {
		left, right := word(d.naive.store[c]), word(d.cm.shows(c))
		fmt.Fprintf(d.out, "     %-27s%-18s%s\n", c, left, right)
		if lost := d.naive.store[c] == nil; lost != slices.Contains(gone, c) || d.cm.shows(c) == nil {
			return no(fmt.Errorf("the outcome of step %d is not the one that this demo claims", d.step))
		}
	}
	return nil
}

func word(l *journal.LeaderInfo) string {
	if l == nil {
		return "ERASED"
	}
	return l.Session + " " + l.Address
}

func (d *play) leader(component string) *journal.LeaderInfo {
	ports := map[string]string{"dispatcher": "6123", "restserver": "8081"}
	return &journal.LeaderInfo{Session: d.session, Candidate: "jm-1", Address: "jm-1:" + ports[component]}
}

func (d *play) grant(ctx context.Context, session string) error {
	d.session = session
	for _, c := range demoComponents() {
		if err := d.say(ctx, c, &journal.Grant{Candidate: "jm-1", Session: session}); err != nil {
			return err
		}
	}
	return nil
}

func (d *play) revokeAll(ctx context.Context) error {
	for _, c := range demoComponents() {
		d.naive.revoke(c)
		if err := d.say(ctx, c, &journal.Revoke{Session: d.session, Reason: "lost"}); err != nil {
			return err
		}
	}
	return nil
}

func (d *play) retry(ctx context.Context, component string) error {
	d.attempt++
	return d.say(ctx, component, &journal.Retry{
		Session: d.session, Attempt: d.attempt, Error: "503 Service Unavailable", After: policy.Duration(time.Second),
	})
}

// confirm waits until the target shows what was confirmed.
func (d *play) confirm(ctx context.Context, component string) error {
	d.attempt++
	l := d.leader(component)
	confirm := &journal.Confirm{Session: l.Session, Candidate: l.Candidate, Address: l.Address, Attempt: d.attempt}
	if err := d.say(ctx, component, confirm); err != nil {
		return err
	}
	return d.until(ctx, func() (shown bool) {
		d.projector.Read(func(v *view.View) {
			c := v.Group(demoGroup).Components[component]
			t := c.Targets["cm"]
			shown = t != nil && t.State == view.InSync && t.Pushed == c.Intent.Sequence
		})
		return shown
	})
}

// changed has every watcher told of the object again, and waits until journald has recorded what it saw.
func (d *play) changed(ctx context.Context) error {
	revision, err := d.cm.touch(ctx, demoComponents())
	if err != nil {
		return err
	}
	return d.until(ctx, func() (seen bool) {
		d.projector.Read(func(v *view.View) {
			seen = true
			for _, c := range demoComponents() {
				t := v.Group(demoGroup).Components[c].Targets["cm"]
				seen = seen && t != nil && t.Revision >= revision
			}
		})
		return seen
	})
}

// say appends an event of the demo's one process and waits until it is folded.
func (d *play) say(ctx context.Context, component string, data journal.Data) error {
	d.events++
	event := journal.Event{
		ID: fmt.Sprintf("demo-%d", d.events), Source: "candidate/jm-1", Group: demoGroup, Component: component,
		Time: time.Now().UTC(), Data: data,
	}
	if err := event.Validate(); err != nil {
		return fmt.Errorf("the demo's event is not valid: %w", err)
	}
	acks, err := d.log.Append(ctx, event)
	if err != nil {
		return err
	}
	return d.projector.Wait(ctx, acks[0].Sequence)
}
