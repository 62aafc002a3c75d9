package journal

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
)

// decodeCanonical reads an event that is written as [Event.Encode] writes it, in half the time that any order of members
// takes: they stand in our order, nothing outside the data is escaped or beyond ASCII, and nothing is unknown there. It
// is not ok for everything else, valid or not, and then says nothing about it.
func decodeCanonical(text []byte) (e Event, ok bool) {
	s := scanner{rest: text, ok: true}
	e.ID = string(s.text(`{"specversion":"1.0","id":"`))
	e.Source = string(s.text(`","source":"`))
	kind := s.text(`","type":"leadership.`)
	subject := string(s.text(`","subject":"`))
	if s.has(`","time":"`) {
		moment := s.text(`","time":"`)
		if !inUTC(moment) || e.Time.UnmarshalText(moment) != nil {
			return Event{}, false
		}
		e.Time = e.Time.UTC()
	}
	data, closed := bytes.CutSuffix(s.after(`","data":`), []byte("}"))
	kind, v1 := bytes.CutSuffix(kind, []byte(typeSuffix))
	if !s.ok || !closed || !v1 || len(data) == 0 || data[0] != '{' {
		return Event{}, false
	}
	if e.Data = newData(string(kind)); e.Data == nil || json.Unmarshal(data, e.Data) != nil {
		return Event{}, false // also where there is more after the data
	}
	var parted bool
	e.Group, e.Component, parted = strings.Cut(subject, "/")
	return e, !parted || e.Component != ""
}

// inUTC says whether a text is shaped as a time of RFC 3339 in UTC: time.Time takes more than that.
func inUTC(text []byte) bool {
	const shape = "0000-00-00T00:00:00"
	body, z := bytes.CutSuffix(text, []byte("Z"))
	if !z || len(body) < len(shape) {
		return false
	}
	for i := range shape {
		if digit := '0' <= body[i] && body[i] <= '9'; digit != (shape[i] == '0') || !digit && body[i] != shape[i] {
			return false
		}
	}
	fraction := body[len(shape):]
	return len(fraction) == 0 || len(fraction) > 1 && fraction[0] == '.' && len(bytes.Trim(fraction[1:], "0123456789")) == 0
}

// scanner reads a text from its beginning, for as long as it is as expected.
type scanner struct {
	rest []byte
	ok   bool
}

func (s *scanner) has(next string) bool {
	return s.ok && len(s.rest) >= len(next) && string(s.rest[:len(next)]) == next
}

// after is what is left once the text that is expected next is read.
func (s *scanner) after(next string) []byte {
	if s.ok = s.has(next); s.ok {
		s.rest = s.rest[len(next):]
	}
	return s.rest
}

// text is the text of the string that begins behind what is expected next, up to its closing quote.
func (s *scanner) text(next string) []byte {
	rest := s.after(next)
	for i, c := range rest {
		if c == '"' {
			s.rest = rest[i:]
			return rest[:i]
		}
		if c < ' ' || c > '~' || c == '\\' {
			break
		}
	}
	s.ok = false
	return nil
}
