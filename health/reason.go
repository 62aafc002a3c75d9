package health

import (
	"strings"
	"unicode/utf8"
)

const longestReason = 1000 // bytes; the contract takes 4,096

// reason is an error's text as the contract takes it: bounded, and without control characters.
func reason(err error) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ReplaceAll(strings.TrimSpace(strings.ToValidUTF8(err.Error(), "?")), "\n", "; "))
	if text == "" {
		return "failed, and did not say why"
	}
	return shorten(text, longestReason)
}

// shorten cuts the middle out of a text that is too long: its beginning says what was done, its end what came of it.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const gap = " … "
	head, rest := most/2, len(text)-(most-most/2-len(gap))
	for !utf8.RuneStart(text[head]) {
		head--
	}
	for !utf8.RuneStart(text[rest]) {
		rest++
	}
	return text[:head] + gap + text[rest:]
}
