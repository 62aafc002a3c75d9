package k8s_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/adapters/k8s"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/projector"
)

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

func isList(r *http.Request) bool {
	return !testenv.Writes(r) && !isWatch(r) && r.URL.Query().Get("fieldSelector") != ""
}

// TestWatchSurvivesWhatTheServerAnswers has watches and lists refused in every way.
func TestWatchSurvivesWhatTheServerAnswers(t *testing.T) {
	for name, fault := range map[string]testenv.Fault{
		"410 Gone":              {Match: isWatch, Status: http.StatusGone},
		"429":                   {Match: isWatch, Status: http.StatusTooManyRequests, RetryAfter: time.Second},
		"403":                   {Match: isWatch, Status: http.StatusForbidden},
		"500 of a list":         {Match: isList, Status: http.StatusInternalServerError},
		"a broken list":         {Match: isList},
		"a watch that is ended": {Match: isWatch, Status: http.StatusNoContent},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			faults := testenv.NewHTTPFaults(t, w.config)
			w.push(connect(t, w.config, w.flink()), oneLeader(7, 0))
			faults.Set(fault)
			x := watch(t, connect(t, faults.Config(), w.flink()))
			require.Eventually(t, func() bool { return faults.Count() >= 2 }, 30*time.Second, time.Millisecond)
			faults.Set()
			w.theirs()
			require.True(t, x.next().Gap)
			x.address("restserver", "theirs")
		})
	}
}

// theirs has somebody else show a leader.
func (w *world) theirs() *corev1.ConfigMap {
	w.Helper()
	cm := w.configMap("leaders")
	cm.Data[flinkPrefix+"restserver"] = session2 + ",theirs"
	return w.update(cm)
}

// rewritten has watches ask for something else than they do.
func rewritten(config *rest.Config, change func(n int, query url.Values)) *rest.Config {
	var made atomic.Int32
	return wrapped(config, func(r *http.Request) {
		if !isWatch(r) {
			return
		}
		query := r.URL.Query()
		change(int(made.Add(1)), query)
		r.URL.RawQuery = query.Encode()
	})
}

// TestWatchOfWhatCannotBe begins anew where the stream says what an API server never would.
func TestWatchOfWhatCannotBe(t *testing.T) {
	const object = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"leaders","resourceVersion":%q}}`
	for name, c := range map[string]struct{ text, told string }{
		"no JSON":               {`<html>`, "invalid character '<'"},
		"half a change":         {`{"type":"MODIFIED","object":{"kind":`, "unexpected EOF"},
		"a revision that fell":  {`{"type":"MODIFIED","object":` + fmt.Sprintf(object, "1") + `}`, "the revision fell from"},
		"no revision":           {`{"type":"MODIFIED","object":` + fmt.Sprintf(object, "") + `}`, `resourceVersion "" is not a number`},
		"no object":             {`{"type":"DELETED","object":null}`, `resourceVersion "" is not a number`},
		"an error that is none": {`{"type":"ERROR","object":[]}`, "unmarshal JSON array into"},
		"nothing":               {``, "the API server ended the watch at once"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.push(connect(t, w.config, w.flink()), oneLeader(7, 0))
			var made atomic.Int32
			config := rest.CopyConfig(w.config)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					if !isWatch(r) || made.Add(1) > 1 {
						return next.RoundTrip(r)
					}
					return streamed(r, c.text), nil
				})
			})
			said := listen()
			x := watch(t, said.connect(t, config, w))
			for range 2 {
				require.True(t, x.next().Gap)
				x.address("restserver", "http://jm-0:8081")
			}
			require.Contains(t, said.next(t, slog.LevelWarn), c.told)
			w.theirs()
			require.Equal(t, "theirs", x.next().Entry.Address)
		})
	}
}

func streamed(r *http.Request, text string) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: -1,
	}
}

// TestWatchGoesOnWhereTheServerEndedIt misses nothing, so it reports no gap. It goes on from what the API server said
// last, which is later than the object's last change: that may be forgotten by then.
func TestWatchGoesOnWhereTheServerEndedIt(t *testing.T) {
	w := newWorld(t)
	w.push(connect(t, w.config, w.flink()), oneLeader(7, 0))
	again := make(chan string, 1)
	config := rewritten(w.config, func(n int, query url.Values) {
		switch n {
		case 1:
			query.Set("timeoutSeconds", "6")
		case 2:
			again <- query.Get("resourceVersion")
		}
	})
	x := watch(t, connect(t, config, w.flink()))
	x.address("restserver", "http://jm-0:8081")
	other := w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	require.GreaterOrEqual(t, number(t, <-again), number(t, other.ResourceVersion))
	w.theirs()
	o := x.next()
	require.False(t, o.Gap)
	require.Equal(t, "theirs", o.Entry.Address)
}

// TestWatchOfAnObjectMadeAnewMeanwhile is deaf while the object is deleted and created.
func TestWatchOfAnObjectMadeAnewMeanwhile(t *testing.T) {
	w := newWorld(t)
	away, proxy := w.proxied()
	w.push(connect(t, w.config, w.flink()), oneLeader(7, 0))
	x := watch(t, connect(t, away, w.flink()))
	before := x.address("restserver", "http://jm-0:8081")
	require.Equal(t, uint64(7), before.Sequence)

	proxy.Cut()
	require.NoError(t, w.clientset.CoreV1().ConfigMaps(w.namespace).Delete(t.Context(), "leaders", metav1.DeleteOptions{}))
	made := w.create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "leaders"}, Data: map[string]string{flinkPrefix + "dispatcher": session2 + ",theirs"},
	})
	proxy.Resume()
	require.Equal(t, projector.Observation{Gap: true}, x.next())
	o := x.next()
	require.Equal(t, "dispatcher", o.Component)
	require.Equal(t, "theirs", o.Entry.Address)
	require.Equal(t, made.ResourceVersion, fmt.Sprint(o.Revision))
	require.Zero(t, o.Sequence)
	o = x.next()
	require.Equal(t, projector.Observation{Component: "restserver", Revision: o.Revision}, o, "it was shown, and is no more")
	require.Greater(t, o.Revision, before.Revision)
}

// TestWatchGivesUpWhatHangs has lists, and watches, never answered, on a connection that is well.
func TestWatchGivesUpWhatHangs(t *testing.T) {
	for name, hangs := range map[string]func(*http.Request) bool{"a list": isList, "a watch": isWatch} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			faults := testenv.NewHTTPFaults(t, w.config)
			w.push(connect(t, w.config, w.flink()), oneLeader(7, 0))
			faults.Set(testenv.Fault{Match: hangs, Hang: true})
			said := listen()
			x := watch(t, said.impatient(t, faults.Config(), w))
			require.Contains(t, said.next(t, slog.LevelWarn), "context ")
			faults.Set()
			require.True(t, x.next().Gap)
			x.address("restserver", "http://jm-0:8081")
		})
	}
}

// TestWatchNoticesAMuteConnection has no byte pass any more, in either direction, while the connection stays open.
func TestWatchNoticesAMuteConnection(t *testing.T) {
	w := newWorld(t)
	away, proxy := w.proxied()
	w.push(connect(t, w.config, w.flink()), oneLeader(7, 0))
	said := listen()
	x := watch(t, said.impatient(t, away, w))
	x.address("restserver", "http://jm-0:8081")

	proxy.Freeze()
	require.Contains(t, said.next(t, slog.LevelWarn), "client connection lost")
	w.theirs()
	proxy.Thaw()
	require.True(t, x.next().Gap)
	x.address("restserver", "theirs")
}

// TestWatchBeginsAmidAPush has somebody's change and a push upon it come in between the list and the watch. What is
// reported is what the push wrote, not what was listed, and not then what came before it.
func TestWatchBeginsAmidAPush(t *testing.T) {
	w := newWorld(t)
	var target projector.Target
	var pushed projector.Receipt
	config := rewritten(w.config, func(n int, _ url.Values) {
		if n == 1 {
			w.theirs()
			pushed = w.push(target, fresh(oneLeader(8, 1)))
		}
	})
	target = connect(t, config, w.flink())
	w.push(target, oneLeader(7, 0))
	x := watch(t, target)
	require.True(t, x.next().Gap)
	o := x.next()
	require.Equal(t, "http://jm-1:8081", o.Entry.Address)
	require.Equal(t, pushed.Revision, o.Revision)
	after := w.theirs()
	require.Equal(t, number(t, after.ResourceVersion), x.next().Revision)
}

// TestWatchOutlivesTheServer stops the API server, and has the object changed by others after it is back. Then what it
// stores is restored from a backup, and all revisions since come a second time.
func TestWatchOutlivesTheServer(t *testing.T) {
	own := testenv.NewKubernetes(t)
	c, err := kubernetes.NewForConfig(own.Config)
	require.NoError(t, err)
	w := &world{T: t, config: own.Config, namespace: testenv.Namespace(t, own.Config), clientset: c}
	away, proxy := w.proxied()
	target := connect(t, away, w.flink())
	w.push(target, oneLeader(7, 0))
	x := watch(t, target)
	x.address("restserver", "http://jm-0:8081")
	without := func(do func() error) {
		proxy.Cut() // the server would wait for the watch to end
		require.NoError(t, do())
		proxy.Resume()
	}

	without(func() error {
		if err := own.StopAPIServer(); err != nil {
			return err
		}
		_, err := target.Push(t.Context(), oneLeader(8, 1))
		require.Error(t, err)
		return own.StartAPIServer()
	})
	w.theirs()
	x.address("restserver", "theirs")
	w.push(target, fresh(oneLeader(8, 1)))
	w.forgets(away)

	without(own.Backup)
	for n := range 10 {
		w.push(target, fresh(oneLeader(uint64(9+n), n)))
	}
	late := w.theirs()
	x.until(func(o projector.Observation) bool { return o.Revision == number(t, late.ResourceVersion) })
	without(own.Restore)
	o := x.until(func(o projector.Observation) bool { return !o.Gap && o.Revision != number(t, late.ResourceVersion) })
	require.Less(t, o.Revision, number(t, late.ResourceVersion))
	require.Equal(t, number(t, w.configMap("leaders").ResourceVersion), o.Revision)
	require.Equal(t, uint64(8), o.Sequence)
	w.theirs() // likely at a revision that one of our own writes had
	x.address("restserver", "theirs")
	require.True(t, w.push(target, fresh(oneLeader(9, 9))).Wrote)
	last := w.theirs()
	x.until(func(o projector.Observation) bool { return o.Revision == number(t, last.ResourceVersion) })
}

// forgets has a watch begin at a revision from before the server's start. It is answered with 410 Expired, in the
// stream.
func (w *world) forgets(config *rest.Config) {
	w.Helper()
	said := listen()
	x := watch(w.T, said.connect(w.T, rewritten(config, func(n int, query url.Values) {
		if n == 1 {
			query.Set("resourceVersion", "1")
		}
	}), w))
	for range 2 {
		require.True(w, x.next().Gap)
		x.address("restserver", "http://jm-1:8081")
	}
	require.Contains(w, said.next(w.T, slog.LevelWarn), "too old resource version: 1 ")
}

// TestWatchWaitsForItsRights is granted what it needs bit by bit, and has it taken away again.
func TestWatchWaitsForItsRights(t *testing.T) {
	w := newWorld(t)
	w.push(connect(t, w.config, w.flink()), oneLeader(7, 0))
	away, proxy := w.proxied()
	away.Impersonate.UserName = "watcher"
	var asked atomic.Int32
	away = rewritten(away, func(int, url.Values) { asked.Add(1) })
	said := listen()
	x := watch(t, said.connect(t, away, w))
	require.Contains(t, said.next(t, slog.LevelWarn), `"watcher" cannot list resource "configmaps"`)
	require.Equal(t, projector.Observation{Gap: true}, x.next(), "what is shown is not known")
	require.Zero(t, asked.Load())

	w.employ()
	w.grant("list")
	require.Eventually(t, func() bool { return asked.Load() >= 2 }, 45*time.Second, time.Millisecond)
	require.Empty(t, x.seen, "nothing is reported again and again")
	w.grant("list", "watch")
	require.True(t, x.next().Gap)
	x.address("restserver", "http://jm-0:8081")
	require.Contains(t, said.next(t, slog.LevelInfo), "watched again")

	w.grant()
	proxy.Cut() // a watch goes on without rights until it ends
	proxy.Resume()
	require.Contains(t, said.next(t, slog.LevelWarn), "object=")
	require.Contains(t, said.next(t, slog.LevelWarn), "cannot list")
	w.theirs()
	require.Equal(t, projector.Observation{Gap: true}, x.next())
	w.grant("list", "watch")
	require.True(t, x.next().Gap)
	x.address("restserver", "theirs")
}

// employ binds the user watcher to what grant grants.
func (w *world) employ() {
	w.Helper()
	_, err := w.clientset.RbacV1().RoleBindings(w.namespace).Create(w.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "watcher"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "watcher"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "watcher"}},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
}

// grant gives the user watcher these rights to the object, and no others, and waits until they are in force.
func (w *world) grant(verbs ...string) {
	w.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "watcher"}}
	if len(verbs) > 0 {
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"leaders"}, Verbs: verbs}}
	}
	_, err := w.clientset.RbacV1().Roles(w.namespace).Update(w.Context(), role, metav1.UpdateOptions{}) // or create
	require.NoError(w, err)
	for _, verb := range []string{"list", "watch"} {
		require.Eventually(w, func() bool { return w.may(verb) == slices.Contains(verbs, verb) }, 30*time.Second, 10*time.Millisecond)
	}
}

// may says whether the user watcher has a right to the object now.
func (w *world) may(verb string) bool {
	review, err := w.clientset.AuthorizationV1().SubjectAccessReviews().Create(w.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: "watcher", ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: w.namespace, Verb: verb, Resource: "configmaps", Name: "leaders",
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Error(err)
		return false
	}
	return review.Status.Allowed
}

func number(t *testing.T, revision string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(revision, 10, 64)
	require.NoError(t, err)
	return n
}

// TestWatchesBeginAFewAtATime has twice as many targets as may begin at once, and holds their lists until so many are
// under way.
func TestWatchesBeginAFewAtATime(t *testing.T) {
	const atOnce = 32
	w := newWorld(t)
	var mu sync.Mutex
	under, most := 0, 0
	full := make(chan struct{})
	fill := sync.OnceFunc(func() { close(full) })
	config := rest.CopyConfig(w.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if !isList(r) {
				return next.RoundTrip(r)
			}
			mu.Lock()
			under++
			most = max(most, under)
			if under == atOnce {
				fill()
			}
			mu.Unlock()
			<-full
			defer func() { mu.Lock(); defer mu.Unlock(); under-- }()
			return next.RoundTrip(r)
		})
	})
	c := newClient(t, config)
	all := make([]*watching, 2*atOnce)
	for n := range all {
		spec := w.flink()
		spec.Object = fmt.Sprint("leaders-", n)
		target, err := c.Connect("g", spec)
		require.NoError(t, err)
		all[n] = watch(t, target)
	}
	for _, x := range all {
		require.True(t, x.next().Gap)
	}
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, atOnce, most)
}

// heard is what a client logs.
type heard struct{ records chan heardRecord }

type heardRecord struct {
	level slog.Level
	text  string
}

func listen() *heard { return &heard{make(chan heardRecord, 1024)} }

func (h *heard) options() k8s.Options { return k8s.Options{Now: writtenAt, Logger: slog.New(h)} }

func (h *heard) connect(t *testing.T, config *rest.Config, w *world) projector.Target {
	c, err := k8s.NewClient(config, h.options())
	require.NoError(t, err)
	target, err := c.Connect("g", w.flink())
	require.NoError(t, err)
	return target
}

func (h *heard) impatient(t *testing.T, config *rest.Config, w *world) projector.Target {
	c, err := k8s.NewImpatientClient(config, h.options(), time.Second)
	require.NoError(t, err)
	target, err := c.Connect("g", w.flink())
	require.NoError(t, err)
	return target
}

// next waits for a record of a level, passing over others.
func (h *heard) next(t *testing.T, level slog.Level) string {
	t.Helper()
	for {
		select {
		case r := <-h.records:
			if r.level == level {
				return r.text
			}
		case <-time.After(45 * time.Second):
			require.Fail(t, "nothing was logged")
		}
	}
}

// Enabled implements [slog.Handler].
func (h *heard) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (h *heard) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	select {
	case h.records <- heardRecord{r.Level, text}:
		return nil
	default:
		return errors.New("nobody listens")
	}
}

// WithAttrs implements [slog.Handler].
func (h *heard) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup implements [slog.Handler].
func (h *heard) WithGroup(string) slog.Handler { return h }
