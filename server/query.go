package server

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/leadership-journal/journald/internal/nearest"
)

func knownParameter(name string, times int, known []string) error {
	if !slices.Contains(known, name) {
		return badQuery(name, "is not known here"+nearest.Hint(name, known)+"; "+list(known)+" are")
	}
	if times > 1 {
		return badQuery(name, "is said more than once")
	}
	return nil
}

// Sizes of a page.
const (
	usualPage = 100
	mostPage  = 1000
)

// limitOf is the size of a page.
func limitOf(query url.Values) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return usualPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostPage {
		return 0, badQuery("limit", "is not a number from 1 to "+strconv.Itoa(mostPage))
	}
	return n, nil
}

// timeoutOf is how long an answer may be waited for.
func timeoutOf(query url.Values) (time.Duration, error) {
	text := query.Get("timeout")
	if text == "" {
		return defaultWait, nil
	}
	timeout, err := time.ParseDuration(text)
	if err != nil || timeout <= 0 || timeout > longestWait {
		return 0, badQuery("timeout", "is no duration up to "+longestWait.String()+"; write it like 30s")
	}
	return timeout, nil
}

// cursor is where a page ends. It is opaque to those who get it.
func cursor(place string) string { return base64.RawURLEncoding.EncodeToString([]byte(place)) }

func readCursor(query url.Values) (string, error) {
	place, err := base64.RawURLEncoding.DecodeString(query.Get("cursor"))
	if err != nil {
		return "", badQuery("cursor", "is none that an answer gave as next")
	}
	return string(place), nil
}

func sequenceCursor(query url.Values) (uint64, error) {
	place, err := readCursor(query)
	if err != nil || place == "" {
		return 0, err
	}
	n, err := strconv.ParseUint(place, 10, 64)
	if err != nil {
		return 0, badQuery("cursor", "is none that an answer gave as next")
	}
	return n, nil
}
