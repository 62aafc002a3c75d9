package k8s

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leadership-journal/journald/projector"
)

func answered(status, retryAfter int) error {
	return fmt.Errorf("update: %w", apierrors.NewGenericServerResponse(status, "put", schema.GroupResource{}, "", "", retryAfter, true))
}

func TestWhatAFailedWriteMeans(t *testing.T) {
	plain := errors.New("plain")
	for _, c := range []struct {
		name     string
		err      error
		sent     bool
		creating bool
		want     error
		after    time.Duration
	}{
		{"refused connection", errors.New("dial"), false, false, plain, 0},
		{"cancelled before it was sent", context.Canceled, false, false, plain, 0},
		{"broken connection", errors.New("EOF"), true, false, projector.ErrUnknownOutcome, 0},
		{"cancelled", context.Canceled, true, false, projector.ErrUnknownOutcome, 0},
		{"400", answered(400, 0), true, false, projector.ErrPermanent, 0},
		{"401", answered(401, 0), true, false, plain, 0},
		{"403", answered(403, 0), true, false, projector.ErrPermanent, 0},
		{"404 on an update", answered(404, 0), true, false, projector.ErrConflict, 0},
		{"404 on a creation", answered(404, 0), true, true, projector.ErrPermanent, 0},
		{"405", answered(405, 0), true, false, projector.ErrPermanent, 0},
		{"409", answered(409, 0), true, false, projector.ErrConflict, 0},
		{"409 on a creation", answered(409, 0), true, true, projector.ErrConflict, 0},
		{"413", answered(413, 0), true, false, projector.ErrPermanent, 0},
		{"422", answered(422, 0), true, false, projector.ErrPermanent, 0},
		{"429", answered(429, 7), true, false, plain, 7 * time.Second},
		{"500", answered(500, 0), true, false, projector.ErrUnknownOutcome, 0},
		{"502", answered(502, 0), true, false, projector.ErrUnknownOutcome, 0},
		{"503", answered(503, 3), true, false, projector.ErrUnknownOutcome, 3 * time.Second},
		{"504", answered(504, 0), true, false, projector.ErrUnknownOutcome, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := classifyWrite(c.err, c.sent, c.creating)
			requireClass(t, err, c.want)
			requireRetryAfter(t, err, c.after)
			require.ErrorIs(t, err, c.err)
		})
	}
}

func requireClass(t *testing.T, err, want error) {
	t.Helper()
	for _, class := range []error{projector.ErrConflict, projector.ErrPermanent, projector.ErrUnknownOutcome, projector.ErrSuperseded} {
		require.Equal(t, errors.Is(want, class), errors.Is(err, class), "%v of %v", class, err)
	}
}

func requireRetryAfter(t *testing.T, err error, want time.Duration) {
	t.Helper()
	var after *projector.RetryAfter
	require.Equal(t, want != 0, errors.As(err, &after))
	if want != 0 {
		require.Equal(t, want, after.After)
	}
}

func TestWhatAFailedReadMeans(t *testing.T) {
	plain := errors.New("plain")
	for status, want := range map[int]error{
		0: plain, 401: plain, 403: projector.ErrPermanent, 429: plain, 500: plain, 503: plain, 504: plain,
	} {
		requireClass(t, classifyRead(answered(status, 0)), want)
	}
	requireRetryAfter(t, classifyRead(answered(429, 2)), 2*time.Second)
	requireClass(t, classifyRead(errors.New("EOF")), plain)
}
