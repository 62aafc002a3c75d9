package stream

import "time"

// maxRecent bounds the memory of ids, at some 150 bytes each. An older id is still known to the server, which then
// refuses the batch it is in; the batch goes one by one.
const maxRecent = 1 << 17

// recent are the events that were stored in the last two minutes and where.
type recent struct {
	sequences map[string]uint64
	order     []recentID // a ring, oldest at head
	head      int
	now       func() time.Time
}

type recentID struct {
	id string
	at time.Time
}

func newRecent() recent { return recent{sequences: map[string]uint64{}, now: time.Now} }

func (r *recent) find(id string) (uint64, bool) {
	sequence, ok := r.sequences[id]
	return sequence, ok
}

// add remembers an id; one that is known keeps its place.
func (r *recent) add(id string, sequence uint64) {
	if _, ok := r.sequences[id]; ok {
		return
	}
	if len(r.sequences) == maxRecent {
		r.drop()
	}
	r.sequences[id] = sequence
	r.order = append(r.order, recentID{id, r.now()})
}

// forget drops what the server no longer knows either.
func (r *recent) forget() {
	for deadline := r.now().Add(-window); r.head < len(r.order) && r.order[r.head].at.Before(deadline); {
		r.drop()
	}
}

// drop removes the oldest, and moves the others down once half of the space is free.
func (r *recent) drop() {
	delete(r.sequences, r.order[r.head].id)
	r.order[r.head] = recentID{}
	r.head++
	if r.head > len(r.order)/2 {
		r.order = r.order[:copy(r.order, r.order[r.head:])]
		r.head = 0
	}
}
