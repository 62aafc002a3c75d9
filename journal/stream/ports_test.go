package stream

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// freePorts are loopback addresses that nobody listened on a moment ago.
func freePorts(tb testing.TB, n int) []string {
	tb.Helper()
	var listeners []net.Listener
	var addresses []string
	for range n {
		l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
		require.NoError(tb, err)
		listeners = append(listeners, l)
		addresses = append(addresses, l.Addr().String())
	}
	for _, l := range listeners {
		require.NoError(tb, l.Close())
	}
	return addresses
}
