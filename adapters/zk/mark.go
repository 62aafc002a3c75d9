package zk

import (
	"encoding/json"
	"fmt"

	"github.com/leadership-journal/journald/journal"
)

// mark is what a fence says: which intent is shown, and by whom it was written.
//
// Versions begin anew with a node that was deleted and made again, so that a late write could take the new one for the
// one that it was composed on. Life names a child that a fence has as long as it lives, and no other fence ever has:
// every write is on condition of it.
type mark struct {
	Sequence  uint64              `json:"sequence"`
	Projector uint64              `json:"projector"`
	Life      string              `json:"life,omitempty"`
	Leader    *journal.LeaderInfo `json:"leader,omitzero"` // layout latch: what the id that is shown stands for
}

// newMark reads a fence; one that can't be read is none.
func newMark(n *node) *mark {
	m := &mark{}
	if n == nil || json.Unmarshal(n.data, m) != nil {
		return &mark{}
	}
	return m
}

func (m *mark) encode() ([]byte, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode a fence: %w", err)
	}
	return data, nil
}
