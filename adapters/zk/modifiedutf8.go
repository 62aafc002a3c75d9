package zk

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// Modified UTF-8, which java.io.DataInput defines, differs from UTF-8 in two places: U+0000 takes two bytes, and what
// lies past U+FFFF is written as its two UTF-16 surrogates, of three bytes each.

// appendModifiedUTF8 appends a text that is valid UTF-8.
func appendModifiedUTF8(b []byte, text string) []byte {
	for _, r := range text {
		switch {
		case r == 0:
			b = append(b, 0xC0, 0x80)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			b = appendSurrogate(appendSurrogate(b, high), low)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

func appendSurrogate(b []byte, s rune) []byte {
	return append(b, 0xE0|byte(s>>12), 0x80|byte(s>>6)&0x3F, 0x80|byte(s)&0x3F)
}

// decodeModifiedUTF8 reads whatever Java reads, U+0000 in one byte and characters in more bytes than they need
// included; but for half a surrogate pair. In its place a Go string could only have U+FFFD, another character.
func decodeModifiedUTF8(b []byte) (string, error) {
	text := make([]byte, 0, len(b))
	for at := 0; at < len(b); {
		r, size := modifiedRune(b[at:])
		if size == 0 {
			return "", fmt.Errorf("at byte %d is no character of Java's UTF-8, or half a surrogate pair", at)
		}
		text = utf8.AppendRune(text, r)
		at += size
	}
	return string(text), nil
}

// modifiedRune is the first character of b and how many bytes it takes: 0 where there is none.
func modifiedRune(b []byte) (r rune, size int) {
	high, size := codeUnit(b)
	if !utf16.IsSurrogate(high) {
		return high, size
	}
	low, lowSize := codeUnit(b[size:])
	r = utf16.DecodeRune(high, low)
	if r == utf8.RuneError {
		return 0, 0
	}
	return r, size + lowSize
}

// codeUnit is the first UTF-16 code unit of b and how many bytes it takes: 0 where there is none.
func codeUnit(b []byte) (unit rune, size int) {
	switch {
	case len(b) >= 1 && b[0] < 0x80:
		return rune(b[0]), 1
	case len(b) >= 2 && b[0]&0xE0 == 0xC0 && continues(b[1]):
		return rune(b[0]&0x1F)<<6 | rune(b[1]&0x3F), 2
	case len(b) >= 3 && b[0]&0xF0 == 0xE0 && continues(b[1]) && continues(b[2]):
		return rune(b[0]&0x0F)<<12 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F), 3
	}
	return 0, 0
}

func continues(c byte) bool { return c&0xC0 == 0x80 }
