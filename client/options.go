package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/leadership-journal/journald/internal/tlsfile"
	"github.com/leadership-journal/journald/journal"
)

// Options say where the journal is, and for which group a client is.
type Options struct {
	// Server is where journald is asked, http://host:8086 or https://host:8086, or where the NATS servers are that the
	// journal is on, nats://host:4222 or tls://host:4222. Several of one kind, comma-separated, are tried in turn; all of
	// them must have the same journal.
	Server string
	Group  string

	Credentials      string // file with a NATS user's JWT and key, as nats tools make it; NATS only
	CA               string // file with the certificates that a server's is checked by; empty: the system's
	Certificate, Key string // files with a certificate of one's own, for servers that ask for one

	Instance string // name of this process in connections and logs; empty: client
	Logger   *slog.Logger
}

// Open makes the client that the URL of [Options.Server] asks for. Over HTTP nothing is sent before it is used, so that
// it may be opened while no journald runs. Over NATS it waits for a server until ctx ends, and the journal has to be there:
// a client never makes one, nor changes it.
func Open(ctx context.Context, opts Options) (Client, error) {
	where, err := opts.complete()
	if err != nil {
		return nil, fmt.Errorf("open a client of the journal: %w", err)
	}
	if where.nats {
		return openNATS(ctx, opts, where)
	}
	return newHTTP(ctx, opts, where), nil
}

// place is where the journal is, as read from options.
type place struct {
	servers []*url.URL
	nats    bool
	tls     *tls.Config
}

// complete fills in what may be left out, and says everything that is wrong.
func (o *Options) complete() (place, error) {
	if o.Instance == "" {
		o.Instance = "client"
	}
	where, err := readServers(o.Server)
	errs := []error{err, o.checkGroup()}
	if o.Logger == nil {
		errs = append(errs, errors.New("a logger is missing; slog.Default() will do"))
	}
	files := tlsfile.Files{CA: o.CA, Certificate: o.Certificate, Key: o.Key}
	if err == nil {
		errs = append(errs, o.suits(where, files))
	}
	where.tls, err = files.Load()
	return where, errors.Join(append(errs, err)...)
}

func (o *Options) checkGroup() error {
	if o.Group == "" {
		return errors.New("the group is missing; it is the one that the candidates are of")
	}
	event := journal.Event{
		ID: "x", Source: "x", Group: o.Group, Time: time.Unix(0, 0), Data: &journal.Leave{Candidate: "x", Incarnation: "x", Reason: "x"},
	}
	field, ok := errors.AsType[*journal.FieldError](event.Validate())
	if !ok {
		return nil
	}
	return fmt.Errorf("%w: %s", journal.ErrInvalid, field.Problem)
}

// suits says whether the other options go with the kind of server.
func (o *Options) suits(where place, files tlsfile.Files) error {
	scheme := where.servers[0].Scheme
	switch {
	case o.Credentials != "" && !where.nats:
		return errors.New("a credentials file is for NATS; a journald that is asked over HTTP takes a certificate")
	case files != (tlsfile.Files{}) && scheme == "http":
		return errors.New("http:// is not encrypted, and a CA or certificate is for TLS: say https://, or leave them out")
	}
	return nil
}

// readServers reads a comma-separated list of URLs of one kind.
func readServers(list string) (where place, err error) {
	if list == "" {
		return place{}, errors.New("the server is missing; name a journald, such as http://127.0.0.1:8086, " +
			"or its NATS, such as nats://127.0.0.1:4222")
	}
	for text := range strings.SplitSeq(list, ",") {
		u, overNATS, err := readServer(strings.TrimSpace(text))
		if err != nil {
			return place{}, err
		}
		if len(where.servers) > 0 && u.Scheme != where.servers[0].Scheme {
			return place{}, fmt.Errorf("the servers %s and %s are of two kinds: name those of one", where.servers[0].Redacted(), u.Redacted())
		}
		where.servers, where.nats = append(where.servers, u), overNATS
	}
	return where, nil
}

func readServer(text string) (u *url.URL, overNATS bool, err error) {
	u, err = url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, false, fmt.Errorf("the server %q is no URL such as http://127.0.0.1:8086 or nats://127.0.0.1:4222", hidden(text))
	}
	switch u.Scheme {
	case "nats", "tls":
		return u, true, nil
	case "http", "https":
		if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, false, fmt.Errorf("the server %s is more than a place: leave out what is beside host, port and path", u.Redacted())
		}
		u.Path = strings.TrimRight(u.Path, "/")
		return u, false, nil
	}
	return nil, false, fmt.Errorf("the server %s is none that a client knows: one begins with http://, https://, nats:// or tls://",
		u.Redacted())
}

// hidden is a text without what may be a password in it.
func hidden(text string) string {
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		return "…" + text[at:]
	}
	return text
}
