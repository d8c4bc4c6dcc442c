// Package credentials reads what the command line sends to a manager, and which certificates it accepts.
package credentials

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxToken bounds what is read of a file with a token.
const maxToken = 4096

// Token returns the token of the environment, or else the one in a file, which others may not be able to read.
func Token(given, path string) (string, error) {
	switch {
	case given != "":
		return strings.TrimSpace(given), nil
	case path == "":
		return "", errors.New("the management API needs a token: set KUBEOP_TOKEN, or KUBEOP_TOKEN_FILE to a file that only you may read")
	}
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return "", fmt.Errorf("reading KUBEOP_TOKEN_FILE: %w", err)
	}
	// Nothing was written, so closing cannot lose anything.
	defer func() { _ = file.Close() }()
	about, err := file.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("reading KUBEOP_TOKEN_FILE: %w", err)
	case !about.Mode().IsRegular() || about.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("others may read %s, which KUBEOP_TOKEN_FILE names: chmod 600 it, and revoke the token if others have had it", path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxToken))
	if err != nil {
		return "", fmt.Errorf("reading KUBEOP_TOKEN_FILE: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("%s, which KUBEOP_TOKEN_FILE names, has no token", path)
	}
	return token, nil
}

// Roots returns the authorities of the system and those in a file; nil for those of the system alone.
func Roots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, fmt.Errorf("reading --server-ca: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of the system: %w", err)
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s, which --server-ca names, has no certificate in PEM", file)
	}
	return roots, nil
}
