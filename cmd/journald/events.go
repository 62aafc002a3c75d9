package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/leadership-journal/journald/internal/api"
)

// events prints records as they come, page by page, and then what is appended.
func (g *getter) events(ctx context.Context, out *printer, group, component string) error {
	query := url.Values{"limit": {"1000"}}
	for key, value := range map[string]string{"group": group, "component": component, "kind": g.kind, "from": g.from, "to": g.to} {
		if value != "" {
			query.Set(key, value)
		}
	}
	printed, last := 0, uint64(0)
	var collected []row
	for {
		if g.limit > 0 {
			query.Set("limit", strconv.Itoa(min(1000, g.limit-printed)))
		}
		var page api.Records
		if err := g.get(ctx, "/v1/events?"+query.Encode(), &page); err != nil {
			return err
		}
		rows := recordRows(page.Records)
		if printed += len(rows); len(rows) > 0 {
			last = page.Records[len(rows)-1].Sequence
		}
		if out.format == "json" || out.format == "yaml" {
			collected = append(collected, rows...) // they are one document
		} else if err := out.print(recordListing(rows)); err != nil {
			return err
		}
		out.bare = out.bare || len(rows) > 0
		if page.Next == "" || g.limit > 0 && printed >= g.limit {
			break
		}
		query.Set("cursor", page.Next)
	}
	if out.format == "json" || out.format == "yaml" {
		if err := out.print(recordListing(collected)); err != nil {
			return err
		}
	}
	if g.follow {
		return g.followEvents(ctx, out, group, component, last)
	}
	if printed == 0 {
		fmt.Fprintln(g.err, "No record matches.")
	}
	return nil
}

func (g *getter) followEvents(ctx context.Context, out *printer, group, component string, last uint64) error {
	return g.stream(ctx, watchQuery(group, component, g.kind), last, func(r *api.Record) error {
		return out.print(recordListing(recordRows([]api.Record{*r})))
	})
}

func recordListing(rows []row) *listing {
	return &listing{columns: []string{"SEQUENCE", "TIME", "ABOUT", "KIND", "VERDICT", "WHAT", "REASON"}, wide: 1, rows: rows}
}

func recordRows(records []api.Record) []row {
	var rows []row
	for _, r := range records {
		sequence := strconv.FormatUint(r.Sequence, 10)
		about, what := summary(&r)
		rows = append(rows, row{sequence, []string{
			sequence, r.Time.UTC().Format(time.RFC3339), about, dash(r.Kind), dash(string(r.Verdict)), what, dash(r.Reason),
		}, r})
	}
	return rows
}

// summary is what a record is about, and the members of its data that tell the most.
func summary(r *api.Record) (about, what string) {
	var event struct {
		Subject string         `json:"subject"`
		Data    map[string]any `json:"data"`
	}
	if len(r.Event) == 0 || json.Unmarshal(r.Event, &event) != nil {
		return r.Subject, "-"
	}
	var words []string
	for _, key := range []string{"candidate", "session", "address", "target", "outcome", "name", "instance", "status", "reason", "error"} {
		if text, ok := event.Data[key].(string); ok && text != "" {
			words = append(words, key+"="+text)
		}
	}
	return event.Subject, dash(strings.Join(words, " "))
}
