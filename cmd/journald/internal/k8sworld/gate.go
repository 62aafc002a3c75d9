package k8sworld

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/leadership-journal/journald/scenario"
)

// gated has every write pass the scenario's gate before it leaves the process.
func gated(next http.RoundTripper) http.RoundTripper { return transport{next} }

type transport struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		return t.next.RoundTrip(request)
	}
	body, err := drain(request)
	if err != nil {
		return nil, err
	}
	var response *http.Response
	err = scenario.Gate(request.Context(), func(ctx context.Context) error {
		again := request.Clone(ctx)
		again.Body = io.NopCloser(bytes.NewReader(body))
		var err error
		response, err = t.next.RoundTrip(again) //nolint:bodyclose // the client closes it, or answer below
		return err
	})
	var fault *scenario.Injected
	if errors.As(err, &fault) {
		return answer(request, response, fault.Word)
	}
	return response, err
}

func drain(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	defer request.Body.Close()
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, fmt.Errorf("read a request's body: %w", err)
	}
	return body, nil
}

// answer is what the client sees of a fault: the true answer, if there was one, is lost.
func answer(request *http.Request, lost *http.Response, word string) (*http.Response, error) {
	if lost != nil {
		if err := lost.Body.Close(); err != nil {
			return nil, fmt.Errorf("close an answer that is lost: %w", err)
		}
	}
	codes := map[string]int{
		"unavailable": http.StatusServiceUnavailable, "throttled": http.StatusTooManyRequests, "forbidden": http.StatusForbidden,
		"conflict": http.StatusConflict, "not-found": http.StatusNotFound, "invalid": http.StatusUnprocessableEntity,
	}
	code, ok := codes[word]
	if !ok {
		return nil, fmt.Errorf("the answer is lost: %w", os.ErrDeadlineExceeded)
	}
	response := &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
	}
	if code == http.StatusTooManyRequests {
		response.Header.Set("Retry-After", "2")
	}
	text := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected by the scenario","code":%d}`, code)
	response.Body = io.NopCloser(bytes.NewReader([]byte(text)))
	response.ContentLength = int64(len(text))
	return response, nil
}
