package k8s_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leadership-journal/journald/adapters/k8s"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

func TestFlinkObject(t *testing.T) {
	w := newWorld(t)
	w.push(connect(t, w.config, w.flink()), shared(7, map[string]*journal.LeaderInfo{
		"restserver": leader(session1, "jm-1"), "job-0123456789abcdef0123456789abcdef": leader(session2, "jm-1"), "dispatcher": nil,
	}))
	cm := w.configMap("leaders")
	require.Equal(t, map[string]string{
		"org.apache.flink.k8s.leader.restserver":                           session1 + ",http://jm-1:8081",
		"org.apache.flink.k8s.leader.job-0123456789abcdef0123456789abcdef": session2 + ",http://jm-1:8081",
	}, cm.Data)
	require.Equal(t, map[string]string{
		"leadership-journal.io/sequence": "7", "leadership-journal.io/projector": "3", "leadership-journal.io/subject": "g",
	}, cm.Annotations)
	require.Equal(t, map[string]string{"app.kubernetes.io/managed-by": "journald"}, cm.Labels)
	require.Len(t, cm.ManagedFields, 1)
	require.Equal(t, "journald", cm.ManagedFields[0].Manager)
}

func TestJSONObject(t *testing.T) {
	w := newWorld(t)
	l := leader("s1", "jm-1")
	l.Properties = map[string]string{"b": "2", "a": "1"}
	target := connect(t, w.config, w.json())
	doc := shared(7, map[string]*journal.LeaderInfo{"overlord": l})
	w.push(target, doc)
	require.Equal(t, map[string]string{
		"overlord": `{"session":"s1","candidate":"jm-1","address":"http://jm-1:8081","properties":{"a":"1","b":"2"}}`,
	}, w.configMap("leaders").Data)
	for range 20 {
		require.False(t, w.push(target, doc).Wrote, "the order of properties is no difference")
	}
}

func TestLeaseObject(t *testing.T) {
	w := newWorld(t)
	target := connect(t, w.config, w.lease())
	lease := func() (spec, annotations map[string]string) {
		l, err := w.clientset.CoordinationV1().Leases(w.namespace).Get(t.Context(), "g-restserver", metav1.GetOptions{})
		require.NoError(t, err)
		require.Nil(t, l.Spec.LeaseDurationSeconds, "no elector may contend on it")
		require.Equal(t, writtenAt(), l.Spec.AcquireTime.UTC())
		require.Equal(t, writtenAt(), l.Spec.RenewTime.UTC())
		require.Equal(t, "journald", l.Labels["app.kubernetes.io/managed-by"])
		return map[string]string{"holder": *l.Spec.HolderIdentity, "transitions": fmt.Sprint(*l.Spec.LeaseTransitions)}, l.Annotations
	}
	steps := []struct {
		sequence, epoch     uint64
		leader              *journal.LeaderInfo
		holder, transitions string
	}{
		{7, 6, leader("s1", "jm-1"), "jm-1", "0"},
		{9, 6, leader("s2", "jm-1"), "jm-1", "0"},
		{11, 10, leader("s3", "jm-2"), "jm-2", "1"},
		{12, 10, nil, "", "1"},
		{14, 13, leader("s4", "jm-2"), "jm-2", "2"},
	}
	for _, s := range steps {
		doc := single("restServer", s.sequence, s.leader)
		doc.Entries["restServer"] = projector.Entry{Sequence: s.sequence, Epoch: s.epoch, Leader: s.leader}
		w.push(target, doc)
		spec, annotations := lease()
		require.Equal(t, map[string]string{"holder": s.holder, "transitions": s.transitions}, spec)
		require.Equal(t, fmt.Sprint(s.sequence), annotations[k8s.SequenceAnnotation])
		require.Equal(t, "g/restServer", annotations[k8s.SubjectAnnotation])
		if s.leader != nil {
			require.Equal(t, s.leader.Session, annotations[k8s.SessionAnnotation])
			require.Equal(t, s.leader.Address, annotations[k8s.AddressAnnotation])
			require.Equal(t, fmt.Sprint(s.epoch), annotations[k8s.EpochAnnotation])
		} else {
			require.NotContains(t, annotations, k8s.SessionAnnotation)
			require.NotContains(t, annotations, k8s.AddressAnnotation)
		}
	}
}

func TestLeaseOfAnotherComponentIsNotTaken(t *testing.T) {
	w := newWorld(t)
	target := connect(t, w.config, w.lease())
	w.push(target, single("job/a", 7, leader("s1", "jm-1")))
	_, err := target.Push(t.Context(), single("job:a", 9, leader("s2", "jm-2")))
	require.ErrorIs(t, err, projector.ErrPermanent)
	require.ErrorContains(t, err, "g/job/a already, and can't show g/job:a too")
	w.push(target, single("job/a", 8, leader("s3", "jm-1")))
}

func TestLeaseWithoutCandidateIsRejected(t *testing.T) {
	w := newWorld(t)
	receipt := w.push(connect(t, w.config, w.lease()), single("rest", 7, &journal.LeaderInfo{Session: "s1", Address: "a"}))
	require.False(t, receipt.Wrote)
	require.ErrorContains(t, receipt.Rejected["rest"], "no candidate")
}

func TestComponentsThatTheLayoutCannotHoldAreLeftOut(t *testing.T) {
	w := newWorld(t)
	target := connect(t, w.config, w.flink())
	receipt := w.push(target, shared(7, map[string]*journal.LeaderInfo{
		"restserver": leader(session1, "jm-1"), "job/1": leader(session2, "jm-1"), "dispatcher": leader("no-uuid", "jm-1"),
		"resourcemanager": {Session: session3},
	}))
	require.True(t, receipt.Wrote)
	require.Equal(t, []string{"restserver"}, receipt.Changed)
	require.Len(t, receipt.Rejected, 3)
	require.ErrorContains(t, receipt.Rejected["job/1"], `can't have the key "org.apache.flink.k8s.leader.job/1"`)
	require.ErrorContains(t, receipt.Rejected["dispatcher"], "a UUID in lower case")
	require.ErrorContains(t, receipt.Rejected["resourcemanager"], "no address")
	require.Len(t, w.configMap("leaders").Data, 1)

	receipt = w.push(connect(t, w.config, with(w.flink(), func(s *journal.Target) { s.Object = "nothing" })),
		shared(7, map[string]*journal.LeaderInfo{"job/1": leader(session1, "jm-1")}))
	require.False(t, receipt.Wrote, "nothing to show, no object")
}

// TestARejectedEntryStaysAsItIs must not take down what is shown because its successor can't be.
func TestARejectedEntryStaysAsItIs(t *testing.T) {
	w := newWorld(t)
	target := connect(t, w.config, w.flink())
	w.push(target, shared(7, map[string]*journal.LeaderInfo{"restserver": leader(session1, "jm-1")}))
	receipt := w.push(target, shared(8, map[string]*journal.LeaderInfo{"restserver": leader("no-uuid", "jm-1"), "dispatcher": leader(session2, "jm-1")}))
	require.Equal(t, []string{"dispatcher"}, receipt.Changed)
	require.Equal(t, session1+",http://jm-1:8081", w.configMap("leaders").Data[flinkPrefix+"restserver"])
}

func TestAnObjectForEachComponent(t *testing.T) {
	w := newWorld(t)
	target := connect(t, w.config, with(w.json(), func(s *journal.Target) { s.Object = "leader-{component}" }))
	require.True(t, target.PerComponent())
	w.push(target, single("overlord", 7, leader("s1", "a")))
	w.push(target, single("coordinator", 3, leader("s2", "b")))
	require.Contains(t, w.configMap("leader-overlord").Data, "overlord")
	require.Contains(t, w.configMap("leader-coordinator").Data, "coordinator")
}

func TestObservedTargetsAreNeverWritten(t *testing.T) {
	w := newWorld(t)
	target := connect(t, w.config, with(w.flink(), func(s *journal.Target) { s.Observe = true }))
	_, err := target.Push(t.Context(), shared(7, map[string]*journal.LeaderInfo{"restserver": leader(session1, "jm-1")}))
	require.ErrorIs(t, err, projector.ErrPermanent)
}

// TestFlinksOwnObjectIsNotCreated: without Flink's annotation its elector would fail to create it for ever.
func TestFlinksOwnObjectIsNotCreated(t *testing.T) {
	w := newWorld(t)
	target := connect(t, w.config, with(w.flink(), func(s *journal.Target) { s.Object = "prod-cluster-config-map" }))
	doc := shared(7, map[string]*journal.LeaderInfo{"restserver": leader(session1, "jm-1")})
	_, err := target.Push(t.Context(), doc)
	require.ErrorContains(t, err, "only Flink may create it")
	require.NotErrorIs(t, err, projector.ErrPermanent, "Flink may create it any moment")

	lock := `{"holderIdentity":"jm-1","leaseDuration":15.000000000,"leaderTransitions":1}`
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "prod-cluster-config-map", Annotations: map[string]string{lockAnnotation: lock}, Labels: flinkLabels(),
	}})
	doc.Fresh = true
	w.push(target, doc)
	cm := w.configMap("prod-cluster-config-map")
	require.Equal(t, lock, cm.Annotations[lockAnnotation])
	require.Equal(t, flinkLabels(), cm.Labels, "the object is not ours")
	require.Equal(t, session1+",http://jm-1:8081", cm.Data[flinkPrefix+"restserver"])
}

func flinkLabels() map[string]string {
	return map[string]string{"app": "prod", "type": "flink-native-kubernetes", "configmap-type": "high-availability"}
}

const lockAnnotation = "control-plane.alpha.kubernetes.io/leader"

func TestRefusalsThatStay(t *testing.T) {
	w := newWorld(t)
	doc := shared(7, map[string]*journal.LeaderInfo{"restserver": leader(session1, "jm-1")})

	t.Run("no such namespace", func(t *testing.T) {
		target := connect(t, w.config, with(w.flink(), func(s *journal.Target) { s.Namespace = "no-such" }))
		_, err := target.Push(t.Context(), doc)
		require.ErrorIs(t, err, projector.ErrPermanent)
		require.ErrorContains(t, err, `namespaces "no-such" not found`)
	})
	t.Run("an immutable object", func(t *testing.T) {
		immutable := true
		w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "immutable"}, Immutable: &immutable})
		target := connect(t, w.config, with(w.flink(), func(s *journal.Target) { s.Object = "immutable" }))
		_, err := target.Push(t.Context(), doc)
		require.ErrorIs(t, err, projector.ErrPermanent)
		require.ErrorContains(t, err, "immutable")
	})
	t.Run("too large", func(t *testing.T) {
		w.create(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{"jobGraph-1": strings.Repeat("x", 1<<20-10)},
		})
		target := connect(t, w.config, with(w.flink(), func(s *journal.Target) { s.Object = "large" }))
		_, err := target.Push(t.Context(), doc)
		require.ErrorIs(t, err, projector.ErrPermanent)
		w.push(connect(t, w.config, with(w.flink(), func(s *journal.Target) { s.Object = "large-2" })), doc)
	})
	t.Run("no rights", func(t *testing.T) {
		config := *w.config
		config.Impersonate.UserName = "nobody"
		_, err := connect(t, &config, w.flink()).Push(t.Context(), doc)
		require.ErrorIs(t, err, projector.ErrPermanent)
		require.ErrorContains(t, err, "forbidden")
	})
}

// TestWhatIsKnownIsNotReadAgain counts requests: a push of something new is one, of something shown none.
func TestWhatIsKnownIsNotReadAgain(t *testing.T) {
	w := newWorld(t)
	config, requests := counted(w.config)
	target := connect(t, config, w.flink())
	docs := make([]*projector.Document, 5)
	for i := range docs {
		docs[i] = shared(uint64(7+i), map[string]*journal.LeaderInfo{"restserver": leader(session1, fmt.Sprintf("jm-%d", i))})
		w.push(target, docs[i])
	}
	require.Equal(t, []string{"GET", "POST", "PUT", "PUT", "PUT", "PUT"}, requests.methods())
	require.False(t, w.push(target, docs[4]).Wrote)
	require.Len(t, requests.methods(), 6)
	docs[4].Fresh = true
	require.False(t, w.push(target, docs[4]).Wrote)
	require.Equal(t, "GET", requests.methods()[6])
}
