package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leadership-journal/journald/journal"
)

// Name is the stream that holds the journal.
const Name = "LEADERSHIP"

// closeTimeout bounds what is undone after a failed Open.
const closeTimeout = 10 * time.Second

// Options say where the journal is. Exactly one of Embedded and URL is set.
type Options struct {
	Embedded *Embedded // a server in this process
	URL      string    // servers elsewhere, comma-separated: nats://a:4222,nats://b:4222

	Credentials       string      // file with the user's JWT and key, for URL
	SystemCredentials string      // the same of the system account, to read how the servers sync; optional
	TLS               *tls.Config // for URL

	Existing bool   // the stream is there, and is only read and appended to: it is never made nor changed; for URL
	Replicas int    // copies of the stream; 0 means 1
	MaxBytes int64  // size of the journal; needed with URL, else 70 % of the server's MaxStore. It can only be raised
	Instance string // name of this process in connections and logs; empty: journald
	Logger   *slog.Logger
}

// Log is a [journal.Log] on JetStream. It is safe for concurrent use.
type Log struct {
	opts       Options
	logger     *slog.Logger
	durability Durability
	url        string // where network clients reach it, or empty

	nc     *nats.Conn // for appends and reads that decide
	js     jetstream.JetStream
	bulkJS jetstream.JetStream // for following: over TCP where there is a port, which is faster
	stream jetstream.Stream

	lifetime context.Context // of what runs for the log, not for one caller
	queue    queue
	seen     atomic.Uint64 // newest sequence known to be stored
	denial   atomic.Pointer[denial]

	undo    []func(context.Context) error // to close, in the order in which it was opened
	closing sync.Once
	closed  error
}

var _ journal.Log = (*Log)(nil)

// Open connects to the journal, having started its server if it is embedded, and makes its stream or checks the one
// that is there. With [Options.Existing] it makes none, and says so where there is none. A stream that is weaker than a
// journal needs is refused, with every difference and what to do about it. While a cluster forms it waits, until ctx ends.
func Open(ctx context.Context, opts Options) (*Log, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	lifetime, end := context.WithCancel(context.WithoutCancel(ctx))
	l := &Log{opts: opts, logger: opts.Logger, lifetime: lifetime, queue: newQueue()}
	l.undo = append(l.undo, func(context.Context) error { end(); return nil })
	if err := l.start(ctx); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("open the journal: %w", err), l.Close(ctx))
	}
	return l, nil
}

func (o Options) complete() (Options, error) {
	var errs []error
	if (o.Embedded == nil) == (o.URL == "") {
		errs = append(errs, errors.New("exactly one of an embedded server and a URL is needed"))
	}
	if o.Existing && (o.URL == "" || o.Replicas != 0 || o.MaxBytes != 0) {
		errs = append(errs, errors.New("a stream that is there already is elsewhere, and its copies and size are what they are"))
	}
	if o.URL != "" && o.MaxBytes <= 0 && !o.Existing {
		errs = append(errs, errors.New("nats.maxBytes is needed for a server elsewhere: the size that the journal may grow to"))
	}
	if o.Replicas < 0 || o.Replicas > 5 {
		errs = append(errs, fmt.Errorf("%d replicas: 1, 3 or 5 are possible", o.Replicas))
	}
	if o.Embedded != nil {
		errs = append(errs, o.Embedded.validate())
	}
	o.Replicas = max(o.Replicas, 1)
	if o.Instance == "" {
		o.Instance = "journald"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, errors.Join(errs...)
}

func (l *Log) start(ctx context.Context) error {
	connect := l.connectURL
	if l.opts.Embedded != nil {
		connect = l.connectEmbedded
	}
	if err := connect(ctx); err != nil {
		return err
	}
	l.undo = append(l.undo, l.queue.close)
	if err := l.openStream(ctx); err != nil {
		return err
	}
	l.saw(l.stream.CachedInfo().State.LastSeq)
	return nil
}

// connectURL reaches servers elsewhere.
func (l *Log) connectURL(ctx context.Context) error {
	var opts []nats.Option
	if l.opts.Credentials != "" {
		opts = append(opts, nats.UserCredentials(l.opts.Credentials))
	}
	if l.opts.TLS != nil {
		opts = append(opts, nats.Secure(l.opts.TLS))
	}
	l.url = l.opts.URL
	var err error
	if l.nc, err = l.connect(ctx, l.opts.URL, opts...); err != nil {
		return err
	}
	if have, want := l.nc.MaxPayload(), int64(maxMessage); have < want {
		return fmt.Errorf("max_payload of %s is %d bytes; events need %d", l.nc.ConnectedUrlRedacted(), have, want)
	}
	if l.js, err = jetstream.New(l.nc); err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	l.bulkJS = l.js
	if !l.opts.Existing {
		l.durability, err = l.externalDurability(ctx)
	}
	return err
}

// connect opens one connection. It reconnects for ever, and keeps nothing back to send later: what can't be sent at
// once fails at once, so that no append arrives long after it was given up.
func (l *Log) connect(ctx context.Context, url string, more ...nats.Option) (*nats.Conn, error) {
	opts := append([]nats.Option{
		nats.Name("journald " + l.opts.Instance),
		nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond), nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.ReconnectBufSize(-1), nats.PingInterval(5 * time.Second), nats.Timeout(remaining(ctx, 5*time.Second)),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				l.logger.Warn("nats connection lost", "error", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) { l.logger.Info("nats connection restored", "url", c.ConnectedUrlRedacted()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				l.denial.Store(&denial{time.Now(), err})
			}
			l.logger.Warn("nats reported an error", "error", err)
		}),
	}, more...)
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w", url, err)
	}
	l.undo = append(l.undo, func(context.Context) error { nc.Close(); return nil })
	return nc, nil
}

// remaining is the time that ctx leaves, and at most most.
func remaining(ctx context.Context, most time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(min(time.Until(deadline), most), time.Millisecond)
	}
	return most
}

// Close waits for the appends that are under way, closes the connections, and shuts an embedded server down and waits
// for that: only then is the data directory free. It is bounded by ctx; what was given up then may go on for a while.
// Closing again gives the same answer.
func (l *Log) Close(ctx context.Context) error {
	l.closing.Do(func() {
		var errs []error
		for i := len(l.undo) - 1; i >= 0; i-- {
			errs = append(errs, l.undo[i](ctx))
		}
		if err := errors.Join(errs...); err != nil {
			l.closed = fmt.Errorf("close the journal: %w", err)
		}
	})
	return l.closed
}

// JetStream reaches the server that the journal is on, for the buckets that live beside it.
func (l *Log) JetStream() jetstream.JetStream { return l.js }

// ClientURL is where network clients reach the server, or empty where it doesn't listen.
func (l *Log) ClientURL() string { return l.url }

// saw notes that a sequence is stored.
func (l *Log) saw(sequence uint64) {
	for {
		old := l.seen.Load()
		if sequence <= old || l.seen.CompareAndSwap(old, sequence) {
			return
		}
	}
}
