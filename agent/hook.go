package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/leadership-journal/journald/internal/program"
)

// Notice is what a hook is told. An HTTP hook has it as its body, in JSON; a program has it at its standard input, and as
// variables JOURNALD_HOOK, JOURNALD_GROUP and so on. Hooks may be called again with the same notice, after one that failed
// or whose answer was lost: what they do has to bear that.
type Notice struct {
	Hook      string `json:"hook"` // onYield, onFit, onGranted or onRevoked
	Group     string `json:"group"`
	Candidate string `json:"candidate"`
	Component string `json:"component"`
	Session   string `json:"session,omitzero"` // of the term
	Epoch     uint64 `json:"epoch,omitzero"`   // the fencing token
	Reason    string `json:"reason,omitzero"`
	To        string `json:"to,omitzero"` // who is to follow
}

func (n *Notice) variables() []string {
	return []string{
		"JOURNALD_HOOK=" + n.Hook, "JOURNALD_GROUP=" + n.Group, "JOURNALD_CANDIDATE=" + n.Candidate, "JOURNALD_COMPONENT=" + n.Component,
		"JOURNALD_SESSION=" + n.Session, "JOURNALD_EPOCH=" + strconv.FormatUint(n.Epoch, 10), "JOURNALD_REASON=" + n.Reason,
		"JOURNALD_TO=" + n.To,
	}
}

// call has the hook done once. It returns when it is done, or has failed, or at the latest when its time-out has passed or
// ctx ends. A hook that is not there is done.
func (h *Hook) call(ctx context.Context, n Notice) error {
	if !h.said() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(h.Timeout), fmt.Errorf("it was not done within %s", h.Timeout))
	defer cancel()
	text, err := json.Marshal(&n)
	if err != nil {
		return fmt.Errorf("hook %s: %w", n.Hook, err)
	}
	if h.HTTP.URL != "" {
		err = h.HTTP.send(ctx, text)
	} else {
		err = program.Program{Command: h.Command, Env: n.variables(), Input: text}.Run(ctx)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("hook %s: %w: %w", n.Hook, context.Cause(ctx), err)
	}
	return fmt.Errorf("hook %s: %w", n.Hook, err)
}

const mostOfAnswer = 4 << 10

// send succeeds with an answer of 2xx. It follows no redirect, which would be another request, and goes through no proxy.
func (r *Request) send(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DialContext: new(net.Dialer).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostOfAnswer))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", r.URL, err)
	}
	if answer.StatusCode/100 != 2 {
		line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		return errors.New(r.URL + " answers " + answer.Status + ": " + line)
	}
	return nil
}
