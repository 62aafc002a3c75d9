package nesting

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTooDeep(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for text, deep := range map[string]bool{
		"":                                false,
		nested(Max):                       false,
		nested(Max + 1):                   true,
		strings.Repeat("[", Max+1):        true,
		strings.Repeat(`{"a":`, Max+1):    true,
		strings.Repeat("[],", 10*Max):     false,
		`"` + nested(Max+1) + `"`:         false,
		`"\"` + nested(Max+1) + `"`:       false,
		`"\\"` + nested(Max+1):            true,
		`["` + nested(Max+1) + `", [[]]]`: false,
	} {
		require.Equal(t, deep, TooDeep([]byte(text)), text)
	}
}
