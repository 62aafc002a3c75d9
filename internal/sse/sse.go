// Package sse reads server-sent events as the HTML Living Standard has them (9.2.6), but for times to wait, which nothing is
// made of here.
package sse

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// MaxLine is the longest line that is read, in bytes.
const MaxLine = 16 << 20

// ErrEnded says that the server has ended the stream.
var ErrEnded = errors.New("the stream ended")

// Event is one event.
type Event struct {
	ID   string // of this event; empty: it has none of its own
	Name string // empty: message
	Data string
}

// Reader reads a stream. It is for one goroutine.
type Reader struct {
	lines *bufio.Scanner
	heard func()
}

// NewReader makes a reader, which calls heard for every line: comments too are signs of life.
func NewReader(r io.Reader, heard func()) *Reader {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLine)
	return &Reader{lines: lines, heard: heard}
}

// Next is the next event that has data. What is cut off by the end of the stream is none. The error is [ErrEnded], or
// why reading failed.
func (r *Reader) Next() (Event, error) {
	var e Event
	var data []string
	for r.lines.Scan() {
		r.heard()
		switch line := r.lines.Text(); {
		case line != "":
			e.take(line, &data)
		case data != nil:
			e.Data = strings.Join(data, "\n")
			return e, nil
		default:
			e = Event{}
		}
	}
	if err := r.lines.Err(); err != nil {
		return Event{}, err
	}
	return Event{}, ErrEnded
}

// take reads one line of an event.
func (e *Event) take(line string, data *[]string) {
	field, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch field {
	case "id":
		e.ID = value
	case "event":
		e.Name = value
	case "data":
		*data = append(*data, value)
	}
}
