package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/leadership-journal/journald/internal/api"
)

// orderer is one use of a command that gives an operator's order.
type orderer struct {
	*remote
	kind   string
	actor  string
	reason string
	id     string
	dry    bool
	format string

	candidate string        // of exclude and include
	until     string        // of exclude and pause
	period    time.Duration // the same, from now

	to    string // of transfer
	force bool
	wait  bool
}

func newExclude(r *remote) *cobra.Command {
	o := &orderer{remote: r, kind: "exclude"}
	c := o.command(2, "exclude GROUP CANDIDATE --reason TEXT", "Keep a candidate from being chosen",
		"Keep a candidate from being chosen, until it is included again or for a time. If it leads it goes on:\n"+
			"`journald transfer` moves what it leads.",
		"  journald exclude flink-prod jm-2 --reason \"kernel update\" --for 2h\n"+
			"  journald exclude flink-prod jm-2 --reason \"broken disk\"")
	o.addUntil(c)
	return c
}

func newInclude(r *remote) *cobra.Command {
	o := &orderer{remote: r, kind: "include"}
	return o.command(2, "include GROUP CANDIDATE --reason TEXT", "Let a candidate be chosen again",
		"Let a candidate be chosen again that was excluded.",
		"  journald include flink-prod jm-2 --reason \"kernel updated\"")
}

func newPause(r *remote) *cobra.Command {
	o := &orderer{remote: r, kind: "pause"}
	c := o.command(1, "pause GROUP --reason TEXT", "Have no leader moved",
		"Have no leader of a group moved: no yields, no elections, until the group is resumed or for a time.\n"+
			"What the journal says is shown all the same, and alerts go on.",
		"  journald pause flink-prod --reason \"network maintenance\" --for 30m")
	o.addUntil(c)
	return c
}

func newResume(r *remote) *cobra.Command {
	o := &orderer{remote: r, kind: "resume"}
	return o.command(1, "resume GROUP --reason TEXT", "Let leaders be moved again", "Let leaders of a group be moved again after a pause.",
		"  journald resume flink-prod --reason \"maintenance is over\"")
}

func newTransfer(r *remote) *cobra.Command {
	o := &orderer{remote: r, kind: "transfer"}
	c := o.command(1, "transfer GROUP/COMPONENT --reason TEXT", "Hand leadership to another candidate",
		"Hand leadership to another candidate: the one that --to names, or the best one. The holder is told to yield, stops\n"+
			"its work, and lets go. A candidate that is not fit to take over is refused unless --force says otherwise.\n\n"+
			"With --wait the command ends when the new leader is confirmed and every target shows it; what happens meanwhile is\n"+
			"told on standard error. --timeout says how long it waits.",
		"  journald transfer flink-prod/restserver --reason \"drain node 7\" --dry-run\n"+
			"  journald transfer flink-prod/restserver --reason \"drain node 7\" --wait --timeout 2m\n"+
			"  journald transfer flink-prod/restserver --to jm-2 --force --reason \"jm-1 is wrong\"")
	c.Flags().StringVar(&o.to, "to", "", "the candidate that is to lead (default the best one)")
	c.Flags().BoolVar(&o.force, "force", false, "also to a candidate that is not fit to take over")
	c.Flags().BoolVar(&o.wait, "wait", false, "until the new leader is confirmed and every target shows it")
	o.register(c, "to", completeTo(r))
	return c
}

// command is one of n arguments with what all orders have.
func (o *orderer) command(n int, use, short, long, example string) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, ValidArgsFunction: completeOrder(o.remote, o.kind),
		Args: cobra.ExactArgs(n),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	c.Flags().StringVar(&o.reason, "reason", "", "why; it stands in the journal")
	c.Flags().StringVar(&o.actor, "actor", "", "who orders it (default user@host)")
	c.Flags().StringVar(&o.id, "id", "", "id of the order, so that saying it again is harmless (default a new one)")
	c.Flags().BoolVar(&o.dry, "dry-run", false, "say what would happen, and do nothing")
	addFormat(c, &o.format)
	o.register(c, "reason", cobra.NoFileCompletions)
	return c
}

func (o *orderer) register(c *cobra.Command, flag string, complete completion) {
	_ = c.RegisterFlagCompletionFunc(flag, complete) // the flag is there
}

func (o *orderer) addUntil(c *cobra.Command) {
	c.Flags().StringVar(&o.until, "until", "", "when it ends by itself, RFC 3339")
	c.Flags().DurationVar(&o.period, "for", 0, "after what time it ends by itself, as in 2h")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if c.Flags().Changed("for") && o.period <= 0 {
			return usage(fmt.Errorf("--for %s is no time to come; leave it out for an order without an end", o.period))
		}
		return nil
	}
}

func (o *orderer) run(ctx context.Context, args []string) error {
	path, err := o.path(args)
	if err != nil {
		return err
	}
	if _, err := newPrinter(o.out, o.format); err != nil {
		return err
	}
	body, err := o.body()
	if err != nil {
		return err
	}
	switch {
	case o.dry:
		return o.rehearse(ctx, path, body)
	case o.wait:
		return o.follow(ctx, args[0], path, body)
	}
	done, err := o.send(ctx, path, body, "applied")
	if err != nil {
		return err
	}
	return o.report(done)
}

// path is where the order goes; it checks what was typed.
func (o *orderer) path(args []string) (string, error) {
	if o.reason == "" {
		return "", usage(errors.New("say why with --reason: it stands in the journal for whoever asks later"))
	}
	if o.kind == "transfer" {
		group, component, err := splitName(args[0])
		return componentPath(group, component) + "/transfer", err
	}
	if strings.Contains(args[0], "/") {
		return "", usage(fmt.Errorf("%q is a component; %s is about a whole group, such as %s", args[0], o.kind, strings.Split(args[0], "/")[0]))
	}
	if len(args) == 2 {
		o.candidate = args[1]
	}
	return "/v1/groups/" + url.PathEscape(args[0]) + "/" + o.kind, nil
}

// body is the order as it is sent. What is filled in stays with the command, so that a hint can name it.
func (o *orderer) body() ([]byte, error) {
	if o.actor == "" {
		o.actor = o.actingUser()
	}
	switch {
	case o.period > 0 && o.until != "":
		return nil, usage(errors.New("either --until or --for, not both"))
	case o.period > 0:
		o.until = time.Now().Add(o.period).UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	if o.id == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("make an id: %w", err)
		}
		o.id = id.String()
	}
	said := map[string]any{"actor": o.actor, "reason": o.reason, "id": o.id}
	for name, text := range map[string]string{"candidate": o.candidate, "until": o.until, "to": o.to} {
		if text != "" {
			said[name] = text
		}
	}
	if o.force {
		said["force"] = true
	}
	text, err := json.Marshal(said, json.Deterministic(true))
	if err != nil {
		return nil, usage(fmt.Errorf("write the order as JSON: %w", err))
	}
	return text, nil
}

// actingUser is who types, as far as the process tells: user@host.
func (p *process) actingUser() string {
	name := first(p.env("USER"), p.env("LOGNAME"))
	if name == "" {
		name = "unknown"
		if who, err := user.Current(); err == nil {
			name = who.Username
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

// send gives the order and waits for its answer. It is not known what became of an order that was not answered; saying
// it again with the same id is harmless.
func (o *orderer) send(ctx context.Context, path string, body []byte, wait string) (*api.Order, error) {
	var done api.Order
	query := url.Values{"wait": {wait}, "timeout": {min(o.timeout, longestWait).String()}}
	err := o.post(ctx, path+"?"+query.Encode(), body, &done)
	refusal, refused := errors.AsType[*problem](err)
	switch code := exitCode(ctx, err); {
	case err == nil:
		return &done, nil
	case refused && refusal.Type == api.ProblemPrefix+"refused":
		return nil, no(err)
	case refused && len(refusal.Events) > 0 && code == exitTimeout:
		return nil, fmt.Errorf("%w\nthe same command with --id %s%s goes on waiting", err, o.id, o.untilHint())
	case code == exitTimeout || code == exitUnreachable:
		return nil, fmt.Errorf("%w\nit is not known whether the order is stored; saying it again with --id %s%s is harmless",
			err, o.id, o.untilHint())
	}
	return nil, err
}

// untilHint has an order for a time be the same one when it is said again.
func (o *orderer) untilHint() string {
	if o.period == 0 {
		return ""
	}
	return " --until " + o.until + " in place of --for"
}

func (o *orderer) post(ctx context.Context, path string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout+2*time.Second)
	defer cancel()
	answer, err := o.do(ctx, http.MethodPost, path, "application/json", body)
	if err != nil {
		return err
	}
	return o.read(answer, into)
}

// report prints what became of the order.
func (o *orderer) report(done *api.Order) error {
	out, err := newPrinter(o.out, o.format)
	if err != nil {
		return err
	}
	about := done.Group
	if done.Component != "" {
		about += "/" + done.Component
	}
	sequence := strconv.FormatUint(done.Sequence, 10)
	l := &listing{columns: []string{"ORDER", "ABOUT", "VERDICT", "SEQUENCE", "ACTOR"}}
	cells := []string{done.Kind, about, string(done.Verdict), sequence, done.Actor}
	if leader := done.Leader; leader != nil {
		l.columns = append(l.columns, "HOLDER", "EPOCH", "PUBLISHED")
		cells = append(cells, dash(leader.Candidate), strconv.FormatUint(leader.Epoch, 10), yesNo(done.Published))
	}
	l.columns, cells = append(l.columns, "REASON", "ID"), append(cells, dash(done.Reason), done.ID)
	l.wide = 2
	l.rows = []row{{sequence, cells, done}}
	if err := out.print(l); err != nil {
		return err
	}
	if done.Reason != "" {
		fmt.Fprintf(o.err, "%s: %s\n", done.Verdict, done.Reason)
	}
	return nil
}
