package k8s

import (
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// heartbeat bounds for how long a connection may be mute: its peer frozen, its packets lost. TCP would say nothing for
// a quarter of an hour, client-go's own bounds are 30 s and 15 s. It holds over HTTP/2, which API servers speak.
type heartbeat struct {
	after time.Duration // of silence, a ping is sent
	waits time.Duration // for its answer; then all that the connection carries fails
}

func defaultHeartbeat() heartbeat { return heartbeat{after: 10 * time.Second, waits: 5 * time.Second} }

// dialTimeout bounds how long a connection may take to come about.
const dialTimeout = 10 * time.Second

// apply has the connections of a configuration be checked.
func (h heartbeat) apply(config *rest.Config) {
	if config.Transport != nil {
		return // the owner's
	}
	if config.Dial == nil { // with a dialer of its own it shares no connection with other users of client-go
		config.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	config.WrapTransport = transport.Wrappers(h.set, config.WrapTransport)
}

// set finds the connections below what client-go has wrapped around them.
func (h heartbeat) set(wrapped http.RoundTripper) http.RoundTripper {
	for inner := wrapped; ; {
		switch t := inner.(type) {
		case *http.Transport:
			t.HTTP2 = &http.HTTP2Config{SendPingTimeout: h.after, PingTimeout: h.waits}
			return wrapped
		case utilnet.RoundTripperWrapper:
			inner = t.WrappedRoundTripper()
		default:
			return wrapped
		}
	}
}
