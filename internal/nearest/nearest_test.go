package nearest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestHint(t *testing.T) {
	kinds := []string{"grant", "revoke", "confirm", "ready", "release", "retry"}
	for word, want := range map[string]string{
		"grnat":      "grant",
		"Grant":      "grant",
		"confrim":    "confirm",
		"confirmed":  "confirm",
		"rleease":    "release",
		"retyr":      "retry",
		"x":          "",
		"":           "",
		"zzzzzz":     "",
		"checkpoint": "",
	} {
		if want != "" {
			want = `; did you mean "` + want + `"?`
		}
		require.Equal(t, want, Hint(word, kinds), word)
	}
	require.Empty(t, Hint("grant", nil))
	require.Equal(t, `; did you mean "ab"?`, Hint("ac", []string{"ab", "ad"}), "the first of equals")
}

// A word of any length costs no more than the known ones: nothing that is so much longer is near.
func TestHintOfAHugeWord(t *testing.T) {
	huge := strings.Repeat("confirm", 1<<20)
	require.Zero(t, testing.AllocsPerRun(1, func() { require.Empty(t, Hint(huge, []string{"confirm", "grant"})) }))
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"ab", "ba", 2},
	} {
		require.Equal(t, c.want, levenshtein(c.a, c.b), "%s %s", c.a, c.b)
	}
}

func TestDistanceIsAMetric(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		require.Equal(t, a == b, levenshtein(a, b) == 0)
		require.Equal(t, levenshtein(a, b), levenshtein(b, a))
		require.LessOrEqual(t, levenshtein(a, c), levenshtein(a, b)+levenshtein(b, c))
		require.GreaterOrEqual(t, levenshtein(a, b), max(len(a), len(b))-min(len(a), len(b)))
		require.LessOrEqual(t, levenshtein(a, b), max(len(a), len(b)))
	})
}
