package k8s

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leadership-journal/journald/projector"
)

func notFound(err error) bool { return apierrors.IsNotFound(err) }

// classifyRead says what a failed read means. Nothing was written, whatever it is.
func classifyRead(err error) error {
	if refusedForGood(code(err)) {
		return fmt.Errorf("%w: %w", projector.ErrPermanent, err)
	}
	return delayed(err)
}

// classifyWrite says what a failed write means. Only a refusal proves that nothing was written: 4xx, 429 included,
// which the API server answers before it does anything. Any 5xx may come after the write, from the server (etcd was
// slow, its leader changed) or from a proxy that lost the answer, and counts as unknown, as does a lost connection.
// What never had a connection was not sent.
func classifyWrite(err error, sent, creating bool) error {
	status := code(err)
	switch {
	case status == 0 && !sent:
		return err
	case status == 0, status >= http.StatusInternalServerError:
		return delayed(fmt.Errorf("%w: %w", projector.ErrUnknownOutcome, err))
	case status == http.StatusConflict, status == http.StatusNotFound && !creating: // it was there when it was read
		return fmt.Errorf("%w: %w", projector.ErrConflict, err)
	case status == http.StatusNotFound, refusedForGood(status): // 404 on a creation is the namespace's
		return fmt.Errorf("%w: %w", projector.ErrPermanent, err)
	}
	return delayed(err)
}

// refusedForGood says whether the same request will be refused until somebody changes something. Credentials that
// expired (401) are renewed without anybody's doing.
func refusedForGood(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusConflict, http.StatusNotFound:
		return false
	}
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError
}

// code is the API server's answer, or 0 where there was none.
func code(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return int(status.Status().Code)
	}
	return 0
}

// delayed carries how long the API server wants to be left alone.
func delayed(err error) error {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		return &projector.RetryAfter{After: time.Duration(seconds) * time.Second, Err: err}
	}
	return err
}
