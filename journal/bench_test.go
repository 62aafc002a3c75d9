package journal_test

import (
	jsonv1 "encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
)

// confirms are different from each other, as a journal's are, so that no cache of strings flatters the figures.
func confirms(n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = fmt.Appendf(nil, `{"specversion":"1.0","id":"01978d60-0d1c-7a52-9f0e-0d3c%08x","source":"candidate/jm-%d",`+
			`"type":"leadership.confirm.v1","subject":"flink-%d/restserver","time":"2026-08-01T10:00:00Z","data":{`+
			`"session":"01234567-89ab-cdef-fedc-ba98%08x","candidate":"jm-%d","address":"http://10.0.%d.%d:8081","attempt":%d}}`,
			i, i, i, i, i, i/256, i%256, i+1)
	}
	return all
}

// plain is what a program would read into that checks nothing and keeps nothing: the baseline.
type plain struct {
	SpecVersion, ID, Source, Type, Subject string
	Time                                   time.Time
	Data                                   struct {
		Session, Candidate, Address string
		Attempt                     uint64
	}
}

func BenchmarkDecode(b *testing.B) {
	texts := confirms(4096)
	for _, reader := range []struct {
		name string
		read func([]byte) error
	}{
		{"journal", func(text []byte) error { _, err := journal.Decode(text); return err }},
		{"baseline-json-v2", func(text []byte) error { return json.Unmarshal(text, new(plain), json.MatchCaseInsensitiveNames(true)) }},
		{"baseline-encoding-json", func(text []byte) error { return jsonv1.Unmarshal(text, new(plain)) }},
	} {
		b.Run(reader.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(texts[0])))
			for i := 0; b.Loop(); i++ {
				if err := reader.read(texts[i%len(texts)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	e, err := journal.Decode(confirms(1)[0])
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}
