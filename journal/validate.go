package journal

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadership-journal/journald/policy"
)

// ErrInvalid is wrapped by every error that says what is wrong with an event.
var ErrInvalid = errors.New("invalid event")

// FieldError says what is wrong with one member of an event. It wraps [ErrInvalid].
type FieldError struct {
	Field   string // as in JSON, from the envelope down: data.session
	Problem string // what, and what would be right
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (e *FieldError) Unwrap() error { return ErrInvalid }

// Validate says everything that keeps the event from being stored (the first 32 things), as one or several joined
// [FieldError].
func (e *Event) Validate() error {
	c := &checker{}
	if e.Data == nil {
		c.fail("data", "is missing")
		return c.err()
	}
	c.line("id", e.ID, 1, maxName)
	c.source(e.Source)
	c.time("time", e.Time)
	c.subject(e)
	if k := e.Extensions.Kind(); e.Extensions != nil && (k != jsontext.KindBeginObject || !e.Extensions.IsValid()) {
		c.fail("event", "has extensions that are not a JSON object")
	}
	c.author(e)
	c.prefix = "data."
	e.Data.validate(c)
	return c.err()
}

// source is a URI reference (RFC 3986): no spaces, nothing but ASCII, and no |, which parts it from the id in a message
// id.
func (c *checker) source(s string) {
	c.length("source", s, 1, maxSource)
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '|' {
			c.fail("source", "is a URI reference such as candidate/jm-1: percent-encode what is not visible ASCII, and |")
			return
		}
	}
}

// author holds what only some sources may say.
func (c *checker) author(e *Event) {
	projector := from(e.Source, "projector/")
	switch d := e.Data.(type) {
	case *Withdraw:
		if d.Session == "" && !from(e.Source, "operator/") {
			c.fail("data.session", "is missing; only operators (operator/<name>) may leave it out, and this comes from "+quote(e.Source))
		}
	case *Takeover, *Checkpoint:
		if !projector {
			c.fail("source", "of a "+e.Data.Kind()+" is projector/<instance>, not "+quote(e.Source))
		}
	}
	decision, decides := decisionOf(e.Data)
	if decision != nil && !projector {
		c.fail("source", "of an event with a basis is projector/<instance>, not "+quote(e.Source))
	}
	if decides && decision == nil && projector {
		c.fail("data.basis", "is missing; a projector says what its "+e.Data.Kind()+" was decided on")
	}
}

func from(source, role string) bool {
	return len(source) > len(role) && strings.HasPrefix(source, role)
}

func (c *checker) subject(e *Event) {
	scope := e.Data.scope()
	if scope == allScope {
		if e.Group != noName || e.Component != "" {
			c.fail("subject", `is "_" for a `+e.Data.Kind())
		}
		return
	}
	if problem := name(e.Group, groupAlso); problem != "" {
		c.fail("subject", "the group "+problem)
	}
	switch {
	case e.Component == "" && scope == componentScope:
		c.fail("subject", "is <group>/<component> for a "+e.Data.Kind()+"; the component is missing")
	case e.Component != "" && scope == groupScope:
		c.fail("subject", "is <group> alone for a "+e.Data.Kind())
	case e.Component != "":
		if problem := name(e.Component, componentAlso); problem != "" {
			c.fail("subject", "the component "+problem)
		}
	}
}

// checker collects what is wrong.
type checker struct {
	prefix string
	errs   []error
}

func (c *checker) fail(field, problem string) {
	if len(c.errs) < maxFaults {
		c.errs = append(c.errs, &FieldError{c.prefix + field, problem})
	}
}

// within checks a part whose fields' names begin so.
func (c *checker) within(at string, check func(*checker)) {
	outer := c.prefix
	c.prefix += at
	check(c)
	c.prefix = outer
}

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

func (c *checker) err() error { return errors.Join(c.errs...) }

func (c *checker) candidate(s string) { c.name("candidate", s, printable) }

func (c *checker) incarnation(s string) { c.name("incarnation", s, printable) }

func (c *checker) session(s string) { c.name("session", s, printable) }

func (c *checker) name(field, s, also string) {
	if problem := name(s, also); problem != "" {
		c.fail(field, problem)
	}
}

// optional is a printable name that may be left out.
func (c *checker) optional(field, s string) {
	if s != "" {
		c.name(field, s, printable)
	}
}

func (c *checker) length(field, s string, low, high int) {
	if len(s) < low {
		c.fail(field, "is missing")
	} else if len(s) > high && utf8.RuneCountInString(s) > high {
		c.fail(field, fmt.Sprintf("has %d characters; at most %d are allowed", utf8.RuneCountInString(s), high))
	}
}

// text is a length in which control characters have no place, but for tabs and new lines.
func (c *checker) text(field, s string, low, high int) {
	c.length(field, s, low, high)
	c.uncontrolled(field, s, "\t\n")
}

// line is a text on one line.
func (c *checker) line(field, s string, low, high int) {
	c.length(field, s, low, high)
	c.uncontrolled(field, s, "")
}

func (c *checker) uncontrolled(field, s, but string) {
	for i := range len(s) {
		if b := s[i]; (b < ' ' || b == 0x7f) && strings.IndexByte(but, b) < 0 {
			c.fail(field, "has a control character")
			return
		}
	}
}

func (c *checker) reason(s string, required bool) {
	low := 0
	if required {
		low = 1
	}
	c.text("reason", s, low, maxText)
}

func (c *checker) address(s string, required bool) {
	if required && s == "" {
		c.fail("address", "is missing")
	}
	c.bytes("address", len(s), maxAddress)
}

func (c *checker) bytes(field string, n, most int) {
	if n > most {
		c.fail(field, fmt.Sprintf("has %d bytes; at most %d are allowed", n, most))
	}
}

func (c *checker) notNegative(field string, d policy.Duration) {
	if d < 0 {
		c.fail(field, d.String()+" is negative")
	}
}

func (c *checker) positive(field string, n uint64) {
	if n == 0 {
		c.fail(field, "is missing, or 0; it counts from 1")
	}
	c.safe(field, n)
}

// safe keeps numbers within what every JSON reader holds exactly (RFC 8259, section 6).
func (c *checker) safe(field string, n uint64) {
	if n > maxSafe {
		c.fail(field, fmt.Sprintf("%d is more than 2^53-1, the largest number that every JSON reader holds exactly", n))
	}
}

func (c *checker) time(field string, t time.Time) {
	if !t.IsZero() && (t.Year() < 1970 || t.Year() > 9999) {
		c.fail(field, "is not between the years 1970 and 9999")
	}
}

func (c *checker) oneOf(field, s string, words ...string) {
	if !slices.Contains(words, s) {
		c.fail(field, fmt.Sprintf("%s is none of %s", quote(s), strings.Join(words, ", ")))
	}
}

func (c *checker) properties(field string, m map[string]string) {
	size := 0
	for k, v := range m {
		size += len(k) + len(v)
	}
	c.bytes(field, size, maxAddress)
}

const (
	maxSource  = 512
	maxText    = 4096
	maxAddress = 65535 // what a Java object stream holds in one string
	maxSafe    = 1<<53 - 1
	maxList    = 1024
	maxFaults  = 32
)
