package client

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
)

// refusal is an answer that is no success.
type refusal struct {
	server  string
	problem api.Problem
	ours    bool // a journald wrote it, not something before it
}

// maxRefusal is how much of an answer is read that is no success.
const maxRefusal = 1 << 20

func readRefusal(server string, answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if err != nil {
		return fmt.Errorf("read the answer of %s, %s: %w", server, answer.Status, err)
	}
	r := &refusal{server: server}
	r.ours = json.Unmarshal(text, &r.problem) == nil && strings.HasPrefix(r.problem.Type, api.ProblemPrefix)
	if !r.ours {
		r.problem = api.Problem{}
	}
	r.problem.Status = answer.StatusCode
	return r
}

func (r *refusal) Error() string {
	if !r.ours {
		return fmt.Sprintf("%s answered %d %s, not as a journald does; check the server's URL, and what stands between",
			r.server, r.problem.Status, http.StatusText(r.problem.Status))
	}
	code := strings.TrimPrefix(r.problem.Type, api.ProblemPrefix)
	return fmt.Sprintf("%s answered %d %s: %s", r.server, r.problem.Status, code, r.problem.Detail)
}

// Unwrap says what the answer means for events.
func (r *refusal) Unwrap() error {
	switch {
	case r.ours && (r.problem.Status == http.StatusBadRequest || r.problem.Status == http.StatusRequestEntityTooLarge):
		return journal.ErrInvalid
	case r.ours && r.problem.Status == http.StatusInsufficientStorage:
		return journal.ErrFull
	}
	return nil
}

// final says that it would be refused again. What stands before a journald is believed only where it says that this is not
// allowed: it may just not have found its journald.
func (r *refusal) final() bool {
	switch status := r.problem.Status; status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusConflict:
		return false
	case http.StatusUnauthorized, http.StatusForbidden:
		return true
	default:
		return r.ours && status >= 400 && status < 500
	}
}

// general says that any other journald on the same journal would answer the same.
func (r *refusal) general() bool {
	return r.final() || r.ours && (r.problem.Status == http.StatusConflict || r.problem.Status == http.StatusInsufficientStorage)
}
