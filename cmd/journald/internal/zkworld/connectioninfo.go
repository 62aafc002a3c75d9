package zkworld

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf16"

	"github.com/google/uuid"
)

// Flink's leader record, written and read by itself here: what a scenario is shown must not be what the adapter
// believes. It is a Java object stream, the address in blocks, then the session.
const (
	head  = "\xac\xed\x00\x05"
	short = 0x77 // block whose length takes one byte
	long  = 0x7a // four bytes
	tail  = "sr\x00\x0ejava.util.UUID\xbc\x99\x03\xf7\x98\x6d\x85\x2f\x02\x00\x02J\x00\x0cleastSigBitsJ\x00\x0bmostSigBitsxp"
)

var errNoRecord = errors.New("it is no leader record of Flink's")

// encode makes a record with one long block, which readers take as well as the ones that Java cuts.
func encode(address string, session uuid.UUID) []byte {
	text := modified(address)
	record := append([]byte(head), long)
	record = binary.BigEndian.AppendUint32(record, uint32(len(text)+2))
	record = binary.BigEndian.AppendUint16(record, uint16(len(text)))
	record = append(append(record, text...), tail...)
	return append(append(record, session[8:]...), session[:8]...)
}

func decode(record []byte) (address string, session uuid.UUID, err error) {
	rest, ok := strings.CutPrefix(string(record), head)
	if !ok {
		return "", uuid.Nil, errNoRecord
	}
	text, rest, ok := cutBlocks(rest)
	rest, same := strings.CutPrefix(rest, tail)
	if !ok || !same || len(text) < 2 || len(rest) != len(session) {
		return "", uuid.Nil, errNoRecord
	}
	copy(session[:], rest[8:]+rest[:8])
	return plain(text[2:]), session, nil
}

// cutBlocks takes blocks off the front of a stream.
func cutBlocks(stream string) (text, rest string, ok bool) {
	for {
		var size int
		switch {
		case len(stream) >= 2 && stream[0] == short:
			size, stream = int(stream[1]), stream[2:]
		case len(stream) >= 5 && stream[0] == long:
			size, stream = int(binary.BigEndian.Uint32([]byte(stream[1:5]))), stream[5:]
		default:
			return text, stream, true
		}
		if size > len(stream) {
			return "", "", false
		}
		text, stream = text+stream[:size], stream[size:]
	}
}

// modified is a text as Java's writeUTF has it: each unit of UTF-16 by itself, and NUL in two bytes.
func modified(text string) []byte {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		switch {
		case 0 < unit && unit < 0x80:
			b = append(b, byte(unit))
		case unit < 0x800:
			b = append(b, 0xc0|byte(unit>>6), 0x80|byte(unit&0x3f))
		default:
			b = append(b, 0xe0|byte(unit>>12), 0x80|byte(unit>>6&0x3f), 0x80|byte(unit&0x3f))
		}
	}
	return b
}

func plain(text string) string {
	var units []uint16
	for i := 0; i < len(text); {
		unit, more := uint16(text[i]), 0
		switch {
		case unit >= 0xe0:
			unit, more = unit&0x0f, 2
		case unit >= 0xc0:
			unit, more = unit&0x1f, 1
		}
		for i++; more > 0 && i < len(text); more-- {
			unit = unit<<6 | uint16(text[i]&0x3f)
			i++
		}
		units = append(units, unit)
	}
	return string(utf16.Decode(units))
}
