package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	defaultTimeout = 15 * time.Second
	maxAnswer      = 256 << 20
)

// remote is the journald that a command asks.
type remote struct {
	*process
	server  string
	timeout time.Duration
}

// componentPath is where a component is, its names escaped so that a slash in them stays one.
func componentPath(group, component string) string {
	return "/v1/groups/" + url.PathEscape(group) + "/components/" + url.PathEscape(component)
}

func (r *remote) get(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	answer, err := r.do(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	return r.read(answer, into)
}

// do sends a request. An answer is one that succeeded; any other is a [problem].
func (r *remote) do(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	base, err := url.Parse(r.server)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, usage(fmt.Errorf("--server %q is no URL such as http://127.0.0.1:8086", r.server))
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(r.server, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, usage(fmt.Errorf("ask %s: %w", r.server, err))
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, r.unanswered(ctx, err)
	}
	if answer.StatusCode < 300 {
		return answer, nil
	}
	return nil, refused(answer)
}

// unanswered says what a failed request means to whoever typed the command.
func (r *remote) unanswered(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &exitError{exitTimeout, fmt.Errorf("no answer from %s within %s; is it overloaded? --timeout waits longer", r.server, r.timeout)}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return unreachable(fmt.Errorf("can't reach journald at %s: %w\nstart one with `journald serve`, or say where it is with --server",
		r.server, err))
}

func refused(answer *http.Response) error {
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	p := &problem{}
	if err != nil || json.Unmarshal(text, &p.Problem) != nil || p.Status == 0 {
		return unreachable(fmt.Errorf("%s answered %s, not as a journald does; check --server", answer.Request.URL.Host, answer.Status))
	}
	return p
}

func (r *remote) read(answer *http.Response, into any) error {
	defer answer.Body.Close()
	if err := json.UnmarshalRead(io.LimitReader(answer.Body, maxAnswer), into); err != nil {
		return unreachable(fmt.Errorf("the answer of %s can't be read: %w", r.server, err))
	}
	return nil
}

// splitName reads GROUP/COMPONENT.
func splitName(name string) (group, component string, err error) {
	group, component, ok := strings.Cut(name, "/")
	if !ok || group == "" || component == "" {
		return "", "", usage(fmt.Errorf("%q is not GROUP/COMPONENT, such as flink-prod/restserver", name))
	}
	return group, component, nil
}
