package zk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// golden is the record of goldenAddress and goldenSession.
const (
	golden = "aced000577160014687474703a2f2f31302e302e302e313a38303831" +
		"7372000e6a6176612e7574696c2e55554944bc9903f7986d852f0200024a000c6c65617374536967426974734a000b6d6f7374536967426974737870" +
		"fedcba98765432100123456789abcdef"
	goldenAddress = "http://10.0.0.1:8081"
)

var goldenSession = uuid.MustParse("01234567-89ab-cdef-fedc-ba9876543210")

func unhex(tb testing.TB, text string) []byte {
	tb.Helper()
	data, err := hex.DecodeString(text)
	require.NoError(tb, err)
	return data
}

// lines reads a file that testdata/ConnectionInfo.java wrote.
func lines[T any](tb testing.TB, name string) []T {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(tb, err)
	var all []T
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var one T
		require.NoError(tb, d.Decode(&one))
		all = append(all, one)
	}
	require.NotEmpty(tb, all)
	return all
}

func TestConnectionInfoGolden(t *testing.T) {
	data, err := encodeConnectionInfo(goldenAddress, goldenSession)
	require.NoError(t, err)
	require.Equal(t, golden, hex.EncodeToString(data))
	require.Len(t, data, 104)
	requireDecodes(t, data, goldenAddress, goldenSession)
}

func requireDecodes(tb require.TestingT, data []byte, address string, session uuid.UUID) {
	gotAddress, gotSession, err := decodeConnectionInfo(data)
	require.NoError(tb, err)
	require.Equal(tb, address, gotAddress)
	require.Equal(tb, session, gotSession)
}

// written is a record of Java's: whole where it is short, or its size and hash.
type written struct {
	Address []struct {
		Text  string
		Times int
	}
	Session uuid.UUID
	Hex     string
	Size    int
	SHA256  string
}

func (w *written) address() string {
	var b strings.Builder
	for _, part := range w.Address {
		b.WriteString(strings.Repeat(part.Text, part.Times))
	}
	return b.String()
}

func TestConnectionInfoIsWhatJavaWrites(t *testing.T) {
	for _, w := range lines[written](t, "written.jsonl") {
		data, err := encodeConnectionInfo(w.address(), w.Session)
		require.NoError(t, err)
		if w.Hex != "" {
			require.Equal(t, w.Hex, hex.EncodeToString(data), "%v", w.Address)
		} else {
			require.Len(t, data, w.Size, "%v", w.Address)
			hash := sha256.Sum256(data)
			require.Equal(t, w.SHA256, hex.EncodeToString(hash[:]), "%v", w.Address)
		}
		requireDecodes(t, data, w.address(), w.Session)
	}
}

// read is a record, and what Java's reader gets from it: an address and a session ("null" if it is), or an exception.
type read struct {
	Title, Hex, Address, Session, Refused string
}

func TestConnectionInfoIsReadAsByJava(t *testing.T) {
	stricter := map[string]bool{ // Java reads these, and Go must not
		"high surrogate alone": true, "high surrogate at the end": true, "low surrogate alone": true, "surrogates in the wrong order": true,
		"null session": true, "class flags 0a": true, "class flags 22": true, "class with a write method": true, "annotated class": true,
		"one field": true, "three fields": true,
	}
	for _, r := range lines[read](t, "read.jsonl") {
		t.Run(r.Title, func(t *testing.T) {
			address, session, err := decodeConnectionInfo(unhex(t, r.Hex))
			if r.Refused != "" || stricter[r.Title] {
				require.Error(t, err)
				require.NotErrorIs(t, err, errNoConnectionInfo)
				require.Empty(t, address)
				require.Equal(t, uuid.Nil, session)
				require.NotEqual(t, stricter[r.Title], r.Refused != "", "Java reads what Go alone refuses")
				return
			}
			require.NoError(t, err)
			require.Equal(t, r.Address, address)
			require.Equal(t, r.Session, session.String())
		})
	}
}

func TestNoConnectionInfo(t *testing.T) {
	for _, data := range [][]byte{nil, {}} {
		_, _, err := decodeConnectionInfo(data)
		require.ErrorIs(t, err, errNoConnectionInfo)
	}
}

func TestPartOfConnectionInfoIsRefused(t *testing.T) {
	data := unhex(t, golden)
	for n := 1; n < len(data); n++ {
		_, _, err := decodeConnectionInfo(data[:n])
		require.Error(t, err, "%d bytes", n)
		require.NotErrorIs(t, err, errNoConnectionInfo, "%d bytes", n)
	}
}

func TestAddressesThatConnectionInfoCannotHold(t *testing.T) {
	for address, want := range map[string]string{
		strings.Repeat("a", 65536):        "the address takes 65536 bytes in Java's UTF-8, and Flink's leader record holds 65535: use a shorter one",
		strings.Repeat("\x00", 32768):     "the address takes 65536 bytes in Java's UTF-8, and Flink's leader record holds 65535: use a shorter one",
		strings.Repeat("\u20ac", 21846):   "the address takes 65538 bytes in Java's UTF-8, and Flink's leader record holds 65535: use a shorter one",
		strings.Repeat("😀", 10923):        "the address takes 65538 bytes in Java's UTF-8, and Flink's leader record holds 65535: use a shorter one",
		"a\xff":                           `the address "a\xff" is not UTF-8`,
		"\xed\xa0\xbd" /* a surrogate */ : `the address "\xed\xa0\xbd" is not UTF-8`,
	} {
		data, err := encodeConnectionInfo(address, goldenSession)
		require.EqualError(t, err, want)
		require.Nil(t, data)
	}
}

func sessions() *rapid.Generator[uuid.UUID] {
	return rapid.Custom(func(t *rapid.T) uuid.UUID {
		return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "session"))
	})
}

func addresses() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune("az\x00\x7f\u0080é\u07ff\u0800€\ud7ff\ue000\ufffd\uffff\U00010000😀\U0010ffff")), 0, 3000, -1))
}

func TestConnectionInfoComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		address, session := addresses().Draw(t, "address"), sessions().Draw(t, "session")
		data, err := encodeConnectionInfo(address, session)
		require.NoError(t, err)
		requireDecodes(t, data, address, session)
	})
}

// A record says the same however its blocks are cut.
func TestConnectionInfoInOtherBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		address, session := addresses().Draw(t, "address"), sessions().Draw(t, "session")
		data, err := encodeConnectionInfo(address, session)
		require.NoError(t, err)
		text, object, err := cutText(data[len(streamHeader):])
		require.NoError(t, err)

		left := append([]byte{byte(len(text) >> 8), byte(len(text))}, text...)
		data = []byte(streamHeader)
		for len(left) > 0 {
			n := rapid.IntRange(0, min(len(left), 1500)).Draw(t, "size")
			data = append(data, otherBlock(t, left[:n])...)
			left = left[n:]
		}
		requireDecodes(t, append(data, object...), address, session)
	})
}

// otherBlock is a block in one of the forms that it may have.
func otherBlock(t *rapid.T, payload []byte) []byte {
	n := len(payload)
	head := []byte{0x7a, 0, 0, byte(n >> 8), byte(n)}
	if n <= 255 && rapid.Bool().Draw(t, "short") {
		head = []byte{0x77, byte(n)}
	}
	resets := rapid.IntRange(0, 2).Draw(t, "resets")
	return append(append(bytes.Repeat([]byte{0x79}, resets), head...), payload...)
}

// FuzzDecodeConnectionInfo: no bytes make it panic, and what is read is written so that it reads the same.
func FuzzDecodeConnectionInfo(f *testing.F) {
	f.Add(unhex(f, golden))
	for _, r := range lines[read](f, "read.jsonl") {
		if data := unhex(f, r.Hex); len(data) < 256 { // long ones keep the fuzzer busy with cutting them down
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		address, session, err := decodeConnectionInfo(data)
		if err != nil {
			return
		}
		again, err := encodeConnectionInfo(address, session)
		require.NoError(t, err, "what is read can be written")
		requireDecodes(t, again, address, session)
	})
}
