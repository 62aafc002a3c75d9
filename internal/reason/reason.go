// Package reason makes texts of errors that the contract takes as reasons.
package reason

import (
	"strings"
	"unicode/utf8"
)

const longest = 1000 // bytes; the contract takes 4,096

// Of is an error's text on one line of at most 1,000 bytes, without control characters, whatever is in the error.
func Of(err error) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ReplaceAll(strings.TrimSpace(strings.ToValidUTF8(err.Error(), "?")), "\n", "; "))
	if text == "" {
		return "failed, and did not say why"
	}
	return Shorten(text, longest)
}

// Shorten cuts the middle out of a text that is too long: its beginning says what was done, its end what came of it.
// At least 16 bytes stay.
func Shorten(text string, most int) string {
	const gap, least = " … ", 16
	if most = max(most, least); len(text) <= most {
		return text
	}
	head, rest := most/2, len(text)-(most-most/2-len(gap))
	for !utf8.RuneStart(text[head]) {
		head--
	}
	for !utf8.RuneStart(text[rest]) {
		rest++
	}
	return text[:head] + gap + text[rest:]
}
