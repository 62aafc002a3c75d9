package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/leadership-journal/journald/internal/api"
)

// follow gives an order to hand leadership over, tells what happens while it is carried out, and prints who leads.
func (o *orderer) follow(ctx context.Context, name, path string, body []byte) error {
	group, component, err := splitName(name)
	if err != nil {
		return err
	}
	var before api.Component
	if err := o.get(ctx, componentPath(group, component), &before); err != nil {
		return err
	}
	fmt.Fprintf(o.err, "%s hands %s over from %s to %s: %s\n", o.actor, name, holderOf(&before), first(o.to, "the best candidate"), o.reason)
	p := &progress{orderer: o, last: before.Sequence, group: group, component: component}
	if before.Term != nil {
		p.holder = before.Term.Candidate
	}
	telling, stop := context.WithCancel(ctx)
	var story sync.WaitGroup
	story.Go(func() {
		_ = o.stream(telling, watchQuery(group, component, ""), p.last, p.tell) // what it misses is told by rest
	})
	done, err := o.send(ctx, path, body, "done")
	stop()
	story.Wait()
	p.rest(ctx)
	if err != nil {
		return err
	}
	return o.report(done)
}

func holderOf(c *api.Component) string {
	if c.Term == nil {
		return "nobody"
	}
	return c.Term.Candidate
}

// progress tells what the records of a component say about a hand-over, each once.
type progress struct {
	*orderer
	group, component string
	last             uint64 // sequence of the newest record that was looked at
	holder           string
}

func (p *progress) tell(r *api.Record) error {
	if r.Sequence <= p.last {
		return nil
	}
	p.last = r.Sequence
	if text := p.words(r); text != "" {
		fmt.Fprintf(p.err, "record %d: %s\n", r.Sequence, text)
	}
	return nil
}

// told are the members of a record's data that the story needs.
type told struct {
	Data struct {
		Candidate string `json:"candidate"`
		To        string `json:"to"`
		Reason    string `json:"reason"`
		Address   string `json:"address"`
		Target    string `json:"target"`
		Outcome   string `json:"outcome"`
		Error     string `json:"error"`
	} `json:"data"`
}

func (p *progress) words(r *api.Record) string {
	var event told
	if r.Verdict != "applied" || len(r.Event) == 0 || json.Unmarshal(r.Event, &event) != nil {
		return ""
	}
	d := &event.Data
	switch r.Kind {
	case "yield":
		return fmt.Sprintf("%s was told to yield to %s", p.holder, first(d.To, "whoever is chosen"))
	case "release":
		return p.holder + " has stopped: " + d.Reason
	case "revoke":
		return fmt.Sprintf("%s's term ended: %s", p.holder, d.Reason)
	case "grant":
		p.holder = d.Candidate
		return fmt.Sprintf("granted to %s as epoch %d", d.Candidate, r.Sequence)
	case "confirm":
		return fmt.Sprintf("%s confirmed %s", d.Candidate, d.Address)
	case "push":
		if d.Outcome == "ok" {
			return "shown in " + d.Target
		}
		return fmt.Sprintf("not shown in %s yet: %s %s", d.Target, d.Outcome, d.Error)
	}
	return ""
}

// rest tells what the stream had not come to when the answer was there.
func (p *progress) rest(ctx context.Context) {
	query := url.Values{
		"group": {p.group}, "component": {p.component}, "limit": {"1000"}, "from": {"seq:" + strconv.FormatUint(p.last+1, 10)},
	}
	var page api.Records
	if err := p.get(ctx, "/v1/events?"+query.Encode(), &page); err != nil {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintf(p.err, "what happened since record %d can't be told: %v\n", p.last, err)
		}
		return
	}
	for i := range page.Records {
		_ = p.tell(&page.Records[i]) // it never fails
	}
}
