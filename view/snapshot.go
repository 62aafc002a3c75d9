package view

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// snapshot is the whole state of a view, as it is written.
type snapshot struct {
	Version   int               `json:"version"`
	Sequence  uint64            `json:"sequence"`
	Time      time.Time         `json:"time"`
	Projector uint64            `json:"projector"`
	Instance  string            `json:"instance"`
	Groups    map[string]*Group `json:"groups"`
}

const snapshotVersion = 1

// Snapshot writes the whole state, in the same bytes for the same records.
func (v *View) Snapshot(w io.Writer) error {
	if err := json.MarshalWrite(w, v.state(), json.Deterministic(true)); err != nil {
		return fmt.Errorf("write a snapshot of the view at %d: %w", v.sequence, err)
	}
	return nil
}

func (v *View) state() *snapshot {
	return &snapshot{snapshotVersion, v.sequence, v.time, v.projector, v.instance, v.groups}
}

// Restore reads what Snapshot wrote. The view goes on from there as if it had folded every record before.
func Restore(r io.Reader) (*View, error) {
	s := snapshot{Groups: map[string]*Group{}}
	if err := json.UnmarshalRead(r, &s, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("read a snapshot of the view: %w", err)
	}
	if s.Version != snapshotVersion {
		return nil, fmt.Errorf("read a snapshot of the view: it has version %d, this program reads %d", s.Version, snapshotVersion)
	}
	if year := s.Time.UTC().Year(); year < 0 || year > 9999 {
		return nil, fmt.Errorf("read a snapshot of the view: its time %s has no place in another one", s.Time)
	}
	v := New()
	v.sequence, v.time, v.projector, v.instance, v.groups = s.Sequence, s.Time.UTC(), s.Projector, s.Instance, s.Groups
	for name, g := range v.groups {
		if err := g.check(name); err != nil {
			return nil, fmt.Errorf("read a snapshot of the view: group %q: %w", name, err)
		}
		g.index()
		v.Reconsider(name)
	}
	return v, nil
}

// Hash is the SHA-256 of the state, in hexadecimal: the same for the same records, whatever the order of maps, the
// restarts and snapshots in between, and the size of batches. Sequence and time of the newest record are no part of
// it, so that a record that changed nothing leaves it as it was.
func (v *View) Hash() string {
	s := v.state()
	s.Sequence, s.Time = 0, time.Time{}
	sum := sha256.New()
	// What fails here is a type of ours that has no JSON form: our bug, never anybody's input.
	if err := json.MarshalWrite(sum, s, json.Deterministic(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		panic(fmt.Sprintf("hash the view at %d: %v", v.sequence, err))
	}
	return hex.EncodeToString(sum.Sum(nil))
}
