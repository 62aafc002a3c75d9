package candidate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/health"
	"github.com/leadership-journal/journald/journal"
)

// Config says who takes part, and in what.
type Config struct {
	Client     client.Client     // of the group
	Name       string            // of the candidate, the same after every start
	Components []string          // that it may lead
	Address    string            // where it can be reached while it leads
	Properties map[string]string // told to clients beside the address
	Priority   int               // among the fit; higher first
	Labels     map[string]string // for readers only

	// Incarnation names this life of the candidate, and no other; empty: a new name is made. Two processes with one name
	// and different incarnations replace each other: the one that joined first ends with [ErrReplaced].
	Incarnation string

	// Elector is the service's own election; nil: journald elects.
	Elector Elector

	// Beside says that the service's own election takes place in another process, which reports its grants by itself.
	// Nothing is granted here; [Callbacks.OnYield] is carried out when that process is to yield.
	Beside bool

	// Checks say whether the candidate can do its work; the journal is told of their runs, and decides by the group's
	// policy what follows. A candidate without checks never counts as fit to take over for another one's health.
	Checks []health.Check

	// Probe comes before each renewal of the lease; one that fails, or hangs, leaves it as it is. Where the leader's work
	// needs a disk, it is a write to that disk.
	Probe func(ctx context.Context) error

	// StopWithin bounds how long Run waits for leader work to stop once its context has ended; 0: 15 s.
	StopWithin time.Duration

	Logger *slog.Logger

	clock clock
	wall  func() time.Time // for the time in events, by which nothing is decided
}

// Callbacks are what a service does with what the journal tells it.
type Callbacks struct {
	// OnGranted is the leader's work. It runs from when the candidate may lead until it returns, and has to return soon
	// after ctx has ended; [context.Cause] tells why it has. One that returns before gives the term up, for the reason of
	// its error. There is never more than one for a component at one time, whatever happens.
	OnGranted func(ctx context.Context, t *Term) error

	// OnYield is told that a term is to be given up. The term's context ends when it returns, or when two thirds of the
	// time have passed that the group's policy has for it; nil: at once. With [Config.Beside] it has the other process give
	// up; it is called again while it fails.
	OnYield func(ctx context.Context, t *Term, y client.Yield) error

	// OnFit is told, after a yield in a group with an election of its own, that the candidate may contend again; nil:
	// nothing has to be done. With [Config.Elector] that is contended again by itself.
	OnFit func(ctx context.Context, component string) error
}

const defaultStop = 15 * time.Second

// complete fills in what may be left out, and says everything that is wrong.
func (c *Config) complete(cb *Callbacks) error {
	var errs []error
	bad := func(field, problem string) { errs = append(errs, fmt.Errorf("%s %s", field, problem)) }
	if c.Client == nil {
		bad("Client", "is missing; client.Open makes one")
	}
	if c.Logger == nil {
		bad("Logger", "is missing; slog.Default() will do")
	}
	if c.StopWithin < 0 {
		bad("StopWithin", "is negative")
	}
	if c.Beside && c.Elector != nil {
		bad("Beside", "and Elector exclude each other: either the election takes place here or elsewhere")
	}
	switch {
	case c.Beside && cb.OnYield == nil:
		bad("OnYield", "is missing: nobody would carry out a yield")
	case !c.Beside && cb.OnGranted == nil:
		bad("OnGranted", "is missing: there would be no leader work")
	}
	if slices.Contains(c.Components, "") || len(c.Components) == 0 {
		bad("Components", "must name what the candidate may lead")
	}
	if _, err := health.New(c.Checks...); err != nil {
		errs = append(errs, err)
	}
	c.fill()
	if c.Client != nil {
		if err := c.event(c.join()).Validate(); err != nil {
			errs = append(errs, err)
		}
		if err := c.trial().Validate(); err != nil && !c.Beside {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("candidate: the configuration can't be used: %w", errors.Join(errs...))
	}
	return nil
}

func (c *Config) fill() {
	if c.Incarnation == "" {
		c.Incarnation = uuid.NewString()
	}
	if c.StopWithin == 0 {
		c.StopWithin = defaultStop
	}
	if c.clock == nil {
		c.clock = sinceBoot()
	}
	if c.wall == nil {
		c.wall = time.Now
	}
}

func (c *Config) join() *journal.Join {
	return &journal.Join{
		Candidate: c.Name, Incarnation: c.Incarnation, Components: c.Components, Address: c.Address, Priority: c.Priority, Labels: c.Labels,
	}
}

// trial is a confirmation, to see whether one would be taken.
func (c *Config) trial() *journal.Event {
	e := c.event(&journal.Confirm{Session: "s", Candidate: c.Name, Address: c.Address, Properties: c.Properties, Attempt: 1})
	e.Component = c.Components[0]
	return e
}

// event is one for the whole group.
func (c *Config) event(data journal.Data) *journal.Event {
	return &journal.Event{
		ID: newID(), Source: journal.SourceOf(&journal.Leave{Candidate: c.Name}), Group: c.Client.Group(), Time: c.wall().UTC(), Data: data,
	}
}

// newID is a UUIDv7, or in the time of a host whose source of randomness fails, a panic: such a host has no ids.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
