package kv

import (
	"fmt"
	"maps"

	"github.com/go-json-experiment/json"

	"github.com/leadership-journal/journald/journal"
)

// Leader is the value of a key.
type Leader struct {
	Sequence uint64              `json:"sequence"` // of the last record that changed what follows
	Epoch    uint64              `json:"epoch"`
	Phase    string              `json:"phase"`  // vacant, granted or confirmed
	Leader   *journal.LeaderInfo `json:"leader"` // null: nobody is shown
}

// entry is a key at one revision.
type entry struct {
	revision uint64 // 0: there never was such a key
	leader   Leader
	readable bool // false: the key was deleted, or somebody else's text is in it
}

func (l Leader) encode() ([]byte, error) {
	text, err := json.Marshal(l, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode a leader: %w", err)
	}
	return text, nil
}

// decode reads a value; members that are not known are ignored.
func decode(text []byte) (Leader, bool) {
	var l Leader
	if err := json.Unmarshal(text, &l); err != nil {
		return Leader{}, false
	}
	return l, true
}

func (l Leader) equal(other Leader) bool {
	if l.Sequence != other.Sequence || l.Epoch != other.Epoch || l.Phase != other.Phase {
		return false
	}
	a, b := l.Leader, other.Leader
	if a == nil || b == nil {
		return a == b
	}
	return a.Session == b.Session && a.Candidate == b.Candidate && a.Address == b.Address && maps.Equal(a.Properties, b.Properties)
}
