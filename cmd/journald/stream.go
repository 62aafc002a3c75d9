package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/internal/sse"
)

func watchQuery(group, component, kind string) url.Values {
	query := url.Values{}
	for key, value := range map[string]string{"group": group, "component": component, "kind": kind} {
		if value != "" {
			query.Set(key, value)
		}
	}
	return query
}

// stream hands over records as they are appended after a sequence, or from now on for 0, until ctx ends. A connection
// that breaks is made again, and goes on after the last record.
func (r *remote) stream(ctx context.Context, query url.Values, last uint64, each func(*api.Record) error) error {
	connected := false
	for {
		err := r.streamOnce(ctx, query, &last, each)
		connected = connected || errors.Is(err, errBroken)
		if connected && isUnreachable(err) {
			err = errBroken
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, errBroken) {
			return err
		}
		fmt.Fprintln(r.err, "The connection broke; trying again.")
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errBroken = errors.New("the stream broke")

func (r *remote) streamOnce(ctx context.Context, query url.Values, last *uint64, each func(*api.Record) error) error {
	if *last > 0 {
		query.Set("from", "seq:"+strconv.FormatUint(*last+1, 10))
	}
	answer, err := r.do(ctx, http.MethodGet, "/v1/watch?"+query.Encode(), "", nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	events := sse.NewReader(answer.Body, func() {})
	for {
		event, err := events.Next()
		if err != nil {
			return errBroken
		}
		var record api.Record
		if err := json.Unmarshal([]byte(event.Data), &record); err != nil || record.Sequence == 0 {
			return unreachable(fmt.Errorf("the server ended the stream: %s", event.Data))
		}
		*last = record.Sequence
		if err := each(&record); err != nil {
			return err
		}
	}
}

// watch prints the rows of a listing anew that changed with a record.
func (g *getter) watch(ctx context.Context, out *printer, group string, l *listing, list func() (*listing, error)) error {
	out.bare = len(l.rows) > 0
	shown := map[string][]string{}
	for _, r := range l.rows {
		shown[r.name] = stable(l, r)
	}
	return g.stream(ctx, watchQuery(group, "", ""), 0, func(*api.Record) error {
		next, err := list()
		if err != nil {
			return err
		}
		changed := *next
		changed.rows = nil
		for _, r := range next.rows {
			if !slices.Equal(shown[r.name], stable(next, r)) {
				shown[r.name] = stable(next, r)
				changed.rows = append(changed.rows, r)
			}
		}
		err = out.print(&changed)
		out.bare = out.bare || len(changed.rows) > 0
		return err
	})
}

// stable are the cells that time alone does not change.
func stable(l *listing, r row) []string {
	var cells []string
	for i, c := range r.cells {
		if l.columns[i] != "AGE" && l.columns[i] != "LASTED" {
			cells = append(cells, c)
		}
	}
	return cells
}
