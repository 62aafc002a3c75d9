// Package nesting bounds how deep JSON from strangers may nest. What is deeper than its reader's limit can be stored
// alone and never be shown inside something else.
package nesting

import "bytes"

// Max is how deep an event may nest: far more than any needs, far less than what JSON readers take.
const Max = 64

// TooDeep says whether a text nests deeper than [Max], whether or not it is JSON.
func TooDeep(text []byte) bool {
	if bytes.Count(text, []byte{'['})+bytes.Count(text, []byte{'{'}) <= Max {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > Max {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}
