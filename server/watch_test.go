package server_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/view"
)

// reader reads server-sent events.
type reader struct {
	tb    testing.TB
	lines *bufio.Reader
	close context.CancelFunc
}

func (h *harness) watch(path, lastID string) *reader {
	h.tb.Helper()
	r := h.stream(path, lastID)
	line, err := r.lines.ReadString('\n')
	require.NoError(h.tb, err)
	require.Equal(h.tb, "retry: 2000\n", line)
	return r
}

func (h *harness) stream(path, lastID string) *reader {
	h.tb.Helper()
	ctx, cancel := context.WithTimeout(h.tb.Context(), 30*time.Second)
	h.tb.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+path, nil)
	require.NoError(h.tb, err)
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(h.tb, err)
	h.tb.Cleanup(func() { _ = response.Body.Close() })
	require.Equal(h.tb, http.StatusOK, response.StatusCode)
	require.Equal(h.tb, "text/event-stream", response.Header.Get("Content-Type"))
	return &reader{h.tb, bufio.NewReader(response.Body), cancel}
}

func (r *reader) next() (id string, record api.Record) {
	r.tb.Helper()
	for {
		line, err := r.lines.ReadString('\n')
		require.NoError(r.tb, err)
		if value, ok := strings.CutPrefix(line, "id: "); ok {
			id = strings.TrimSpace(value)
		}
		if value, ok := strings.CutPrefix(line, "data: "); ok {
			require.NoError(r.tb, json.Unmarshal([]byte(value), &record))
			require.Equal(r.tb, id, strconv.FormatUint(record.Sequence, 10))
			return id, record
		}
	}
}

func TestWatchGoesOnAfterTheLastOne(t *testing.T) {
	h := start(t, options{})
	r := h.watch("/v1/watch?group=flink&component=rest", "")
	h.say(grantS1, `{"kind":"grant","group":"flink","component":"other","candidate":"x","session":"S"}`, confirmS1)
	id, record := r.next()
	require.Equal(t, "grant", record.Kind)
	require.Equal(t, view.Applied, record.Verdict, "every record comes with its verdict")
	r.close()
	h.say(revokeS1)
	r = h.watch("/v1/watch?group=flink&component=rest", id)
	for _, kind := range []string{"confirm", "revoke"} {
		_, record = r.next()
		require.Equal(t, kind, record.Kind)
	}
	h.say(strings.Replace(grantS1, "S1", "S2", 1))
	_, record = r.next()
	require.Equal(t, "grant", record.Kind)
}

func TestWatchFrom(t *testing.T) {
	h := start(t, options{})
	acks := h.say(grantS1, confirmS1)
	for from, kind := range map[string]string{
		fmt.Sprintf("seq:%d", acks[1].Sequence): "confirm", "-1h": "grant",
	} {
		_, record := h.watch("/v1/watch?group=flink&component=rest&from="+from, "").next()
		require.Equal(t, kind, record.Kind)
	}
	_, record := h.watch("/v1/watch?kind=confirm&from=seq:1", "").next()
	require.Equal(t, "confirm", record.Kind)
	for _, query := range []string{"from=x", "component=c", "to=seq:1"} {
		require.Equal(t, http.StatusBadRequest, h.do("GET", "/v1/watch?"+query, "", "").status, query)
	}
	require.Equal(t, http.StatusBadRequest, h.do("GET", "/v1/watch", "", "", "Last-Event-ID", "x").status)
}

// TestWatchIsOneLineARecord has a stored event with line breaks, as NATS clients may send it.
func TestWatchIsOneLineARecord(t *testing.T) {
	h := start(t, options{})
	r := h.watch("/v1/watch?group=flink", "")
	pretty := strings.ReplaceAll(fmt.Sprintf(cloudEvent, "p"), ",", ",\n  ")
	_, err := h.log.JetStream().Publish(t.Context(), "leadership.flink.rest.grant", []byte(pretty))
	require.NoError(t, err)
	_, record := r.next()
	require.Equal(t, view.Applied, record.Verdict)
}

func TestShutdownEndsStreams(t *testing.T) {
	ended := make(chan error, 1)
	t.Run("serving", func(t *testing.T) {
		h := start(t, options{})
		r := h.watch("/v1/watch", "")
		go func() {
			for {
				if _, err := r.lines.ReadString('\n'); err != nil {
					ended <- err
					return
				}
			}
		}()
	})
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(20 * time.Second):
		require.FailNow(t, "the stream outlived its server")
	}
}

// TestLongAnswersOutliveTheWriteTimeout has a stream and a wait go on for longer than other answers may take.
func TestLongAnswersOutliveTheWriteTimeout(t *testing.T) {
	const writing = 100 * time.Millisecond
	h := start(t, options{writing: writing, settings: projector.Settings{Defaults: policy.Default(), Groups: map[string]projector.Group{
		"flink": {Policy: policy.Default(), Targets: []journal.Target{{Name: "cm", Kind: "memory"}}},
	}}})
	r := h.watch("/v1/watch?group=flink&kind=confirm", "")
	h.say(grantS1)
	began := time.Now()
	a := h.do("POST", "/v1/events?wait=published&timeout=400ms", "", confirmS1)
	require.Equal(t, http.StatusGatewayTimeout, a.status, "nothing is published, and the wait was not cut short: "+a.body)
	require.Greater(t, time.Since(began), 3*writing)
	_, record := r.next()
	require.Equal(t, "confirm", record.Kind)
	h.say(strings.Replace(confirmS1, `"attempt":1`, `"attempt":2`, 1))
	_, record = r.next()
	require.Equal(t, view.Duplicate, record.Verdict)
}
