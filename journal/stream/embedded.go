package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// Embedded is a NATS server inside this process.
type Embedded struct {
	Dir        string   // its data, owned by this process alone while it runs
	Listen     string   // host:port for network clients; empty: none. Port 0 takes a free one
	MaxStore   int64    // bytes that all its streams may use; 0: as before, at first half of the free disk. It can only be raised
	ServerName string   // the same at every start, and unique in a cluster; empty: the instance's name
	Cluster    *Cluster // nil: a server of its own
}

// Cluster joins embedded servers of several processes to one.
type Cluster struct {
	Name   string
	Listen string   // host:port for the other servers
	Routes []string // the other servers: nats://host:port
}

// maxMemory is what buckets in memory may use: the lease and heartbeats, some 200 bytes each.
const maxMemory = 1 << 30

func (e *Embedded) validate() error {
	var errs []error
	if e.Dir == "" {
		errs = append(errs, errors.New("the embedded server needs a data directory"))
	}
	if e.MaxStore < 0 {
		errs = append(errs, fmt.Errorf("MaxStore of %d bytes", e.MaxStore))
	}
	if _, _, err := hostPort(e.Listen); e.Listen != "" && err != nil {
		errs = append(errs, fmt.Errorf("nats.listen: %w", err))
	}
	if c := e.Cluster; c != nil {
		if _, _, err := hostPort(c.Listen); err != nil {
			errs = append(errs, fmt.Errorf("nats.cluster.listen: %w", err))
		}
		if c.Name == "" {
			errs = append(errs, errors.New("nats.cluster.name is missing"))
		}
		if _, err := c.routes(); err != nil {
			errs = append(errs, fmt.Errorf("nats.cluster.routes: %w", err))
		}
	}
	return errors.Join(errs...)
}

func (c *Cluster) routes() ([]*url.URL, error) {
	routes := make([]*url.URL, 0, len(c.Routes))
	for _, r := range c.Routes {
		u, err := url.Parse(r)
		if err != nil {
			return nil, err
		}
		routes = append(routes, u)
	}
	return routes, nil
}

// hostPort splits an address; port 0 becomes the server's word for any free port.
func hostPort(address string) (string, int, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("port %q is not a number below 65536", text)
	}
	if port == 0 {
		return host, server.RANDOM_PORT, nil
	}
	return host, int(port), nil
}

// connectEmbedded starts the server and connects to it: in process, which is quickest for appends, and over TCP for
// bulk reading where there is a port, which is some 40 % faster there.
func (l *Log) connectEmbedded(ctx context.Context) error {
	e := l.opts.Embedded
	if err := os.MkdirAll(e.Dir, 0o750); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	unlock, err := lockDir(e.Dir)
	if err != nil {
		return err
	}
	l.undo = append(l.undo, func(context.Context) error { return unlock() })
	maxStore, err := settleMaxStore(e.Dir, e.MaxStore)
	if err != nil {
		return err
	}
	if l.opts.MaxBytes > maxStore {
		return fmt.Errorf("a journal of %d bytes does not fit into MaxStore, %d bytes: raise that too", l.opts.MaxBytes, maxStore)
	}
	if l.opts.MaxBytes == 0 {
		l.opts.MaxBytes = maxStore / 10 * 7
	}
	keys, err := newUsers()
	if err != nil {
		return err
	}
	srv, err := l.startServer(ctx, e.options(l.opts.Instance, maxStore, keys))
	if err != nil {
		return err
	}
	l.durability = Durability{Verified: true, Detail: "the embedded server syncs every write"}
	return l.connectTo(ctx, srv, nats.Nkey(keys.owner, keys.sign))
}

func (l *Log) connectTo(ctx context.Context, srv *server.Server, user nats.Option) error {
	var err error
	if l.nc, err = l.connect(ctx, nats.DefaultURL, nats.InProcessServer(srv), user); err != nil {
		return err
	}
	if l.js, err = jetstream.New(l.nc); err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	l.bulkJS = l.js
	if srv.Addr() == nil {
		return nil
	}
	if l.opts.Embedded.Listen != "" {
		l.url = srv.ClientURL()
	}
	loopback, err := loopbackURL(srv.ClientURL())
	if err != nil {
		return err
	}
	bulk, err := l.connect(ctx, loopback, user)
	if err != nil {
		return err
	}
	if l.bulkJS, err = jetstream.New(bulk); err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	return nil
}

// loopbackURL is the same port on an address that this host can always reach itself by.
func loopbackURL(client string) (string, error) {
	u, err := url.Parse(client)
	if err != nil {
		return "", fmt.Errorf("read the server's own URL: %w", err)
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("127.0.0.1", u.Port())
	}
	return u.String(), nil
}

// users are those that the embedded server knows, by the public keys that it knows them by.
type users struct {
	owner  string // this process, which alone can sign for it
	sign   func(nonce []byte) ([]byte, error)
	anyone string // whoever connects over the network without a name
}

func newUsers() (users, error) {
	owner, err := nkeys.CreateUser()
	if err != nil {
		return users{}, fmt.Errorf("make a key for this process: %w", err)
	}
	anyone, err := nkeys.CreateUser()
	if err != nil {
		return users{}, fmt.Errorf("make a key for network clients: %w", err)
	}
	u := users{sign: owner.Sign}
	u.owner, err = owner.PublicKey()
	if err == nil {
		u.anyone, err = anyone.PublicKey()
	}
	if err != nil {
		return users{}, fmt.Errorf("make keys of users: %w", err)
	}
	return u, nil
}

func (e *Embedded) options(instance string, maxStore int64, keys users) *server.Options {
	opts := &server.Options{
		ServerName: e.ServerName, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: e.Dir, JetStreamMaxStore: maxStore, JetStreamMaxMemory: maxMemory,
		SyncAlways: true, SyncInterval: 2 * time.Minute,
		Nkeys: []*server.NkeyUser{{Nkey: keys.owner}, {Nkey: keys.anyone, Permissions: networkPermissions()}},
	}
	if opts.ServerName == "" {
		opts.ServerName = instance
	}
	switch {
	case e.Listen != "":
		opts.NoAuthUser = keys.anyone
		opts.Host, opts.Port, _ = hostPort(e.Listen) // validated
	case e.Cluster != nil: // a server that doesn't listen for clients never starts to listen for other servers
		opts.Host, opts.Port = "127.0.0.1", server.RANDOM_PORT
	default:
		opts.DontListen = true
	}
	if c := e.Cluster; c != nil {
		opts.Cluster.Name = c.Name
		opts.Cluster.Host, opts.Cluster.Port, _ = hostPort(c.Listen) // validated
		opts.Routes, _ = c.routes()                                  // validated
	}
	return opts
}

// networkPermissions keeps network clients from what no flag of the stream forbids: to delete or change the journal, or
// to take the buckets away that journald keeps beside it. Another journald may be such a client, and writes these.
func networkPermissions() *server.Permissions {
	var deny []string
	for _, verb := range []string{"DELETE", "PURGE", "UPDATE", "RESTORE", "MSG.DELETE"} {
		deny = append(deny, "$JS.API.STREAM."+verb+"."+Name)
	}
	for _, bucket := range []string{"KV_leaders", "KV_alive", "KV_" + LeaseBucket} {
		deny = append(deny, "$JS.API.STREAM.DELETE."+bucket, "$JS.API.STREAM.PURGE."+bucket)
	}
	return &server.Permissions{Publish: &server.SubjectPermission{Deny: deny}}
}

// startServer returns when the server takes connections.
func (l *Log) startServer(ctx context.Context, opts *server.Options) (*server.Server, error) {
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("configure the embedded server: %w", err)
	}
	fatal := make(chan string, 1)
	srv.SetLogger(&serverLogger{l.logger, fatal}, false, false)
	stopped := make(chan struct{})
	l.undo = append(l.undo, func(ctx context.Context) error {
		go func() {
			srv.Shutdown()
			srv.WaitForShutdown()
			close(stopped)
		}()
		select {
		case <-stopped:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("wait for the embedded server to shut down: %w", ctx.Err())
		}
	})
	srv.Start()
	return srv, awaitServer(ctx, srv, fatal)
}

func awaitServer(ctx context.Context, srv *server.Server, fatal <-chan string) error {
	for {
		select {
		case text := <-fatal:
			return fmt.Errorf("start the embedded server: %s", text)
		case <-ctx.Done():
			return fmt.Errorf("start the embedded server: %w", ctx.Err())
		default:
		}
		if srv.ReadyForConnections(100*time.Millisecond) && srv.JetStreamEnabled() {
			return nil
		}
	}
}

// serverLogger passes on what the server says. Its notices are chatter.
type serverLogger struct {
	to    *slog.Logger
	fatal chan<- string
}

const serverSays = "nats server"

func (s *serverLogger) Noticef(format string, v ...any) {
	s.to.Debug(serverSays, "text", fmt.Sprintf(format, v...))
}
func (s *serverLogger) Warnf(format string, v ...any) {
	s.to.Warn(serverSays, "text", fmt.Sprintf(format, v...))
}
func (s *serverLogger) Errorf(format string, v ...any) {
	s.to.Error(serverSays, "text", fmt.Sprintf(format, v...))
}
func (s *serverLogger) Debugf(format string, v ...any) {
	s.to.Debug(serverSays, "text", fmt.Sprintf(format, v...))
}
func (s *serverLogger) Tracef(format string, v ...any) {
	s.to.Debug(serverSays, "text", fmt.Sprintf(format, v...))
}

func (s *serverLogger) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	s.to.Error(serverSays, "text", text)
	select {
	case s.fatal <- text:
	default: // the first one is the cause
	}
}
