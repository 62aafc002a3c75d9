package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/leadership-journal/journald/internal/api"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/view"
)

// publisher is one use of `journald publish`.
type publisher struct {
	*remote
	file   string
	wait   string
	id     string
	source string
	format string
}

func newPublish(r *remote) *cobra.Command {
	p := &publisher{remote: r}
	c := &cobra.Command{
		Use:   "publish KIND GROUP[/COMPONENT] key=value ... | publish -f FILE",
		Short: "Store events in the journal",
		Long: "Store events in the journal, and say under which sequence. It returns when they are on disk.\n\n" +
			"A value is text, but for the members that are numbers, true/false or lists (a,b,c). key.sub=value sets a member\n" +
			"of an object, key:=JSON any value. With -f every line of a file (- for standard input) is an event: a CloudEvent,\n" +
			"or the short form {\"kind\": ..., \"group\": ..., ...}.",
		Example: "  journald publish grant flink-prod/restserver candidate=jm-1 session=S1\n" +
			"  journald publish confirm flink-prod/restserver candidate=jm-1 session=S1 address=http://jm-1:8081 --wait applied\n" +
			"  journald publish join flink-prod candidate=jm-1 incarnation=1 components=restserver,dispatcher\n" +
			"  journald publish -f events.jsonl",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case p.file != "" && len(args) > 0:
				return errors.New("either -f FILE or KIND GROUP/COMPONENT, not both")
			case p.file == "" && len(args) < 2:
				return errors.New("say KIND and GROUP[/COMPONENT], or -f FILE; `journald publish --help` has examples")
			}
			return nil
		},
		ValidArgsFunction: completePublish(r),
		RunE: func(c *cobra.Command, args []string) error {
			if p.file != "" {
				return p.publishFile(c.Context())
			}
			return p.publishOne(c.Context(), args)
		},
	}
	c.Flags().StringVarP(&p.file, "file", "f", "", "events, one a line; - for standard input")
	c.Flags().StringVar(&p.wait, "wait", "", "applied: with the verdict; published: until every target shows it")
	c.Flags().StringVar(&p.id, "id", "", "id of the event, so that saying it again is harmless (default a new one)")
	c.Flags().StringVar(&p.source, "source", "", "who says so (default from the candidate or the actor)")
	addFormat(c, &p.format)
	return c
}

func (p *publisher) publishOne(ctx context.Context, args []string) error {
	event, err := p.short(args[0], args[1], args[2:])
	if err != nil {
		return usage(err)
	}
	text, err := json.Marshal(event, json.Deterministic(true))
	if err != nil {
		return usage(fmt.Errorf("write the event as JSON: %w", err))
	}
	var ack api.Ack
	err = p.post(ctx, "application/json", text, &ack)
	refusal, refused := errors.AsType[*problem](err)
	if code := exitCode(ctx, err); (code == exitTimeout || code == exitUnreachable) && !(refused && len(refusal.Events) > 0) {
		return fmt.Errorf("%w\nit is not known whether the event is stored; saying it again with --id %s is harmless", err, event["id"])
	}
	if err != nil {
		return err
	}
	return p.report([]api.Ack{ack})
}

// short is the event in the short form.
func (p *publisher) short(kind, name string, pairs []string) (map[string]any, error) {
	group, component, _ := strings.Cut(name, "/")
	event := map[string]any{"kind": kind, "group": group}
	if component != "" {
		event["component"] = component
	}
	for _, pair := range pairs {
		if err := setMember(event, pair); err != nil {
			return nil, err
		}
	}
	p.complete(kind, event)
	if p.source != "" {
		event["source"] = p.source
	}
	if event["id"] = p.id; p.id == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("make an id: %w", err)
		}
		event["id"] = id.String()
	}
	return event, nil
}

// complete fills in what a person would have to look up: a number that rises, and who is asking.
func (p *publisher) complete(kind string, event map[string]any) {
	rising := map[string]string{"confirm": "attempt", "health": "run"}
	if name := rising[kind]; name != "" && event[name] == nil {
		event[name] = time.Now().UnixMilli()
	}
	switch kind {
	case "transfer", "exclude", "include", "pause", "resume", "policy":
		if event["actor"] == nil {
			event["actor"] = p.actingUser()
		}
	}
}

// setMember reads key=value, key.sub=value or key:=JSON.
func setMember(event map[string]any, pair string) error {
	key, text, ok := strings.Cut(pair, "=")
	if !ok || key == "" {
		return fmt.Errorf("%q is not key=value", pair)
	}
	key, raw := strings.CutSuffix(key, ":")
	value, err := memberValue(key, text, raw)
	if err != nil {
		return err
	}
	outer, inner, nested := strings.Cut(key, ".")
	if _, there := event[outer]; there && !nested {
		return fmt.Errorf("%s is said twice", outer)
	}
	if !nested {
		event[outer] = value
		return nil
	}
	object, ok := event[outer].(map[string]any)
	if !ok {
		object = map[string]any{}
		event[outer] = object
	}
	object[inner] = value
	return nil
}

func memberValue(key, text string, raw bool) (value any, err error) {
	switch {
	case raw:
		err = json.Unmarshal([]byte(text), &value)
	case isNumber(key):
		value, err = strconv.ParseInt(text, 10, 64)
	case key == "ready" || key == "force" || key == "gap":
		value, err = strconv.ParseBool(text)
	case key == "components" || key == "participants":
		value = strings.Split(text, ",")
	default:
		value = text
	}
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", key, text, err)
	}
	return value, nil
}

func isNumber(key string) bool {
	switch key {
	case "attempt", "run", "priority", "revision", "sequence", "lock.revision":
		return true
	}
	return false
}

// post sends events, and reads the answer.
func (p *publisher) post(ctx context.Context, contentType string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout+2*time.Second)
	defer cancel()
	path := "/v1/events"
	if p.wait != "" {
		path += "?" + url.Values{"wait": {p.wait}, "timeout": {min(p.timeout, longestWait).String()}}.Encode()
	}
	answer, err := p.do(ctx, http.MethodPost, path, contentType, body)
	if refusal, ok := errors.AsType[*problem](err); ok && len(refusal.Events) > 0 {
		return errors.Join(err, p.report(refusal.Events))
	}
	if err != nil {
		return err
	}
	return p.read(answer, into)
}

// report prints what became of events. The worst verdict is the answer.
func (p *publisher) report(acks []api.Ack) error {
	out, err := newPrinter(p.out, p.format)
	if err != nil {
		return err
	}
	l := &listing{columns: []string{"SEQUENCE", "VERDICT", "ID", "REASON"}}
	for _, a := range acks {
		verdict := dash(string(a.Verdict))
		if a.Duplicate {
			verdict = string(view.Duplicate)
		}
		if a.Published {
			verdict += ", published"
		}
		l.rows = append(l.rows, row{strconv.FormatUint(a.Sequence, 10), []string{strconv.FormatUint(a.Sequence, 10), verdict, a.ID,
			a.Reason}, a})
	}
	return errors.Join(out.print(l), verdictError(acks))
}

func verdictError(acks []api.Ack) error {
	for _, a := range acks {
		switch a.Verdict {
		case view.Stale, view.UnknownSession, view.Superseded, view.Void:
			return &exitError{exitConflict, errSaid}
		case view.Invalid:
			return no(errSaid)
		}
	}
	return nil
}

const (
	longestWait = 5 * time.Minute // that a server grants
	batchEvents = 500
	batchBytes  = 4 << 20
)

// publishFile sends a file in batches, each stored as a whole or not at all.
func (p *publisher) publishFile(ctx context.Context) (err error) {
	in := p.in
	if p.file != "-" {
		f, err := os.Open(p.file)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		in = f
	}
	lines := bufio.NewReaderSize(in, 64<<10)
	for sent := 0; ; {
		batch, n, err := readBatch(lines)
		if err != nil {
			return fmt.Errorf("read %s: %w", p.file, err)
		}
		if n == 0 {
			return nil
		}
		var acks []api.Ack
		if err := p.post(ctx, "application/x-ndjson", batch, &acks); err != nil {
			return p.stopped(err, sent)
		}
		if err := p.report(acks); err != nil {
			return err
		}
		sent += n
	}
}

// stopped says where a file ended to be sent, and how to go on.
func (p *publisher) stopped(err error, sent int) error {
	if sent == 0 {
		return err
	}
	return fmt.Errorf("%w\nthe first %d lines are stored; the others are not, or not known to be; go on with\n"+
		"  tail -n +%d %s | journald publish -f -",
		err, sent, sent+1, p.file)
}

// readBatch reads up to a batch of lines, and says how many.
func readBatch(lines *bufio.Reader) (batch []byte, n int, err error) {
	for n < batchEvents && len(batch) < batchBytes {
		line, err := lines.ReadBytes('\n')
		if len(line) > journal.MaxSize+1 {
			return nil, 0, fmt.Errorf("a line has more than %d bytes", journal.MaxSize)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			batch = append(append(batch, bytes.TrimSpace(line)...), '\n')
			n++
		}
		if errors.Is(err, io.EOF) {
			return batch, n, nil
		}
		if err != nil {
			return nil, 0, err
		}
	}
	return batch, n, nil
}
