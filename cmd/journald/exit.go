package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/url"

	"github.com/leadership-journal/journald/config"
	"github.com/leadership-journal/journald/internal/api"
)

// The exit codes.
const (
	exitYes         = 0
	exitNo          = 1 // the answer is no: differs, fails, not met
	exitUsage       = 2 // usage or configuration
	exitUnreachable = 3 // a dependency can't be reached
	exitTimeout     = 4
	exitConflict    = 5 // conflict or superseded
	exitBug         = 70
	exitInterrupted = 130
)

// exitError is an error that says how the process ends.
type exitError struct {
	code int
	err  error
}

// Error is the error's own text.
func (e *exitError) Error() string { return e.err.Error() }

// Unwrap is the error itself.
func (e *exitError) Unwrap() error { return e.err }

// errSaid is wrapped by errors that need no word more: what was printed says it.
var errSaid = errors.New("as printed")

func usage(err error) error {
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	return &exitError{exitUsage, err}
}

func no(err error) error { return &exitError{exitNo, err} }

func unreachable(err error) error { return &exitError{exitUnreachable, err} }

// exitCode maps an error to the code that scripts go by.
func exitCode(ctx context.Context, err error) int {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTerminated) && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, errTerminated)):
		return exitYes
	case errors.Is(cause, errInterrupted):
		return exitInterrupted
	case err == nil:
		return exitYes
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if p, ok := errors.AsType[*problem](err); ok {
		return problemCode(p.Status)
	}
	if _, ok := errors.AsType[config.Problems](err); ok {
		return exitUsage
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return exitTimeout
	}
	if isUnreachable(err) {
		return exitUnreachable
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return exitUsage
	}
	return exitBug
}

func isUnreachable(err error) bool {
	_, op := errors.AsType[*net.OpError](err)
	_, dns := errors.AsType[*net.DNSError](err)
	_, request := errors.AsType[*url.Error](err)
	return op || dns || request
}

func problemCode(status int) int {
	switch status {
	case http.StatusNotFound:
		return exitNo
	case http.StatusConflict, http.StatusPreconditionFailed:
		return exitConflict
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return exitTimeout
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusInsufficientStorage, http.StatusTooManyRequests:
		return exitUnreachable
	case http.StatusInternalServerError:
		return exitBug
	}
	return exitUsage
}

// problem is an answer of the server that is not the one that was hoped for.
type problem struct{ api.Problem }

// Error is the detail, or everything that is wrong with the input.
func (p *problem) Error() string {
	text := first(p.Detail, p.Title)
	if len(p.Errors) < 2 {
		return text
	}
	text = "the server refuses this:"
	for _, e := range p.Errors {
		text += "\n  " + e.Field + ": " + e.Problem
	}
	return text
}
