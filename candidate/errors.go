package candidate

import (
	"context"
	"errors"
	"fmt"

	"github.com/leadership-journal/journald/client"
)

// Why a term's context has ended, by [context.Cause] and [errors.Is]. Where Run was told to end it is the cause of its own
// context, in other words around it.
var (
	// ErrLeaseLost: the lease could not be renewed in time, or was ended; somebody else may lead soon.
	ErrLeaseLost = errors.New("the lease is lost")

	// ErrTermOver: the journal says that the term is closed.
	ErrTermOver = errors.New("the term is over")

	// ErrReplaced: another process has joined by the same name. It is also what Run returns; give each process a name of
	// its own, or see to it that the older one has ended before the newer one starts.
	ErrReplaced = errors.New("another process has joined by this name")
)

// errShutdown is in the cause of every end that comes of Run's being told to end; the cause of its context is too, which may be
// anything, such as a signal.
var errShutdown = errors.New("the candidate was told to end")

func shutdown(ctx context.Context) error {
	return fmt.Errorf("%w: %w", errShutdown, context.Cause(ctx))
}

// Yielded is why the context of a term has ended that was to be given up.
type Yielded struct{ client.Yield }

// Error says for what reason, and who is to follow.
func (y *Yielded) Error() string {
	if y.To == "" {
		return "told to yield: " + y.Reason
	}
	return fmt.Sprintf("told to yield to %s: %s", y.To, y.Reason)
}
