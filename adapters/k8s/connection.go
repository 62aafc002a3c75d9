package k8s

import (
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// patience bounds for how long nothing may come. A connection goes mute where its peer is frozen or its packets are
// lost: TCP would say so after a quarter of an hour, and client-go waits for 45 s. Pings need HTTP/2, which API servers
// speak.
type patience struct {
	silence time.Duration // after which a connection is pinged
	pong    time.Duration // for the answer to that; then all that the connection carries fails
	answer  time.Duration // for a list, and for the beginning of a watch
}

func defaultPatience() patience {
	return patience{silence: 10 * time.Second, pong: 5 * time.Second, answer: 10 * time.Second}
}

// dialTimeout bounds how long a connection may take to come about.
const dialTimeout = 10 * time.Second

// apply has the connections of a configuration be checked.
func (p patience) apply(config *rest.Config) {
	if config.Transport != nil {
		return // the owner's
	}
	if config.Dial == nil { // with a dialer of its own it shares no connection with other users of client-go
		config.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	config.WrapTransport = transport.Wrappers(p.set, config.WrapTransport)
}

// set finds the connections below what client-go has wrapped around them.
func (p patience) set(wrapped http.RoundTripper) http.RoundTripper {
	for inner := wrapped; ; {
		switch t := inner.(type) {
		case *http.Transport:
			t.HTTP2 = &http.HTTP2Config{SendPingTimeout: p.silence, PingTimeout: p.pong}
			return wrapped
		case utilnet.RoundTripperWrapper:
			inner = t.WrappedRoundTripper()
		default:
			return wrapped
		}
	}
}
