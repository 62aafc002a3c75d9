package projector

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// heard is a logger, and what it was told at Info and above.
func heard() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), &b
}

// pushing hands outcomes to complaints, a second apart.
type pushing struct {
	*complaints
	t   *testing.T
	out *bytes.Buffer
	now time.Time
}

func newPushing(t *testing.T) *pushing {
	logger, out := heard()
	return &pushing{newComplaints(logger), t, out, time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}
}

func (p *pushing) push(component string, err error, rejected map[string]error) {
	doc := &Document{Sequence: 12, Entries: map[string]Entry{"rest": {}, "jobs": {}}}
	if component != "" {
		doc.Entries = map[string]Entry{component: {}}
	}
	p.pushed(p.t.Context(), Push{Object: Object{"g", "cm", component}, Document: doc}, Receipt{Revision: 7, Rejected: rejected}, err, p.now)
	p.now = p.now.Add(time.Second)
}

// says is what the log has heard since it was asked last.
func (p *pushing) says(lines ...string) {
	p.t.Helper()
	want := ""
	if len(lines) > 0 {
		want = strings.Join(lines, "\n") + "\n"
	}
	require.Equal(p.t, want, p.out.String())
	p.out.Reset()
}

func TestALongFailureIsToldWhenItBeginsChangesAndEnds(t *testing.T) {
	p := newPushing(t)
	for i := range 100 {
		p.push("", fmt.Errorf("dial 10.0.0.1:%d: refused", 40000+i), nil)
	}
	p.says(`level=WARN msg="a push failed" group=g target=cm sequence=12 failures=1 error="dial 10.0.0.1:40000: refused"`)
	p.push("", ErrConflict, nil)
	p.says()
	p.push("", errors.New("forbidden"), nil)
	p.push("", errors.New("forbidden"), nil)
	p.says(`level=WARN msg="a push failed" group=g target=cm sequence=12 failures=101 error=forbidden`)
	p.push("", nil, nil)
	p.push("", nil, nil)
	p.says(`level=INFO msg="pushes succeed again" group=g target=cm sequence=12 revision=7 failures=102 after=1m43s stillFailing=0`)
	p.push("", errors.New("forbidden"), nil)
	p.says(`level=WARN msg="a push failed" group=g target=cm sequence=12 failures=1 error=forbidden`)
	p.forget()
	p.push("", errors.New("forbidden"), nil)
	p.says(`level=WARN msg="a push failed" group=g target=cm sequence=12 failures=1 error=forbidden`)
}

// TestManyObjectsThatFailAlikeAreOneLine has a thousand of them, and one that fails in a way of its own.
func TestManyObjectsThatFailAlikeAreOneLine(t *testing.T) {
	p := newPushing(t)
	for range 3 {
		for i := range 1000 {
			p.push(fmt.Sprintf("job-%d", i), errors.New("unreachable"), nil)
		}
	}
	p.push("odd", errors.New("forbidden"), nil)
	p.says(`level=WARN msg="a push failed" group=g target=cm sequence=12 component=job-0 failures=1 error=unreachable`,
		`level=WARN msg="a push failed" group=g target=cm sequence=12 component=odd failures=1 error=forbidden`)
	for i := range 1000 {
		p.push(fmt.Sprintf("job-%d", i), nil, nil)
	}
	p.says(`level=INFO msg="pushes succeed again" group=g target=cm sequence=12 revision=7 component=job-999 failures=3 ` +
		`after=50m1s stillFailing=1`)
	p.push("job-1", errors.New("unreachable"), nil)
	require.Contains(t, p.out.String(), "WARN", "it is told again, though another one fails all the while")
}

func TestManyKindsOfFailureAreNotAllTold(t *testing.T) {
	p := newPushing(t)
	name := func(i int) string { return "job-" + string(rune('a'+i/26)) + string(rune('a'+i%26)) }
	for i := range 600 {
		p.push(name(i), errors.New("no such object as "+name(i)), nil)
	}
	require.Equal(t, mostKinds, strings.Count(p.out.String(), "WARN"))
	for i := range 600 {
		p.push(name(i), nil, nil)
	}
	require.Equal(t, mostKinds, strings.Count(p.out.String(), "INFO"))
	require.Empty(t, p.targets, "nothing is kept of what is over")
}

// TestAComponentThatTheLayoutCannotHoldIsTold though the push of the others succeeds.
func TestAComponentThatTheLayoutCannotHoldIsTold(t *testing.T) {
	p := newPushing(t)
	for range 3 {
		p.push("", nil, map[string]error{"jobs": errors.New("no UUID")})
	}
	p.says(`level=WARN msg="a push failed" group=g target=cm sequence=12 revision=7 component=jobs failures=1 error="no UUID"`)
	p.push("", nil, nil)
	p.says(`level=INFO msg="pushes succeed again" group=g target=cm sequence=12 revision=7 component=jobs failures=3 after=3s stillFailing=0`)
}

func TestTheBuiltInBucketHasAName(t *testing.T) {
	p := newPushing(t)
	p.pushed(t.Context(), Push{Object: Object{Group: "g", Component: "rest"}, Document: &Document{Sequence: 3}}, Receipt{}, ErrUnknownOutcome, p.now)
	p.says(`level=WARN msg="a push failed" group=g target=kv sequence=3 component=rest failures=1 error="the outcome of the write is unknown"`)
}
