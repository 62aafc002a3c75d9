package client_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/client"
)

func TestOptionsAreChecked(t *testing.T) {
	rubbish := filepath.Join(t.TempDir(), "rubbish.pem")
	require.NoError(t, os.WriteFile(rubbish, []byte("rubbish"), 0o600))
	for want, change := range map[string]func(o *client.Options){
		"the server is missing":             func(o *client.Options) { o.Server = "" },
		`the server "localhost:8086"`:       func(o *client.Options) { o.Server = "localhost:8086" },
		`"…@x:y"`:                           func(o *client.Options) { o.Server = "http://ada:secret@x:y" },
		"begins with http://":               func(o *client.Options) { o.Server = "ftp://a" },
		"leave out what is beside":          func(o *client.Options) { o.Server = "http://a?x=1" },
		"ada:xxxxx@a is more than a place":  func(o *client.Options) { o.Server = "http://ada:secret@a" },
		"are of two kinds":                  func(o *client.Options) { o.Server = "http://a,nats://b" },
		`the server ""`:                     func(o *client.Options) { o.Server = "http://a," },
		"the group is missing":              func(o *client.Options) { o.Group = "" },
		"the group \"a b\" has a character": func(o *client.Options) { o.Group = "a b" },
		"a logger is missing":               func(o *client.Options) { o.Logger = nil },
		"a credentials file is for NATS":    func(o *client.Options) { o.Credentials = "x" },
		"http:// is not encrypted":          func(o *client.Options) { o.CA = rubbish },
		"has no certificate in PEM":         func(o *client.Options) { o.Server, o.CA = "https://a", rubbish },
		"read the CA: open /none":           func(o *client.Options) { o.Server, o.CA = "tls://a", "/none" },
		"a certificate and its key":         func(o *client.Options) { o.Server, o.Key = "https://a", rubbish },
		"read the certificate and its key":  func(o *client.Options) { o.Server, o.Certificate, o.Key = "https://a", rubbish, rubbish },
	} {
		o := client.Options{Server: "http://a", Group: "flink", Logger: slog.New(slog.DiscardHandler)}
		change(&o)
		_, err := client.Open(t.Context(), o)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := client.Open(t.Context(), client.Options{})
	for _, want := range []string{"server", "group", "logger"} {
		require.ErrorContains(t, err, want+" is missing", "all of it is said at once")
	}
}

// Over HTTP a client may be there before the journal is; over NATS it waits for a server, and the journal must be there.
func TestOpenBeforeTheJournalIsThere(t *testing.T) {
	w := &world{t: t, dir: t.TempDir(), http: address(t), nats: address(t)}
	c := kinds()[0].open(t, w.http)
	_, err := c.Append(bounded(t, 100*time.Millisecond), join("jm-1"))
	require.Error(t, err)
	require.False(t, client.Final(err))

	overNATS := client.Options{Server: "nats://" + w.nats, Group: group, Logger: slog.New(slog.DiscardHandler)}
	_, err = client.Open(bounded(t, 100*time.Millisecond), overNATS)
	require.ErrorContains(t, err, w.nats)
	opening := bounded(t, patient)
	opened, failed := make(chan client.Client, 1), make(chan error, 1)
	go func() {
		c, err := client.Open(opening, overNATS)
		opened <- c
		failed <- err
	}()
	w.start()
	t.Cleanup(func() { w.stop() })
	late := <-opened
	require.NoError(t, <-failed)
	require.NoError(t, late.Close())
	appendUntil(t, c, join("jm-1"))
}
