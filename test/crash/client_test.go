package crash_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/leadership-journal/journald/internal/testenv/journald"
)

// answerTimeout is how long a service waits before it counts its answer as lost.
const answerTimeout = 2 * time.Second

// client speaks HTTP to journald as services do.
type client struct{ *journald.Client }

func newClient() *client { return &client{journald.NewClient()} }

// standing is what an instance says about itself.
type standing struct {
	ready    bool
	acts     bool
	epoch    uint64
	sequence uint64 // of the view
	hash     string // of the view then
	text     string
}

var (
	roleLine = regexp.MustCompile(`projector: (this|another) instance acts, epoch (\d+)`)
	viewLine = regexp.MustCompile(`view: sequence (\d+), viewHash ([0-9a-f]{64})`)
)

func (c *client) standing(ctx context.Context, i *journald.Process) (standing, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	text, err := c.Do(ctx, http.MethodGet, i.URL()+"/readyz?verbose", nil)
	s := standing{ready: err == nil, text: string(text)}
	if r, ok := errors.AsType[*journald.Refusal](err); ok && r.Status == http.StatusServiceUnavailable {
		s.text, err = r.Text, nil
	}
	if err != nil {
		return s, err
	}
	role, view := roleLine.FindStringSubmatch(s.text), viewLine.FindStringSubmatch(s.text)
	if role == nil || view == nil {
		return s, fmt.Errorf("readyz does not say who acts and how the view stands: %s", s.text)
	}
	s.acts, s.hash = role[1] == "this", view[2]
	var err1, err2 error
	s.epoch, err1 = strconv.ParseUint(role[2], 10, 64)
	s.sequence, err2 = strconv.ParseUint(view[1], 10, 64)
	return s, errors.Join(err1, err2)
}
