package k8s_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

const guardedObject = "prod-cluster-config-map"

func (w *world) guarded() journal.Target {
	return with(w.flink(), func(s *journal.Target) { s.Object, s.Guarded = guardedObject, true })
}

func lock(holder string) string {
	return `{"holderIdentity":"` + holder + `","leaseDuration":"PT15S","acquireTime":"2026-01-01T00:00:00.000000Z","leaderTransitions":1}`
}

// flinkOwn makes the object as Flink's elector does.
func (w *world) flinkOwn(holder string, data map[string]string) *corev1.ConfigMap {
	return w.create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: guardedObject, Labels: flinkLabels(), Annotations: map[string]string{lockAnnotation: lock(holder)},
		},
		Data: data,
	})
}

func guardedDocument(leaders map[string]*journal.LeaderInfo) *projector.Document {
	doc := shared(9, leaders)
	doc.Guarded, doc.Fresh = true, true
	return doc
}

func TestGuardPutsBackWhatWasErased(t *testing.T) {
	w := newWorld(t)
	own := w.flinkOwn("jm-1", map[string]string{"jobGraph-1": "x", flinkPrefix + "dispatcher": session2 + ",d"})
	target := connect(t, w.config, w.guarded())
	doc := guardedDocument(map[string]*journal.LeaderInfo{"restserver": leader(session1, "jm-1")})
	receipt := w.push(target, doc)
	require.Equal(t, []string{"restserver"}, receipt.Changed)
	now := w.configMap(guardedObject)
	require.Equal(t, own.Labels, now.Labels, "no label of ours")
	require.Equal(t, own.Annotations, now.Annotations, "no fence of ours")
	own.Data[flinkPrefix+"restserver"] = session1 + ",http://jm-1:8081"
	require.Equal(t, own.Data, now.Data)
	require.False(t, w.push(target, doc).Wrote)
}

// TestGuardReadsWhatItWritesUpon: the watch of a guarded object keeps no text of what it sees.
func TestGuardReadsWhatItWritesUpon(t *testing.T) {
	w := newWorld(t)
	w.flinkOwn("jm-1", map[string]string{"jobGraph-1": "x", flinkPrefix + "restserver": session1 + ",http://jm-1:8081"})
	config, made := counted(w.config)
	target := connect(t, config, w.guarded())
	x := watch(t, target)
	x.address("restserver", "http://jm-1:8081")
	erased := w.patch(guardedObject, `{"data":{"`+flinkPrefix+`restserver":null,"jobGraph-2":"y"}}`)
	require.Nil(t, x.next().Entry)
	before := len(made.methods())
	doc := guardedDocument(map[string]*journal.LeaderInfo{"restserver": leader(session1, "jm-1")})
	doc.Fresh = false
	require.Equal(t, []string{"restserver"}, w.push(target, doc).Changed)
	require.Equal(t, []string{"GET", "PUT"}, made.methods()[before:])
	now := w.configMap(guardedObject)
	require.Equal(t, erased.Annotations, now.Annotations)
	erased.Data[flinkPrefix+"restserver"] = session1 + ",http://jm-1:8081"
	require.Equal(t, erased.Data, now.Data)
}

func TestGuardLeavesAlone(t *testing.T) {
	erased := map[string]*journal.LeaderInfo{"restserver": leader(session1, "jm-1")}
	for name, c := range map[string]struct {
		holder string
		data   map[string]string
		want   string
	}{
		"another holder":              {"jm-2", nil, "not held by"},
		"no holder":                   {"", nil, "not held by"},
		"an entry of the system's":    {"jm-1", map[string]string{flinkPrefix + "restserver": session3 + ",http://jm-1:8081"}, "an entry of its own"},
		"an entry that can't be read": {"jm-1", map[string]string{flinkPrefix + "restserver": "?"}, "an entry of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			own := w.flinkOwn(c.holder, c.data)
			_, err := connect(t, w.config, w.guarded()).Push(t.Context(), guardedDocument(erased))
			require.ErrorIs(t, err, projector.ErrConflict)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, own, w.configMap(guardedObject))
		})
	}
}

// TestGuardWritesAllOrNothing: one component may be put back, the other has news that are yet to be observed.
func TestGuardWritesAllOrNothing(t *testing.T) {
	w := newWorld(t)
	own := w.flinkOwn("jm-1", map[string]string{flinkPrefix + "restserver": session3 + ",http://jm-1:8081"})
	_, err := connect(t, w.config, w.guarded()).Push(t.Context(), guardedDocument(map[string]*journal.LeaderInfo{
		"dispatcher": leader(session1, "jm-1"), "restserver": leader(session1, "jm-1"),
	}))
	require.ErrorIs(t, err, projector.ErrConflict)
	require.Equal(t, own, w.configMap(guardedObject))
}

func TestGuardNeverCreates(t *testing.T) {
	w := newWorld(t)
	_, err := connect(t, w.config, w.guarded()).Push(t.Context(),
		guardedDocument(map[string]*journal.LeaderInfo{"restserver": leader(session1, "jm-1")}))
	require.ErrorIs(t, err, projector.ErrConflict)
	maps, err := w.clientset.CoreV1().ConfigMaps(w.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + guardedObject})
	require.NoError(t, err)
	require.Empty(t, maps.Items)
}

func TestGuardTakesNothingDown(t *testing.T) {
	w := newWorld(t)
	own := w.flinkOwn("jm-1", map[string]string{flinkPrefix + "restserver": session3 + ",http://jm-1:8081"})
	receipt := w.push(connect(t, w.config, w.guarded()), guardedDocument(map[string]*journal.LeaderInfo{"restserver": nil, "dispatcher": nil}))
	require.False(t, receipt.Wrote)
	require.Len(t, receipt.Rejected, 1)
	require.ErrorContains(t, receipt.Rejected["restserver"], "nothing is taken down")
	require.Equal(t, own, w.configMap(guardedObject))
}

// TestGuardIsFencedByTheRevision has the lock pass on between read and write.
func TestGuardIsFencedByTheRevision(t *testing.T) {
	w := newWorld(t)
	own := w.flinkOwn("jm-1", nil)
	config, between := interrupted(w.config)
	target := connect(t, config, w.guarded())
	between(func() {
		own.Annotations[lockAnnotation] = lock("jm-2")
		own = w.update(own)
	})
	doc := guardedDocument(map[string]*journal.LeaderInfo{"restserver": leader(session1, "jm-1")})
	_, err := target.Push(t.Context(), doc)
	require.ErrorIs(t, err, projector.ErrConflict)
	_, err = target.Push(t.Context(), doc)
	require.ErrorContains(t, err, "not held by")
	require.Equal(t, own, w.configMap(guardedObject))
}
