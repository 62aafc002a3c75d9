package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/leadership-journal/journald/adapters/zk"
	"github.com/leadership-journal/journald/config"
)

// zookeeperOptions reads the credentials, if some are named.
func zookeeperOptions(z *config.ZooKeeper, logger *slog.Logger) (zk.Options, error) {
	o := zk.Options{Servers: z.Servers, SessionTimeout: time.Duration(z.SessionTimeout), Logger: logger}
	if z.ACL != config.DigestACL {
		return o, nil
	}
	text, err := os.ReadFile(z.Credentials)
	if err != nil {
		return o, fmt.Errorf("zookeeper.credentials: %w", err)
	}
	o.Digest = strings.TrimSpace(string(text))
	if user, password, _ := strings.Cut(o.Digest, ":"); user == "" || password == "" || strings.Contains(o.Digest, "\n") {
		return o, errors.New("zookeeper.credentials: " + z.Credentials + " is not one line of user:password")
	}
	return o, nil
}
