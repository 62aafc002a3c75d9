package health

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/leadership-journal/journald/internal/reason"
)

// HTTP asks a web server. Each time it connects anew, so that a server which takes no connections any more is found out;
// it follows no redirect, which is an answer like any other, and goes through no proxy.
type HTTP struct {
	URL      string // http:// or https://
	Method   string // GET or HEAD; empty: GET
	Status   int    // that is expected, 100 to 599; 0: any of 200 to 299
	Contains string // what the first 64 KiB of the body have to contain; empty: anything will do
	CA       string // file with PEM blocks, for https; empty: the system's. It is read once
}

const mostOfBody = 64 << 10

// Probe is the check of this server. It refuses what can't be asked.
func (h HTTP) Probe() (Probe, error) {
	transport, err := h.transport()
	if err := errors.Join(err, h.validate()); err != nil {
		return nil, err
	}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context) error { return h.ask(ctx, client) }, nil
}

func (h HTTP) validate() error {
	at, err := url.Parse(h.URL)
	isURL := err == nil && at.Host != "" && (at.Scheme == "http" || at.Scheme == "https")
	return errors.Join(
		must(isURL, "%q is no URL such as http://127.0.0.1:8080/health", h.URL),
		must(h.CA == "" || !isURL || at.Scheme == "https", "a CA is for https:// only"),
		must(h.Method == "" || h.Method == http.MethodGet || h.Method == http.MethodHead, "method %q is neither GET nor HEAD", h.Method),
		must(h.Status == 0 || 100 <= h.Status && h.Status < 600, "status %d is not between 100 and 599", h.Status),
		must(h.Contains == "" || h.Method != http.MethodHead, "an answer to HEAD has no body that could contain anything"),
	)
}

func (h HTTP) transport() (*http.Transport, error) {
	t := &http.Transport{DisableKeepAlives: true, DialContext: new(net.Dialer).DialContext}
	if h.CA == "" {
		return t, nil
	}
	text, err := os.ReadFile(h.CA)
	if err != nil {
		return nil, fmt.Errorf("read the CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in a PEM block", h.CA)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return t, nil
}

func (h HTTP) ask(ctx context.Context, client *http.Client) error {
	method := h.Method
	if method == "" {
		method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(ctx, method, h.URL, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostOfBody))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", h.URL, err)
	}
	if !h.expected(answer.StatusCode) {
		return fmt.Errorf("%s answers %s: %s", h.URL, answer.Status, firstLine(string(body)))
	}
	return must(strings.Contains(string(body), h.Contains), "the answer of %s does not contain %q", h.URL, h.Contains)
}

func (h HTTP) expected(status int) bool {
	if h.Status == 0 {
		return 200 <= status && status < 300
	}
	return status == h.Status
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return reason.Shorten(strings.ToValidUTF8(line, "?"), 200)
}
