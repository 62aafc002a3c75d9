package k8s_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// watching is a watch under way.
type watching struct {
	*testing.T
	seen chan projector.Observation
}

func watch(t *testing.T, target projector.Target) *watching {
	x := &watching{T: t, seen: make(chan projector.Observation, 4096)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- target.Watch(ctx, func(o projector.Observation) error { x.seen <- o; return nil })
	}()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
	return x
}

func (x *watching) next() projector.Observation {
	x.Helper()
	select {
	case o := <-x.seen:
		return o
	case <-time.After(45 * time.Second):
		require.Fail(x, "nothing was observed")
		return projector.Observation{}
	}
}

// until passes over what does not fit.
func (x *watching) until(fits func(projector.Observation) bool) projector.Observation {
	x.Helper()
	for {
		if o := x.next(); fits(o) {
			return o
		}
	}
}

func (x *watching) address(component, address string) projector.Observation {
	x.Helper()
	return x.until(func(o projector.Observation) bool {
		return o.Component == component && o.Entry != nil && o.Entry.Address == address
	})
}

func TestWatchOfALockedObject(t *testing.T) {
	w := newWorld(t)
	cm := w.flinkOwn("jm-1", map[string]string{flinkPrefix + "restserver": session1 + ",a", "jobGraph-1": "x"})
	x := watch(t, connect(t, w.config, with(w.guarded(), func(s *journal.Target) { s.Components = []string{"dispatcher", "restserver"} })))
	require.Equal(t, projector.Observation{Gap: true}, x.next())
	o := x.next()
	require.Equal(t, projector.Observation{Component: "dispatcher", Revision: o.Revision, Holder: "jm-1"}, o, "missing, but configured")
	o = x.next()
	require.Equal(t, projector.Observation{
		Component: "restserver", Revision: o.Revision, Holder: "jm-1", Entry: &journal.LeaderInfo{Session: session1, Address: "a"},
	}, o)

	for i := range 5 { // renewals, and keys that are no leaders'
		cm.Annotations[lockAnnotation] = strings.Replace(lock("jm-1"), "00:00:00", fmt.Sprintf("00:00:%02d", i+1), 1)
		cm.Data["jobGraph-1"] = fmt.Sprint(i)
		cm.Data[flinkPrefix+"foreign"] = "unreadable"
		cm = w.update(cm)
	}
	cm.Annotations[lockAnnotation] = lock("jm-2")
	cm = w.update(cm)
	o = x.next()
	require.Equal(t, "dispatcher", o.Component)
	require.Equal(t, "jm-2", o.Holder)
	o = x.next()
	require.Equal(t, "restserver", o.Component)
	require.Equal(t, "jm-2", o.Holder)
	require.Equal(t, session1, o.Entry.Session)

	delete(cm.Data, flinkPrefix+"restserver")
	cm = w.update(cm)
	o = x.next()
	require.Equal(t, "restserver", o.Component)
	require.Nil(t, o.Entry)
	require.Equal(t, "jm-2", o.Holder)
	require.Equal(t, fmt.Sprint(o.Revision), cm.ResourceVersion)
	require.Empty(t, x.seen)
}

// TestWatchIsSilentOnRenewals has the locks of many objects renewed by another process all the while. Nothing is reported
// but the change of a leader that comes at the end.
func TestWatchIsSilentOnRenewals(t *testing.T) {
	const objects = 50
	w := newWorld(t)
	c := newClient(t, w.config)
	all := make([]*watching, objects)
	for n := range all {
		w.create(cluster(n))
		spec := w.guarded()
		spec.Object = clusterName(n)
		target, err := c.Connect("g", spec)
		require.NoError(t, err)
		all[n] = watch(t, target)
	}
	load := startRenewals(t, w.config, w.namespace, objects, 200*time.Millisecond)
	load.round()
	for _, x := range all {
		x.until(func(o projector.Observation) bool { return o.Component == "restserver" }) // the last
	}
	load.round()
	load.round()
	for n, x := range all {
		moved := w.patch(clusterName(n), `{"data":{"`+flinkPrefix+`restserver":"`+session2+`,moved"}}`)
		require.Equal(t, number(t, moved.ResourceVersion), x.next().Revision)
	}
}

// TestWatchIsSilentOnOwnWrites counts what is reported of 50 pushes, up to somebody else's change after them.
func TestWatchIsSilentOnOwnWrites(t *testing.T) {
	w := newWorld(t)
	target := connect(t, w.config, w.flink())
	w.push(target, oneLeader(7, 0))
	x := watch(t, target)
	x.address("restserver", "http://jm-0:8081")
	for i := range 50 {
		w.push(target, oneLeader(uint64(8+i), i))
	}
	cm := w.configMap("leaders")
	cm.Data[flinkPrefix+"restserver"] = session2 + ",theirs"
	w.update(cm)
	o := x.next()
	require.NotNil(t, o.Entry)
	require.Equal(t, "theirs", o.Entry.Address)
}

func TestWatchBeginsOnWhatIsPushedLater(t *testing.T) {
	w := newWorld(t)
	target := connect(t, w.config, w.lease())
	x := watch(t, target)
	require.Equal(t, projector.Observation{Gap: true}, x.next(), "no component is known")
	w.push(target, single("restserver", 7, leader("s1", "jm-1")))
	w.push(target, single("dispatcher", 8, leader("s2", "jm-1")))
	full := map[string]bool{} // of the components that a gap was reported of before
	for gaps := map[string]bool{}; len(full) < 2; {
		o := x.next()
		gaps[o.Component] = gaps[o.Component] || o.Gap
		if !o.Gap && gaps[o.Component] {
			full[o.Component] = true
		}
	}
	require.Equal(t, map[string]bool{"restserver": true, "dispatcher": true}, full)
	leases := w.clientset.CoordinationV1().Leases(w.namespace)
	require.NoError(t, leases.Delete(t.Context(), "g-dispatcher", metav1.DeleteOptions{}))
	x.until(func(o projector.Observation) bool {
		return o.Component == "dispatcher" && !o.Gap && o.Entry == nil && o.Sequence == 0
	})
}

// TestWatchSeesAnObjectThatComesLater begins before there is one.
func TestWatchSeesAnObjectThatComesLater(t *testing.T) {
	w := newWorld(t)
	x := watch(t, connect(t, w.config, w.flink()))
	require.Equal(t, projector.Observation{Gap: true}, x.next())
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Data: map[string]string{flinkPrefix + "restserver": session1 + ",no"}})
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "leaders"}, Data: map[string]string{flinkPrefix + "restserver": session1 + ",a"}})
	o := x.next()
	require.Equal(t, "a", o.Entry.Address)
	require.Zero(t, o.Sequence)
}

// TestPushKnowsWhatTheWatchSaw needs no read after somebody else's change.
func TestPushKnowsWhatTheWatchSaw(t *testing.T) {
	w := newWorld(t)
	config, made := counted(w.config)
	target := connect(t, config, w.flink())
	w.push(target, oneLeader(7, 0))
	x := watch(t, target)
	x.address("restserver", "http://jm-0:8081")
	cm := w.configMap("leaders")
	cm.Data[flinkPrefix+"restserver"] = session2 + ",theirs"
	w.update(cm)
	x.address("restserver", "theirs")
	before := len(made.methods())
	require.True(t, w.push(target, oneLeader(7, 0)).Wrote)
	require.Equal(t, []string{"PUT"}, made.methods()[before:])
}
