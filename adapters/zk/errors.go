package zk

import (
	"errors"
	"fmt"
	"slices"

	gozk "github.com/go-zookeeper/zk"

	"github.com/leadership-journal/journald/projector"
)

// reading says what was being read when it failed; that there is no such node is no failure.
func reading(path string, err error) error {
	if err == nil || errors.Is(err, gozk.ErrNoNode) {
		return nil
	}
	return fmt.Errorf("read %s: %w", path, err)
}

// classifyRead says what a failed read, or the making of a parent, means. Nothing of the document was written.
func classifyRead(err error) error {
	if isAny(err, refusals()) {
		return fmt.Errorf("%w: %w", projector.ErrPermanent, err)
	}
	return err
}

// classifyWrite says what a failed transaction means. Only the server's own refusal proves that nothing was written:
// whatever ends with the connection, or in an answer that is not understood, may have landed.
func classifyWrite(err error) error {
	switch {
	case isAny(err, []error{errUnreachable, gozk.ErrNoServer}):
		return err
	case isAny(err, conflicts()):
		return fmt.Errorf("%w: %w", projector.ErrConflict, err)
	case isAny(err, refusals()):
		return fmt.Errorf("%w: %w", projector.ErrPermanent, err)
	}
	return fmt.Errorf("%w: %w", projector.ErrUnknownOutcome, err)
}

// conflicts are answers to a transaction that was composed on something older.
func conflicts() []error {
	return []error{gozk.ErrBadVersion, gozk.ErrNoNode, gozk.ErrNodeExists, gozk.ErrNotEmpty}
}

// refusals are answers that stay the same until somebody changes something.
func refusals() []error {
	return []error{
		gozk.ErrNoAuth, gozk.ErrInvalidACL, gozk.ErrAuthFailed, gozk.ErrBadArguments, gozk.ErrInvalidPath,
		gozk.ErrNoChildrenForEphemerals,
	}
}

func isAny(err error, all []error) bool {
	return slices.ContainsFunc(all, func(one error) bool { return errors.Is(err, one) })
}
