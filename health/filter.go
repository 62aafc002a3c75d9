package health

// Filter says which runs the journal is told of, as the contract has it: every failing one, and so many passing ones as
// the journal counts until a check passes again (successThreshold), after a failing one and wherever the journal may have
// begun to count anew: in a new incarnation, after a reconnect, and after it called the candidate stale. It is for one
// goroutine at a time.
type Filter struct {
	threshold int
	told      map[string]int // passing runs, by check
}

// NewFilter is that of a new incarnation. A threshold of less than 1 counts as 1.
func NewFilter(successThreshold int) *Filter {
	f := &Filter{told: map[string]int{}}
	f.Threshold(successThreshold)
	return f
}

// Threshold changes the successThreshold from here on: one that rises has more passing runs told.
func (f *Filter) Threshold(success int) { f.threshold = max(success, 1) }

// Anew says that the journal may have missed runs, or forgotten them.
func (f *Filter) Anew() { clear(f.told) }

// Tell says whether the journal is told of this run, the newest of its check.
func (f *Filter) Tell(r Result) bool {
	if !r.Pass {
		f.told[r.Check] = 0
		return true
	}
	if f.told[r.Check] >= f.threshold {
		return false
	}
	f.told[r.Check]++
	return true
}
