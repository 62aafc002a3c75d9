package agent

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/policy"
)

const minute = policy.Duration(time.Minute)

func notice() Notice {
	return Notice{
		Hook: "onYield", Group: "g", Candidate: "http://c", Component: "web", Session: "S1", Epoch: 7, Reason: "its \"disk\"\nis full", To: "d",
	}
}

const asJSON = `{"hook":"onYield","group":"g","candidate":"http://c","component":"web","session":"S1","epoch":7,` +
	`"reason":"its \"disk\"\nis full","to":"d"}`

func TestAnHTTPHook(t *testing.T) {
	var method, body, kind string
	status := http.StatusNoContent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		method, body, kind = r.Method, string(text), r.Header.Get("Content-Type")
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		if status != http.StatusNoContent {
			_, _ = io.WriteString(w, "not now\nor ever")
		}
	}))
	defer server.Close()
	h := Hook{HTTP: Request{URL: server.URL, Method: "PUT"}, Timeout: minute}
	require.NoError(t, h.call(t.Context(), notice()))
	require.Equal(t, []string{"PUT", asJSON, "application/json"}, []string{method, body, kind})
	status = http.StatusServiceUnavailable
	require.ErrorContains(t, h.call(t.Context(), notice()), "hook onYield: "+server.URL+" answers 503 Service Unavailable: not now")
	status = http.StatusTemporaryRedirect
	require.ErrorContains(t, h.call(t.Context(), notice()), "answers 307", "a redirect is no answer")
}

func TestAnHTTPHookThatHangs(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	h := Hook{HTTP: Request{URL: server.URL, Method: "POST"}, Timeout: policy.Duration(20 * time.Millisecond)}
	require.ErrorContains(t, h.call(t.Context(), notice()), "hook onYield: it was not done within 20ms")
}

func TestAProgramAsHook(t *testing.T) {
	dir := t.TempDir()
	script := `cat > in && test "$JOURNALD_HOOK,$JOURNALD_GROUP,$JOURNALD_CANDIDATE,$JOURNALD_COMPONENT" = "onYield,g,http://c,web" &&
		test "$JOURNALD_SESSION,$JOURNALD_EPOCH,$JOURNALD_TO" = "S1,7,d" && printf %s "$JOURNALD_REASON" > reason`
	h := Hook{Command: []string{"/bin/sh", "-ec", "cd " + dir + "\n" + script}, Timeout: minute}
	require.NoError(t, h.call(t.Context(), notice()))
	for name, want := range map[string]string{"in": asJSON, "reason": notice().Reason} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	h.Command[2] = "echo it is busy; exit 3"
	require.EqualError(t, h.call(t.Context(), notice()), "hook onYield: /bin/sh: exit status 3: it is busy\n")
	h = Hook{Command: []string{"/bin/sleep", "1000"}, Timeout: policy.Duration(20 * time.Millisecond)}
	require.ErrorContains(t, h.call(t.Context(), notice()), "it was not done within 20ms")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the term is over"))
	require.ErrorContains(t, h.call(ctx, notice()), "the term is over")
	require.NoError(t, (&Hook{}).call(t.Context(), notice()), "nothing has to be done")
}
