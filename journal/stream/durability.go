package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Durability says whether an acknowledged append is known to be on disk.
type Durability struct {
	Verified bool
	Detail   string // how it is known, or why it isn't
}

// Durability is what was found out when the journal was opened. How a server elsewhere syncs is told to its system
// account only.
func (l *Log) Durability() Durability { return l.durability }

// externalDurability asks every server for its sync setting. One that is known to be weaker is refused.
func (l *Log) externalDurability(ctx context.Context) (Durability, error) {
	if l.opts.SystemCredentials == "" {
		l.logger.Warn("durability is not verified", "missing", "nats.systemCredentials")
		return Durability{Detail: "not verified: the server tells its sync setting only to the system account (nats.systemCredentials)"}, nil
	}
	opts := []nats.Option{nats.UserCredentials(l.opts.SystemCredentials)}
	if l.opts.TLS != nil {
		opts = append(opts, nats.Secure(l.opts.TLS))
	}
	nc, err := l.connect(ctx, l.opts.URL, opts...)
	if err != nil {
		return Durability{}, fmt.Errorf("ask how the servers sync: %w", err)
	}
	servers, err := askSync(ctx, nc)
	if err != nil {
		return Durability{}, fmt.Errorf("ask how the servers sync: %w", err)
	}
	return judgeSync(servers)
}

// serverSync is one server's answer.
type serverSync struct {
	Server struct {
		Name string `json:"name"`
	} `json:"server"`
	Data struct {
		Disabled bool `json:"disabled"`
		Config   struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	} `json:"data"`
}

// quiet is how long no further server may answer before all are taken to have.
const quiet = 500 * time.Millisecond

func askSync(ctx context.Context, nc *nats.Conn) ([]serverSync, error) {
	inbox := nc.NewRespInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	if err := nc.PublishRequest("$SYS.REQ.SERVER.PING.JSZ", inbox, nil); err != nil {
		return nil, errors.Join(err, sub.Unsubscribe())
	}
	var servers []serverSync
	for {
		once, cancel := context.WithTimeout(ctx, quiet)
		m, err := sub.NextMsgWithContext(once)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return servers, sub.Unsubscribe()
		}
		var s serverSync
		if err == nil {
			err = json.Unmarshal(m.Data, &s)
		}
		if err != nil {
			return nil, errors.Join(err, sub.Unsubscribe())
		}
		servers = append(servers, s)
	}
}

func judgeSync(servers []serverSync) (Durability, error) {
	n := 0
	for _, s := range servers {
		if s.Data.Disabled {
			continue
		}
		if !s.Data.Config.SyncAlways {
			return Durability{}, fmt.Errorf("server %s acknowledges what is not on disk yet: set jetstream.sync_interval to always", s.Server.Name)
		}
		n++
	}
	if n == 0 {
		return Durability{Detail: "not verified: no server with JetStream answered the system account"}, nil
	}
	return Durability{Verified: true, Detail: fmt.Sprintf("all %d servers sync every write", n)}, nil
}
