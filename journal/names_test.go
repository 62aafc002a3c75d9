package journal_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leadership-journal/journald/journal"
)

func TestSubject(t *testing.T) {
	for _, c := range []struct{ group, component, kind, subject, key string }{
		{"flink", "restserver", "grant", "leadership.flink.restserver.grant", "flink.restserver"},
		{"flink", "", "join", "leadership.flink._.join", "flink._"},
		{"_", "", "takeover", "leadership._._.takeover", "_._"},
		{"a.b_c-9", "x.y", "push", "leadership.a%2Eb_c-9.x%2Ey.push", "a=2Eb_c-9.x=2Ey"},
		{"g", "job-1/a:b%c", "push", "leadership.g.job-1%2Fa%3Ab%25c.push", "g.job-1=2Fa=3Ab=25c"},
		{"g", "http://[::1]:8290", "x", "leadership.g.http%3A%2F%2F%5B%3A%3A1%5D%3A8290.x", "g.http=3A=2F=2F=5B=3A=3A1=5D=3A8290"},
		{"g", "* >=~", "x", "leadership.g.%2A%20%3E%3D%7E.x", "g.=2A=20=3E=3D=7E"},
		{"g", "%2E", "x", "leadership.g.%252E.x", "g.=252E"},
	} {
		require.Equal(t, c.subject, journal.Subject(c.group, c.component, c.kind))
		require.Equal(t, c.key, journal.Key(c.group, c.component))
	}
}

// anything is any text, names that nobody may have included: escaping does not rely on validation.
func anything() *rapid.Generator[string] {
	return rapid.OneOf(printed(), named(compAlphabet), rapid.String(),
		rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) }),
		rapid.SampledFrom([]string{".", "..", "%", "%25", "=", "=25", "*", ">", "a b", "\x00", "\xff", "a.b"})).
		Filter(func(s string) bool { return s != "" && s != "_" })
}

var (
	subjects = regexp.MustCompile(`^leadership(\.([A-Za-z0-9_-]|%[0-9A-F]{2})+){3}$`)
	keys     = regexp.MustCompile(`^[-/_=.a-zA-Z0-9]+$`) // what nats.go accepts as a key
	escape   = regexp.MustCompile(`[%=]([0-9A-F]{2})`)
)

// unescape is the inverse of what Subject and Key do to a name, written anew.
func unescape(token string) string {
	return escape.ReplaceAllStringFunc(token, func(s string) string {
		const hex = "0123456789ABCDEF"
		return string([]byte{byte(strings.IndexByte(hex, s[1])<<4 | strings.IndexByte(hex, s[2]))})
	})
}

// Whatever the names are, a subject has four tokens that NATS accepts, and says which names it was made of.
func TestSubjectsAreValidAndTellNamesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		group, component := anything().Draw(t, "group"), anything().Draw(t, "component")
		subject := journal.Subject(group, component, "grant")
		require.Regexp(t, subjects, subject)
		tokens := strings.Split(subject, ".")
		require.Len(t, tokens, 4)
		require.Equal(t, []string{group, component, "grant"}, []string{unescape(tokens[1]), unescape(tokens[2]), tokens[3]})
	})
}

func TestKeysAreValidAndTellNamesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		group, name := anything().Draw(t, "group"), anything().Draw(t, "name")
		key := journal.Key(group, name)
		require.Regexp(t, keys, key)
		tokens := strings.Split(key, ".")
		require.Len(t, tokens, 2)
		require.NotContains(t, tokens, "")
		require.Equal(t, []string{group, name}, []string{unescape(tokens[0]), unescape(tokens[1])})
		gotGroup, gotName, ok := journal.ParseKey(key)
		require.Equal(t, []any{group, name, true}, []any{gotGroup, gotName, ok})
	})
}

func TestWhatIsNoKey(t *testing.T) {
	for _, key := range []string{"", ".", "g", "g.", ".n", "g.n.x", "g.a b", "g.a=2e", "g.a=2", "g.=", "g.=ZZ", "g.a=61", "g.a%2E", "=2.n"} {
		_, _, ok := journal.ParseKey(key)
		require.False(t, ok, key)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z=.0-9A-F%_]{0,12}`).Draw(t, "text")
		if group, name, ok := journal.ParseKey(text); ok {
			require.Equal(t, text, journal.Key(group, name))
		}
	})
}

// Two different pairs of names never share a subject or a key, those with nothing for a component included.
func TestSubjectsAndKeysAreInjective(t *testing.T) {
	one := rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "a.b", "a%2Eb", "a=2Eb", "a-b", "a/b", "%", "=", "."}), anything())
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) [2]string {
			pair := [2]string{one.Draw(t, "group "+what), one.Draw(t, "component "+what)}
			if rapid.Bool().Draw(t, "of the group "+what) {
				pair[1] = ""
			}
			return pair
		}
		a, b := draw("a"), draw("b")
		require.Equal(t, a == b, journal.Subject(a[0], a[1], "push") == journal.Subject(b[0], b[1], "push"))
		require.Equal(t, a == b, journal.Key(a[0], a[1]) == journal.Key(b[0], b[1]))
	})
}

func TestEventSubjectAndMessageID(t *testing.T) {
	e := sample("grant")
	require.Equal(t, "leadership.flink-1.restserver.grant", e.Subject())
	require.Equal(t, e.Source+"|"+e.ID, e.MessageID())
	e = sample("join")
	require.Equal(t, "leadership.flink-1._.join", e.Subject())
	e = sample("checkpoint")
	require.Equal(t, "leadership._._.checkpoint", e.Subject())
}

// Sources have no |, so that no two valid events of different sources or ids share a message id.
func TestMessageIDsAreInjective(t *testing.T) {
	a, b := sample("confirm"), sample("confirm")
	a.Source, a.ID = "candidate/a", "b|c"
	b.Source, b.ID = "candidate/a|b", "c"
	require.Equal(t, a.MessageID(), b.MessageID())
	require.NoError(t, a.Validate())
	requireFault(t, b.Validate(), "source", "URI reference")
}
