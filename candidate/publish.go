package candidate

import (
	"context"
	"fmt"
	"time"

	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/journal"
)

const (
	shortestPause = 50 * time.Millisecond
	longestPause  = 2 * time.Second
	appendTimeout = 15 * time.Second // for one try
)

// publish stores an event, again and again until it is answered, ctx ends, or it is refused for good. An empty component
// means the whole group.
func (m *member) publish(ctx context.Context, component string, data journal.Data) (client.Ack, error) {
	e := m.cfg.event(data)
	e.Component = component
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		ack, err := m.try(ctx, e)
		if err == nil {
			return ack, nil
		}
		if ctx.Err() != nil {
			return client.Ack{}, fmt.Errorf("tell the journal of a %s: %w", data.Kind(), context.Cause(ctx))
		}
		if client.Final(err) {
			return client.Ack{}, fmt.Errorf("tell the journal of a %s: %w", data.Kind(), err)
		}
		m.health.away()
		m.logger.Debug("the journal could not be told", "kind", data.Kind(), "error", err, "retryIn", pause)
		if !sleep(ctx, pause) {
			return client.Ack{}, fmt.Errorf("tell the journal of a %s: %w", data.Kind(), context.Cause(ctx))
		}
	}
}

func (m *member) try(ctx context.Context, e *journal.Event) (client.Ack, error) {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	acks, err := m.cfg.Client.Append(ctx, *e)
	if err != nil {
		return client.Ack{}, err
	}
	return acks[0], nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
