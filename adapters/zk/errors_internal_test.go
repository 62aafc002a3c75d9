package zk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	gozk "github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/projector"
)

// TestWhatAFailedWriteMeans holds that only an answer of the server's, or nothing having been sent, proves anything.
func TestWhatAFailedWriteMeans(t *testing.T) {
	for _, c := range []struct{ err, want error }{
		{gozk.ErrBadVersion, projector.ErrConflict},
		{gozk.ErrNodeExists, projector.ErrConflict},
		{gozk.ErrNoNode, projector.ErrConflict},
		{gozk.ErrNotEmpty, projector.ErrConflict},
		{gozk.ErrNoAuth, projector.ErrPermanent},
		{gozk.ErrInvalidACL, projector.ErrPermanent},
		{gozk.ErrBadArguments, projector.ErrPermanent},
		{gozk.ErrConnectionClosed, projector.ErrUnknownOutcome},
		{gozk.ErrSessionExpired, projector.ErrUnknownOutcome},
		{gozk.ErrClosing, projector.ErrUnknownOutcome},
		{context.DeadlineExceeded, projector.ErrUnknownOutcome},
		{io.ErrClosedPipe, projector.ErrUnknownOutcome},
		{gozk.ErrNoServer, nil},
		{fmt.Errorf("%w: refused", errUnreachable), nil},
	} {
		err := classifyWrite(c.err)
		require.ErrorIs(t, err, c.err)
		says := map[error]bool{}
		for _, one := range []error{projector.ErrUnknownOutcome, projector.ErrConflict, projector.ErrPermanent} {
			says[one] = errors.Is(err, one)
		}
		require.Equal(t, c.want != nil, says[c.want], "%v", c.err)
		delete(says, c.want)
		require.NotContains(t, slices.Collect(maps.Values(says)), true, "%v", c.err)
	}
}
