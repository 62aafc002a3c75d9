package journal

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	prefix   = "leadership"
	noName   = "_" // stands for the component of a group's event, and for the group of an event that concerns all
	maxName  = 128
	hexUpper = "0123456789ABCDEF"
)

// Subject is where an event of this group, component and kind is stored: leadership.<group>.<component>.<kind>.
// Whatever is not A-Z a-z 0-9 _ - is percent-encoded, so that every name is one token.
func Subject(group, component, kind string) string {
	return prefix + "." + token(group) + "." + token(component) + "." + kind
}

// Subjects are where all events of a group are stored, as NATS filters by them.
func Subjects(group string) string { return prefix + "." + token(group) + ".>" }

// Key is the name of a component or candidate in a key-value bucket: the same tokens, with = for %.
func Key(group, name string) string {
	return strings.ReplaceAll(token(group)+"."+token(name), "%", "=")
}

// ParseKey is the inverse of Key. What is none of its results is not ok.
func ParseKey(key string) (group, name string, ok bool) {
	first, second, _ := strings.Cut(key, ".")
	group, name = unescape(first), unescape(second)
	return group, name, Key(group, name) == key
}

// unescape takes a token of a key for what it stands for. Of what is none it gives something else.
func unescape(token string) string {
	b := make([]byte, 0, len(token))
	for i := 0; i < len(token); i++ {
		c := token[i]
		if c == '=' && i+2 < len(token) {
			high, low := strings.IndexByte(hexUpper, token[i+1]), strings.IndexByte(hexUpper, token[i+2])
			c = byte(high<<4 | low)
			i += 2
		}
		b = append(b, c)
	}
	return string(b)
}

func token(name string) string {
	if name == "" {
		return noName
	}
	return escape(name, "")
}

// escape percent-encodes whatever is neither plain nor kept.
func escape(name, keep string) string {
	escaped := 0
	for i := range len(name) {
		if c := name[i]; !plain(c) && strings.IndexByte(keep, c) < 0 {
			escaped++
		}
	}
	if escaped == 0 {
		return name
	}
	b := make([]byte, 0, len(name)+2*escaped)
	for i := range len(name) {
		if c := name[i]; plain(c) || strings.IndexByte(keep, c) >= 0 {
			b = append(b, c)
		} else {
			b = append(b, '%', hexUpper[c>>4], hexUpper[c&15])
		}
	}
	return string(b)
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// name is what is wrong with a name, or empty. Its alphabet is letters, digits and what is allowed beside them; or
// printable ASCII, where also is empty.
func name(s, also string) string {
	switch {
	case s == "":
		return "is missing"
	case len(s) > maxName:
		return fmt.Sprintf("has %d characters; at most %d are allowed", utf8.RuneCountInString(s), maxName)
	case s == "." || s == ".." || s == noName:
		return quote(s) + " alone is not a name"
	}
	for i := range len(s) {
		c := s[i]
		if also == "" && ' ' <= c && c <= '~' || also != "" && (alphanumeric(c) || strings.IndexByte(also, c) >= 0) {
			continue
		}
		if also == "" {
			return quote(s) + " has a character that is not printable ASCII"
		}
		return quote(s) + " has a character that is none of A-Z a-z 0-9 " + also
	}
	return ""
}

const (
	groupAlso     = "._-"
	componentAlso = "._-:/%"
	printable     = ""
)

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
