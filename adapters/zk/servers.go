package zk

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	gozk "github.com/go-zookeeper/zk"
)

const defaultPort = "2181"

// ValidateServers says what is wrong with a list of servers, as [Options] have it; nil: nothing.
func ValidateServers(servers []string) error {
	_, _, err := parseServers(servers)
	return err
}

// parseServers gives every server its port, and finds the chroot.
func parseServers(all []string) (servers []string, root string, err error) {
	if len(all) == 0 {
		return nil, "", errors.New("no ZooKeeper server is named; one is host:port, such as 127.0.0.1:2181")
	}
	for i, text := range all {
		server, path, has := strings.Cut(text, "/")
		if has && i < len(all)-1 {
			return nil, "", fmt.Errorf("server %q: a chroot belongs behind the last server", text)
		}
		if has && path != "" {
			root = "/" + path
			if err := validatePath(root); err != nil {
				return nil, "", fmt.Errorf("server %q: chroot %w", text, err)
			}
		}
		if server, err = withPort(server); err != nil {
			return nil, "", fmt.Errorf("server %q: %w", text, err)
		}
		servers = append(servers, server)
	}
	return servers, root, nil
}

func withPort(server string) (string, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		host, port, err = net.SplitHostPort(server + ":" + defaultPort)
	}
	if err != nil || host == "" || strings.ContainsAny(host, ", \t") {
		return "", errors.New("it is not host:port, such as 127.0.0.1:2181")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %q is none from 1 to 65535", port)
	}
	return net.JoinHostPort(host, port), nil
}

// makeACL is what nodes are made with: everybody may read them, whatever else holds, or readers fail.
func makeACL(digest string) ([]gozk.ACL, error) {
	if digest == "" {
		return gozk.WorldACL(gozk.PermAll), nil
	}
	user, password, ok := strings.Cut(digest, ":")
	if !ok || user == "" || password == "" {
		return nil, errors.New("the digest is not user:password")
	}
	return append(gozk.DigestACL(gozk.PermAll, user, password), gozk.WorldACL(gozk.PermRead)...), nil
}
