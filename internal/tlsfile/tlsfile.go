// Package tlsfile makes the TLS settings of a client from files.
package tlsfile

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Files are names of files with PEM blocks. Empty ones are left to the system: its roots, and no certificate of one's own.
type Files struct {
	CA          string // what the server's certificate is checked by
	Certificate string // the client's own, with Key
	Key         string
}

// Load reads the files; nil where none is named.
func (f Files) Load() (*tls.Config, error) {
	if f == (Files{}) {
		return nil, nil
	}
	if (f.Certificate == "") != (f.Key == "") {
		return nil, errors.New("a certificate and its key go together: name both files, or none")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("read the CA: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("the CA: %s has no certificate in PEM", f.CA)
		}
	}
	if f.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
		if err != nil {
			return nil, fmt.Errorf("read the certificate and its key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
