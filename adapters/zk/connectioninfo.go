package zk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Flink's leader record is a Java object stream: the address by writeUTF, as block data, then the session, a
// java.util.UUID, by writeObject. The grammar is chapter 6 of the Java Object Serialization Specification.
const (
	streamHeader = "\xac\xed\x00\x05"

	blockData     = 0x77 // with a length of one byte
	blockDataLong = 0x7a // with a length of four
	maxBlock      = 1024 // bytes that Java's writer puts in a block; its reader takes any number
	reset         = "\x79"

	uuidClass  = "\x73\x72\x00\x0ejava.util.UUID\xbc\x99\x03\xf7\x98\x6d\x85\x2f\x02\x00\x02"
	leastField = "J\x00\x0cleastSigBits"
	mostField  = "J\x00\x0bmostSigBits"
	classEnd   = "\x78\x70"
	leastFirst = uuidClass + leastField + mostField + classEnd // as Java writes it
	mostFirst  = uuidClass + mostField + leastField + classEnd
)

// errNoConnectionInfo says that a node has no data: this is how Flink shows that nobody leads.
var errNoConnectionInfo = errors.New("no leader is shown")

// encodeConnectionInfo gives the record byte for byte as Java 17 writes it. It fails for an address that is not UTF-8,
// or takes more than the 65,535 bytes that writeUTF can count. Later releases of Java cut the blocks of some addresses
// elsewhere, so that records are the same when they decode to the same, whatever their bytes.
func encodeConnectionInfo(address string, session uuid.UUID) ([]byte, error) {
	if !utf8.ValidString(address) {
		return nil, fmt.Errorf("the address %.64q is not UTF-8", address)
	}
	text := appendModifiedUTF8(make([]byte, 2, 2+len(address)), address) // behind its length
	size := len(text) - 2
	if size > math.MaxUint16 {
		return nil, fmt.Errorf("the address takes %d bytes in Java's UTF-8, and Flink's leader record holds %d: use a shorter one",
			size, math.MaxUint16)
	}
	binary.BigEndian.PutUint16(text, uint16(size))

	record := appendBlocks([]byte(streamHeader), text)
	record = append(record, leastFirst...)
	record = append(record, session[8:]...)
	return append(record, session[:8]...), nil
}

func appendBlocks(stream, payload []byte) []byte {
	for block := range slices.Chunk(payload, maxBlock) {
		if len(block) <= math.MaxUint8 {
			stream = append(stream, blockData, byte(len(block)))
		} else {
			stream = binary.BigEndian.AppendUint32(append(stream, blockDataLong), uint32(len(block)))
		}
		stream = append(stream, block...)
	}
	return stream
}

// decodeConnectionInfo reads a record, whoever wrote it, and gives errNoConnectionInfo for one without bytes. What it
// accepts, Java's readUTF and readObject read as the same: blocks of any size, resets between them, the two fields of
// the UUID in either order, anything behind it. It refuses what Java refuses, which stops Flink's readers, and three
// things that Java reads: half a surrogate pair in the address, which no Go string could show unchanged; a null session;
// and a description of the class that no Java writes, with other flags, fields or annotations.
func decodeConnectionInfo(data []byte) (address string, session uuid.UUID, err error) {
	if len(data) == 0 {
		return "", uuid.Nil, errNoConnectionInfo
	}
	stream, ok := bytes.CutPrefix(data, []byte(streamHeader))
	if !ok {
		return "", uuid.Nil, errors.New("not a Java object stream: it does not begin with AC ED 00 05")
	}
	text, object, err := cutText(stream)
	if err != nil {
		return "", uuid.Nil, fmt.Errorf("read the address: %w", err)
	}
	if address, err = decodeModifiedUTF8(text); err != nil {
		return "", uuid.Nil, fmt.Errorf("read the address: %w", err)
	}
	if session, err = decodeSession(object); err != nil {
		return "", uuid.Nil, fmt.Errorf("read the session: %w", err)
	}
	return address, session, nil
}

// cutText takes blocks off the stream until they hold the text that the first two bytes in them announce. As for
// Java's reader, the last block must end with the text.
func cutText(stream []byte) (text, rest []byte, err error) {
	var payload []byte
	for len(payload) < announced(payload) {
		var block []byte
		if block, stream, err = cutBlock(stream); err != nil {
			return nil, nil, err
		}
		payload = append(payload, block...)
	}
	if extra := len(payload) - announced(payload); extra > 0 {
		return nil, nil, fmt.Errorf("its last block goes on for %d bytes behind it", extra)
	}
	return payload[2:], stream, nil
}

// announced is how many bytes the text takes with its length, as far as the payload tells.
func announced(payload []byte) int {
	if len(payload) < 2 {
		return 2
	}
	return 2 + int(binary.BigEndian.Uint16(payload))
}

func cutBlock(stream []byte) (block, rest []byte, err error) {
	stream = bytes.TrimLeft(stream, reset)
	var size uint32
	switch {
	case len(stream) >= 2 && stream[0] == blockData:
		size, rest = uint32(stream[1]), stream[2:]
	case len(stream) >= 5 && stream[0] == blockDataLong:
		size, rest = binary.BigEndian.Uint32(stream[1:]), stream[5:]
	default:
		return nil, nil, errors.New("no further block of data, and it is not complete")
	}
	if uint64(size) > uint64(len(rest)) {
		return nil, nil, fmt.Errorf("a block of %d bytes, of which there are %d", size, len(rest))
	}
	return rest[:size], rest[size:], nil
}

func decodeSession(object []byte) (session uuid.UUID, err error) {
	object = bytes.TrimLeft(object, reset)
	if halves, ok := bytes.CutPrefix(object, []byte(leastFirst)); ok && len(halves) >= len(session) {
		copy(session[8:], halves)
		copy(session[:8], halves[8:])
		return session, nil
	}
	if halves, ok := bytes.CutPrefix(object, []byte(mostFirst)); ok && len(halves) >= len(session) {
		copy(session[:], halves)
		return session, nil
	}
	return uuid.Nil, errors.New("what follows the address is not a whole java.util.UUID")
}
