package zk

import (
	"fmt"
	"log/slog"
)

// debugLog takes the library's own log, whose messages are of use to nobody but who looks for a fault in it.
type debugLog struct{ logger *slog.Logger }

// Printf implements the library's Logger.
func (l debugLog) Printf(format string, args ...any) {
	l.logger.Debug("the ZooKeeper library says", "text", fmt.Sprintf(format, args...))
}
