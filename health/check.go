package health

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Probe looks once, and returns what is wrong, or nil. It has to return soon after ctx ends; one that does not is a
// failing run all the same. It is never called while an earlier call of it has not returned.
type Probe func(ctx context.Context) error

// Check is a probe that is tried again and again.
type Check struct {
	Name     string        // 1 to 128 characters of printable ASCII, unique in a runner
	Period   time.Duration // from the beginning of a run to that of the next, 10 ms to 24 h
	Deadline time.Duration // of a run, at least 1 ms and no longer than the period, so that a run ends before the next begins
	Probe    Probe
}

const (
	longestName   = 128
	shortest      = 10 * time.Millisecond
	longest       = 24 * time.Hour
	leastDeadline = time.Millisecond
	mostChecks    = 64 // that a journal remembers of a candidate
)

// Validate says everything that is wrong with a check's settings.
func (c *Check) Validate() error {
	return errors.Join(
		c.validateName(),
		must(shortest <= c.Period && c.Period <= longest, "its period %s is not between %s and %s", c.Period, shortest, longest),
		must(c.Deadline >= leastDeadline, "its deadline %s is less than %s", c.Deadline, leastDeadline),
		must(c.Deadline <= c.Period, "its deadline %s is longer than its period %s; a run has to end before the next begins",
			c.Deadline, c.Period),
		must(c.Probe != nil, "it has no probe"),
	)
}

func (c *Check) validateName() error {
	switch {
	case c.Name == "":
		return errors.New("it has no name")
	case len(c.Name) > longestName:
		return fmt.Errorf("its name has %d characters; at most %d are allowed", len(c.Name), longestName)
	case c.Name == "." || c.Name == ".." || c.Name == "_":
		return fmt.Errorf("%q alone is not a name", c.Name)
	}
	for i := range len(c.Name) {
		if b := c.Name[i]; b < ' ' || b > '~' {
			return fmt.Errorf("its name %.40q has a character that is not printable ASCII", c.Name)
		}
	}
	return nil
}

func must(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// validate says what is wrong with a list of checks, all at once.
func validate(checks []Check) error {
	errs := []error{must(len(checks) <= mostChecks, "there are %d checks; at most %d are told apart", len(checks), mostChecks)}
	seen := map[string]bool{}
	for i := range checks {
		c := &checks[i]
		name := fmt.Sprintf("check %d", i+1)
		if c.Name != "" {
			name = fmt.Sprintf("check %.40q", c.Name)
		}
		for _, err := range parts(c.Validate()) {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		if c.Name != "" && seen[c.Name] {
			errs = append(errs, fmt.Errorf("%s: there are two of this name", name))
		}
		seen[c.Name] = true
	}
	return errors.Join(errs...)
}

// parts are the errors that were joined.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}
