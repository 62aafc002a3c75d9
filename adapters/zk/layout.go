package zk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/google/uuid"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// largest is how much a znode may hold: ZooKeeper takes a little less than a mebibyte in one request, unless its
// jute.maxbuffer says otherwise.
const largest = 1_000_000

var (
	errNoAddress = errors.New("the leader has no address, and a reader of this layout needs one")
	errTooLarge  = fmt.Errorf("it takes more than the %d bytes that a znode may hold", largest)
)

// content is what a node has to hold.
type content struct {
	data []byte
	gone bool // there must be no node
}

// layout is how an entry lies in a node.
type layout interface {
	// content is what the node has to hold to show an entry. Where there is no node, one without a leader is not made.
	content(sequence uint64, e *projector.Entry) (content, error)

	// leader is what readers see in a node's data, nil where they see none; mark is what we wrote beside it last.
	leader(n *node, mark *mark) *journal.LeaderInfo
}

func layoutOf(name string) layout {
	switch name {
	case Flink:
		return flink{}
	case Latch:
		return latch{}
	}
	return plain{}
}

// flink is a Java object stream of address and session. No leader is a node without data.
type flink struct{}

func (flink) content(_ uint64, e *projector.Entry) (content, error) {
	if e.Leader == nil {
		return content{}, nil
	}
	session, err := uuid.Parse(e.Leader.Session)
	if err != nil || len(e.Leader.Session) != 36 {
		return content{}, fmt.Errorf("session %q is not a UUID, which Flink needs", e.Leader.Session)
	}
	if e.Leader.Address == "" {
		return content{}, errNoAddress
	}
	data, err := encodeConnectionInfo(e.Leader.Address, session)
	return content{data: data}, err
}

func (flink) leader(n *node, _ *mark) *journal.LeaderInfo {
	address, session, err := decodeConnectionInfo(n.data)
	if err != nil {
		return nil
	}
	return &journal.LeaderInfo{Session: session.String(), Address: address}
}

// latch is the id of a participant. No leader is no node: Curator's readers fail on a node without data.
type latch struct{}

func (latch) content(_ uint64, e *projector.Entry) (content, error) {
	switch {
	case e.Leader == nil:
		return content{gone: true}, nil
	case e.Leader.Address == "":
		return content{}, errNoAddress
	case len(e.Leader.Address) > largest:
		return content{}, errTooLarge
	}
	return content{data: []byte(e.Leader.Address)}, nil
}

// leader is who the data names. Session and candidate are only known of what we wrote; else the session is the
// transaction that made the node.
func (latch) leader(n *node, mark *mark) *journal.LeaderInfo {
	id := string(n.data)
	if id == "" {
		return nil
	}
	if mark != nil && mark.Leader != nil && mark.Leader.Address == id {
		return mark.Leader
	}
	leader := &journal.LeaderInfo{Session: fmt.Sprintf("0x%x", n.created), Candidate: id}
	if u, err := url.Parse(id); err == nil && u.Scheme != "" && u.Host != "" {
		leader.Address = id
	}
	return leader
}

// plain is the leader info as JSON, with the sequence in it. No leader is the sequence alone.
type plain struct{}

type plainEntry struct {
	Sequence uint64 `json:"sequence"`
	journal.LeaderInfo
}

type plainNothing struct {
	Sequence uint64 `json:"sequence"`
}

func (plain) content(sequence uint64, e *projector.Entry) (content, error) {
	var what any = plainNothing{sequence}
	if e.Leader != nil {
		what = plainEntry{sequence, *e.Leader}
	}
	data, err := json.Marshal(what)
	if err == nil && len(data) > largest {
		err = errTooLarge
	}
	return content{data: data}, err
}

func (plain) leader(n *node, _ *mark) *journal.LeaderInfo {
	var e plainEntry
	if err := json.Unmarshal(n.data, &e); err != nil || e.Session == "" && e.Address == "" {
		return nil
	}
	return &e.LeaderInfo
}

// holds says whether a node is as it has to be.
func (c *content) holds(n *node, leader *journal.LeaderInfo) bool {
	switch {
	case n == nil:
		return c.gone || leader == nil
	case c.gone:
		return false
	}
	return bytes.Equal(n.data, c.data)
}
