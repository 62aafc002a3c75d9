package outage_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What journald may take more of in the last quarter of an outage than in the second one, at the median.
//
// Of each record it keeps the id for two minutes, by which a repeated one is found, its place in the store, and a byte for
// good: less than a KiB, of some 15,000 records between the two. As much again may be garbage. A push that is not forgotten
// would take some KiB, of twice as many.
const (
	moreMemory     = 32 << 20 // resident bytes
	moreGoroutines = 200
)

// sample is what journald takes at one time.
type sample struct {
	resident   int // bytes
	goroutines int
}

var goroutinesLine = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

// measure takes a sample.
func (w *world) measure() {
	w.t.Helper()
	found := goroutinesLine.FindSubmatch(w.get("/metrics"))
	require.NotNil(w.t, found, goroutinesLine)
	goroutines, err := strconv.Atoi(string(found[1]))
	require.NoError(w.t, err)
	w.memory = append(w.memory, sample{int(w.process.Resident()), goroutines})
}

// staysSmall says that what journald takes did not grow with the outage.
func (w *world) staysSmall(t *testing.T) {
	var text strings.Builder
	for _, s := range w.memory {
		fmt.Fprintf(&text, " %d", s.resident>>20)
	}
	early, late := w.quarter(1), w.quarter(3)
	t.Logf("%d goroutines, later %d; resident memory in MiB, each %s:%s", early.goroutines, late.goroutines, look, text.String())
	require.Less(t, late.resident-early.resident, moreMemory)
	require.Less(t, late.goroutines-early.goroutines, moreGoroutines)
}

// quarter is the median of what was measured in a quarter of the outage, counted from 0.
func (w *world) quarter(n int) sample {
	part := w.memory[n*len(w.memory)/4 : max((n+1)*len(w.memory)/4, n*len(w.memory)/4+1)]
	median := func(of func(sample) int) int {
		all := make([]int, len(part))
		for i, s := range part {
			all[i] = of(s)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return sample{median(func(s sample) int { return s.resident }), median(func(s sample) int { return s.goroutines })}
}
