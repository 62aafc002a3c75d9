package zkworld

import (
	"context"
	"errors"

	gozk "github.com/go-zookeeper/zk"

	"github.com/leadership-journal/journald/scenario"
)

// gated has a write pass the scenario's gate. One that a scenario has fail ends as it would for a client of ZooKeeper.
func gated(ctx context.Context, write func(context.Context) error) error {
	err := scenario.Gate(ctx, write)
	var fault *scenario.Injected
	if errors.As(err, &fault) {
		return answer(fault.Word)
	}
	return err
}

// errThrottled is the library's word for ZooKeeper's ZTHROTTLEDOP, which it does not know.
var errThrottled = errors.New("unknown error: -127")

// answer is what the client sees of a fault. That a namespace is not there has no like in ZooKeeper, where whatever is
// missing above a node is made; a place where none can be made is what stays as it is until somebody acts.
func answer(word string) error {
	switch word {
	case "unavailable":
		return gozk.ErrNoServer
	case "throttled":
		return errThrottled
	case "forbidden":
		return gozk.ErrNoAuth
	case "conflict":
		return gozk.ErrBadVersion
	case "not-found":
		return gozk.ErrNoChildrenForEphemerals
	case "invalid":
		return gozk.ErrBadArguments
	}
	return gozk.ErrConnectionClosed
}
