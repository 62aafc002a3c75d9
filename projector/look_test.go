package projector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// looked is a target of one object for each component, of which some can't be read.
type looked struct {
	Target
	shared bool
	slow   time.Duration // of each read

	mu   sync.Mutex
	now  int // reads under way
	most int
}

func (l *looked) PerComponent() bool { return !l.shared }

func (l *looked) Read(ctx context.Context, components []string) ([]Observation, error) {
	l.mu.Lock()
	l.now++
	l.most = max(l.most, l.now)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.now--
	}()
	shown := make([]Observation, len(components))
	for i, name := range components {
		switch name {
		case "forbidden":
			return nil, errors.New("403\nforbidden")
		case "hangs":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		<-time.After(l.slow)
		shown[i] = Observation{Component: name, Revision: 7}
	}
	return shown, ctx.Err()
}

func (l *looked) look(t *testing.T, components ...string) []Reading {
	p := &Projector{cfg: Config{Leaders: func(string) Target { return l }}}
	return p.Look(t.Context(), "g", "", components)
}

func TestOneObjectThatCannotBeReadKeepsNoOtherFromBeingKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looked{}
		began := time.Now()
		readings := l.look(t, "a", "hangs", "forbidden", "b")
		require.Equal(t, lookTimeout, time.Since(began))
		for _, i := range []int{0, 3} {
			require.Empty(t, readings[i].Error)
			require.Equal(t, uint64(7), readings[i].Revision)
		}
		require.Contains(t, readings[1].Error, "there was no answer within 5s")
		require.Equal(t, "hangs", readings[1].Component)
		require.Equal(t, "403 forbidden", readings[2].Error)
	})
}

// TestManySlowObjectsAreAllRead though together they take longer than any one of them may.
func TestManySlowObjectsAreAllRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looked{slow: 4 * time.Second}
		names := make([]string, 10*looks)
		for _, r := range l.look(t, names...) {
			require.Empty(t, r.Error)
		}
	})
}

// TestATargetTakesOneTimeOut has so many objects that hang that they take several rounds.
func TestATargetTakesOneTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looked{}
		began := time.Now()
		hanging := make([]string, 10*looks)
		for i := range hanging {
			hanging[i] = "hangs"
		}
		for _, r := range l.look(t, hanging...) {
			require.NotEmpty(t, r.Error)
		}
		require.Equal(t, lookTimeout, time.Since(began))
	})
}

func TestFewObjectsAreReadAtOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looked{slow: time.Millisecond}
		var names []string
		for i := range 100 {
			names = append(names, fmt.Sprintf("c%d", i))
		}
		for i, r := range l.look(t, names...) {
			require.Equal(t, names[i], r.Component)
			require.Empty(t, r.Error)
		}
		require.Equal(t, looks, l.most)
	})
}

func TestOneObjectIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looked{shared: true}
		for _, r := range l.look(t, "a", "b") {
			require.Empty(t, r.Error)
		}
		require.Equal(t, 1, l.most)
		for _, r := range l.look(t, "a", "forbidden") {
			require.Equal(t, "403 forbidden", r.Error, "whoever is shown there, it is not known")
		}
	})
}
