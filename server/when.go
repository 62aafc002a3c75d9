package server

import (
	"strconv"
	"strings"
	"time"
)

// when is a place in the journal: RFC 3339, -15m (before now) or seq:N.
type when struct {
	sequence uint64
	time     time.Time
}

func parseWhen(name, text string, now time.Time) (when, error) {
	if text == "" {
		return when{}, nil
	}
	if digits, ok := strings.CutPrefix(text, "seq:"); ok {
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || n == 0 {
			return when{}, badQuery(name, strconv.Quote(text)+" is no sequence; they count from seq:1")
		}
		return when{sequence: n}, nil
	}
	if strings.HasPrefix(text, "-") {
		d, err := time.ParseDuration(text)
		if err == nil {
			return when{time: now.Add(d)}, nil
		}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return when{}, badQuery(name, strconv.Quote(text)+" is no time; write RFC 3339 (2026-08-01T10:00:00Z), -15m, or seq:N")
	}
	return when{time: t}, nil
}
