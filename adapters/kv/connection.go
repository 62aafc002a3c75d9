package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// requestTimeout bounds one request to the server.
const requestTimeout = 5 * time.Second

var (
	errDisconnected = errors.New("the connection broke before the answer")
	errUnconnected  = errors.New("there is no connection, nothing was sent")
)

// whileConnected is the time of one request. A connection that breaks ends it, since no answer can come any more; the
// client would wait for one. What is sent without a connection would be kept by the client and sent later, so it is
// not. done has to be called.
func whileConnected(ctx context.Context, conn *nats.Conn) (_ context.Context, done func(), err error) {
	lost := conn.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	if !conn.IsConnected() {
		conn.RemoveStatusListener(lost)
		return nil, nil, errUnconnected
	}
	ctx, end := context.WithCancelCause(ctx)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, broke := <-lost; broke {
			end(errDisconnected)
		}
	}()
	return ctx, func() {
		conn.RemoveStatusListener(lost) // closes it
		<-ended
		cancel()
		end(nil)
	}, nil
}

// because adds why the request was ended.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
