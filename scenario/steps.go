package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/internal/nearest"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// do runs one step that is no expectation.
func (w *world) do(s step) error {
	if slices.Contains(eventVerbs(), s.verb) {
		if err := w.say(s); err != nil {
			return err
		}
		return w.settle()
	}
	if err := w.change(s); err != nil {
		return err
	}
	return w.settle()
}

func (w *world) change(s step) error {
	switch s.verb {
	case "advance":
		d, err := duration(s.value)
		if err != nil {
			return err
		}
		return w.advance(d)
	case "fail":
		return w.fail(s.value)
	case "write":
		return w.write(s.value)
	case "append":
		text, err := word(s.value)
		if err != nil {
			return err
		}
		w.spoke()
		w.put("leadership."+group+"._.raw", []byte(text))
		return nil
	case "redeliver":
		return w.redeliver(s.value)
	}
	name, err := word(s.value)
	if err != nil {
		return err
	}
	switch s.verb {
	case "projector":
		return w.projector(name)
	case "silent", "alive":
		return w.liveness(name, s.verb == "alive")
	}
	o := w.objects[name]
	if o == nil {
		return fmt.Errorf("there is no target %s%s", name, nearest.Hint(name, slices.Sorted(maps.Keys(w.objects))))
	}
	return w.changeTarget(s.verb, o)
}

func (w *world) changeTarget(verb string, o *object) error {
	switch verb {
	case "hold":
		o.held = true
	case "let":
		return w.let(o)
	case "drop":
		return w.drop(o)
	case "deaf":
		o.deaf = true
	case "hear":
		return w.hear(o)
	}
	return nil
}

func (w *world) fail(value jsontext.Value) error {
	f := struct {
		Target  string `json:"target"`
		Error   string `json:"error"`
		Times   int    `json:"times"`
		Applied bool   `json:"applied"`
	}{Times: 1}
	if err := strict("fail", value, &f); err != nil {
		return err
	}
	words := []string{"unavailable", "throttled", "forbidden", "conflict", "not-found", "invalid", "timeout"}
	o := w.objects[f.Target]
	switch {
	case o == nil:
		return fmt.Errorf("fail: there is no target %s", f.Target)
	case !slices.Contains(words, f.Error):
		return fmt.Errorf("fail: %q is no error%s", f.Error, nearest.Hint(f.Error, words))
	case f.Applied && f.Error != "timeout":
		return errors.New("fail: only a timeout can have been applied")
	}
	o.fault = &fault{word: f.Error, applied: f.Applied, times: f.Times, failed: map[projector.Object]int{}}
	return nil
}

// let has the writes that hang go on, those of the dead too, in the order in which they came.
func (w *world) let(o *object) error {
	o.held = false
	waiting := o.hanging
	o.hanging = nil
	for _, h := range waiting {
		before, err := o.backend.Show(w.ctx, h.doc.Component)
		if err != nil {
			return err
		}
		err = w.land(o, h.doc, h.write)
		if h.gone {
			if err := w.seen(o, h.doc.Component, before); err != nil {
				return err
			}
			continue
		}
		h.done <- err
		a := <-w.answers
		w.answered(a)
	}
	return nil
}

// seen has the observer report what differs from before in the object that shows a component.
func (w *world) seen(o *object, component string, before State) error {
	after, err := o.backend.Show(w.ctx, component)
	if err != nil {
		return err
	}
	all := map[string]*journal.LeaderInfo{}
	maps.Copy(all, before.Entries)
	maps.Copy(all, after.Entries)
	for _, name := range sortedKeys(all) {
		if !same(before.Entries[name], after.Entries[name]) {
			if err := w.report(o, name, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *world) write(value jsontext.Value) error {
	var c struct {
		Target    string              `json:"target"`
		Component string              `json:"component"`
		Entry     *journal.LeaderInfo `json:"entry"`
		By        string              `json:"by"`
		Holder    string              `json:"holder"`
		Sequence  uint64              `json:"sequence"`
	}
	if err := strict("write", value, &c); err != nil {
		return err
	}
	o := w.objects[c.Target]
	if o == nil {
		return fmt.Errorf("write: there is no target %s", c.Target)
	}
	change := Change{
		Component: c.Component, Touch: c.Component == "", Entry: c.Entry, By: c.By, Holder: c.Holder, Sequence: c.Sequence,
	}
	if err := o.backend.Write(w.ctx, change); err != nil {
		return err
	}
	if err := w.overtake(o, change); err != nil {
		return err
	}
	return w.report(o, c.Component, c.Holder)
}

// overtake raises the fences beside a change's own to its sequence: who writes with a newer intent has the whole target.
func (w *world) overtake(o *object, by Change) error {
	if by.Sequence == 0 || !o.perComponent {
		return nil
	}
	for _, component := range w.scenario.names {
		shown, err := o.backend.Show(w.ctx, component)
		if err != nil {
			return err
		}
		if shown.Sequence >= by.Sequence {
			continue
		}
		if err := o.backend.Write(w.ctx, Change{Component: component, Touch: true, By: by.By, Sequence: by.Sequence}); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) drop(o *object) error {
	before := map[string]State{}
	for _, component := range w.shownBy(o) {
		shown, err := o.backend.Show(w.ctx, component)
		if err != nil {
			return err
		}
		before[component] = shown
	}
	if err := o.backend.Drop(w.ctx); err != nil {
		return err
	}
	for _, component := range w.shownBy(o) {
		if err := w.seen(o, component, before[component]); err != nil {
			return err
		}
	}
	return nil
}

// shownBy names each object of a target by the component that it shows: "" where one object shows all.
func (w *world) shownBy(o *object) []string {
	if !o.perComponent {
		return []string{""}
	}
	return w.scenario.names
}

// hear has the observer report again, beginning with a gap and a full observation.
func (w *world) hear(o *object) error {
	o.deaf = false
	gap := w.event("observer/"+o.name, "", &journal.Watch{Target: o.name, Gap: true})
	if _, err := w.store(gap); err != nil {
		return err
	}
	for _, name := range w.scenario.names {
		if err := w.report(o, name, ""); err != nil {
			return err
		}
	}
	return nil
}

// report appends what the observer sees, unless it is deaf.
func (w *world) report(o *object, component, holder string) error {
	if o.deaf {
		return nil
	}
	shown, err := o.backend.Show(w.ctx, component)
	if err != nil {
		return err
	}
	_, err = w.store(w.event("observer/"+o.name, component, &journal.Watch{
		Target: o.name, Revision: shown.Revision, Sequence: shown.Sequence, Entry: shown.Entries[component], Holder: holder,
	}))
	return err
}

func (w *world) event(source, component string, data journal.Data) journal.Event {
	return journal.Event{
		ID: "event-" + strconv.Itoa(len(w.log)+1), Source: source, Group: group, Component: component, Time: w.now, Data: data,
	}
}

// spoke notes that the next record is an event of the file.
func (w *world) spoke() {
	w.events = append(w.events, len(w.log))
	w.newest = len(w.log)
}

// redeliver appends the n-th last of the file's events again, same id and all.
func (w *world) redeliver(value jsontext.Value) error {
	var n int
	if err := json.Unmarshal(value, &n); err != nil || n < 1 || n > len(w.events) {
		return fmt.Errorf("redeliver: %s is not a number from 1 to %d, the events so far", value, len(w.events))
	}
	r := w.log[w.events[len(w.events)-n]]
	w.newest = len(w.log)
	w.put(r.Subject, r.Raw)
	return nil
}

func (w *world) projector(word string) error {
	active := w.active()
	switch word {
	case "crash", "stall":
		if active == nil {
			return fmt.Errorf("projector: %s: no instance acts", word)
		}
		if word == "stall" {
			active.armed = true
			return nil
		}
		w.kill(active)
		return w.succeed()
	case "restart":
		for _, i := range w.instances {
			w.kill(i)
		}
		return w.start()
	case "second":
		return w.start()
	case "wake":
		return w.wake()
	}
	words := []string{"crash", "restart", "stall", "wake", "second"}
	return fmt.Errorf("projector: %q is none of %q", word, words)
}

// succeed has an instance that is left take over.
func (w *world) succeed() error {
	for _, i := range w.instances {
		if !i.dead && !i.frozen {
			return w.takeOver(i)
		}
	}
	return nil
}

// wake has a frozen instance go on: with the write that it was about to make.
func (w *world) wake() error {
	for _, i := range w.instances {
		i.armed = false
		if !i.frozen || i.dead {
			continue
		}
		i.frozen = false
		for _, key := range slices.SortedFunc(maps.Keys(i.pushes), compareObjects) {
			run := i.pushes[key]
			if !run.expires.IsZero() {
				continue // hangs at its target since before
			}
			close(run.thaw)
			if err := w.await(run); err != nil {
				return err
			}
		}
	}
	return nil
}

// until turns a duration from now into a time.
func (w *world) until(value jsontext.Value) (time.Time, error) {
	d, err := duration(value)
	return w.now.Add(d), err
}
