package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

const (
	watchFirstRetry = 200 * time.Millisecond
	watchLastRetry  = 30 * time.Second
	watchLasts      = 5 * time.Minute  // at least, at most twice that; then the API server ends it
	watchGrace      = 30 * time.Second // after which a watch that did not end so is taken for dead
	watchHealthy    = 5 * time.Second  // what lasted so long did not fail at once
)

// watcher reports what one object shows.
//
// It lists, which is a gap, and then follows the changes. A watch that the API server ends goes on from the last
// revision, without a gap; anything else (410 Gone, a connection that breaks, a refusal) begins anew. Changes are
// judged against the one before them as they come, our own among them, so that nothing that somebody else did is
// missed because we have written since.
type watcher struct {
	object *object
	report func(projector.Observation)
	last   sight
}

// run goes on until ctx ends.
func (w *watcher) run(ctx context.Context) {
	wait := &backoff.ExponentialBackOff{
		InitialInterval: watchFirstRetry, RandomizationFactor: backoff.DefaultRandomizationFactor,
		Multiplier: backoff.DefaultMultiplier, MaxInterval: watchLastRetry,
	}
	wait.Reset()
	for {
		began := time.Now()
		err := w.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > watchHealthy {
			wait.Reset()
		}
		retry := wait.NextBackOff()
		w.object.client.opts.Logger.Warn("a watch broke and begins anew", "object", w.object.resource.String(), "retryIn", retry, "error", err)
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return
		}
	}
}

// follow lists and watches until something fails.
func (w *watcher) follow(ctx context.Context) error {
	from, err := w.look(ctx)
	if err != nil {
		return err
	}
	for {
		began := time.Now()
		if from, err = w.stream(ctx, from); err != nil {
			return err
		}
		if time.Since(began) < watchHealthy {
			return errors.New("the API server ended the watch at once")
		}
	}
}

// look reports a gap and everything that the object shows, and says from where to watch.
func (w *watcher) look(ctx context.Context) (uint64, error) {
	for {
		ended := w.object.ended()
		v, from, err := w.object.list(ctx)
		if err != nil {
			return 0, err
		}
		if !w.object.reset(v, ended) {
			continue
		}
		before, now := w.last, w.object.see(v)
		w.last = now
		w.report(projector.Observation{Component: w.object.component, Gap: true})
		for _, component := range w.components(before, now) {
			w.observe(component, now)
		}
		return from, nil
	}
}

// stream reports changes until the API server ends the watch, and says from where to go on.
func (w *watcher) stream(ctx context.Context, from uint64) (uint64, error) {
	lasting := watchLasts + rand.N(watchLasts)
	ctx, cancel := context.WithTimeout(ctx, lasting+watchGrace)
	defer cancel()
	body, err := w.object.watch(ctx, from, lasting)
	if err != nil {
		return 0, err
	}
	events := json.NewDecoder(body)
	for {
		var e metav1.WatchEvent
		if err = events.Decode(&e); err != nil {
			break
		}
		if from, err = w.event(&e, from); err != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("watch %s: %w", &w.object.resource, err)
	}
	return from, errors.Join(err, body.Close())
}

// event takes note of one change, and says from where to go on after it.
func (w *watcher) event(e *metav1.WatchEvent, from uint64) (uint64, error) {
	if e.Type == "ERROR" {
		return 0, statusError(e.Object.Raw)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(e.Object.Raw); err != nil {
		return 0, fmt.Errorf("decode a change: %w", err)
	}
	v, err := newVersion(o)
	if err != nil {
		return 0, err
	}
	if v.revision < from {
		return 0, fmt.Errorf("the revision fell from %d to %d", from, v.revision)
	}
	switch e.Type {
	case "DELETED":
		v.object = nil
		w.change(v)
	case "ADDED", "MODIFIED":
		w.change(v)
	}
	return v.revision, nil
}

func statusError(raw []byte) error {
	status := &metav1.Status{}
	if err := json.Unmarshal(raw, status); err != nil {
		return fmt.Errorf("decode an error: %w", err)
	}
	return &apierrors.StatusError{ErrStatus: *status}
}

// change reports what is different, unless we made it so.
func (w *watcher) change(v *version) {
	before, now := w.last, w.object.see(v)
	w.last = now
	if w.object.saw(v, now) {
		return
	}
	all := before.holder != now.holder || now.sequence < before.sequence
	for _, component := range w.components(before, now) {
		if all || !sameLeader(before.entries[component], now.entries[component]) {
			w.observe(component, now)
		}
	}
}

// components are those that are shown, were shown, or should be, sorted.
func (w *watcher) components(before, now sight) []string {
	all := map[string]bool{}
	for _, s := range []sight{before, now} {
		for component := range s.entries {
			all[component] = true
		}
	}
	w.object.mu.Lock()
	maps.Copy(all, w.object.expected)
	w.object.mu.Unlock()
	return slices.Sorted(maps.Keys(all))
}

func (w *watcher) observe(component string, s sight) {
	w.report(projector.Observation{
		Component: component, Revision: s.revision, Sequence: s.sequence, Entry: s.entries[component], Holder: s.holder,
	})
}

func sameLeader(a, b *journal.LeaderInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Session == b.Session && a.Candidate == b.Candidate && a.Address == b.Address && maps.Equal(a.Properties, b.Properties)
}
