package zk

import (
	"context"
	"fmt"
	"io"
	"testing"

	gozk "github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/projector"
)

// TestWhatAFailedWriteMeans holds that only an answer of the server's, or nothing having been sent, proves anything.
func TestWhatAFailedWriteMeans(t *testing.T) {
	all := []error{projector.ErrUnknownOutcome, projector.ErrConflict, projector.ErrPermanent}
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
		for _, one := range all {
			if one == c.want {
				require.ErrorIs(t, err, one, "%v", c.err)
			} else {
				require.NotErrorIs(t, err, one, "%v", c.err)
			}
		}
	}
}
