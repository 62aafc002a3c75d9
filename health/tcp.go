package health

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// TCP connects to a port, and hangs up.
type TCP struct {
	Address string // host:port
}

// Probe is the check of this port.
func (t TCP) Probe() (Probe, error) {
	host, port, err := net.SplitHostPort(t.Address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || host == "" || port == "0" {
		return nil, fmt.Errorf("%q is not host:port, such as 127.0.0.1:8080", t.Address)
	}
	return func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", t.Address)
		if err != nil {
			return err
		}
		return conn.Close()
	}, nil
}
