// Package sources has what tests of fetching share: the servers that sources are fetched from, and what is wanted of errors.
package sources

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// WantError wants an error of a kind, which is nil for none, with a text in its message.
func WantError(t testing.TB, err, kind error, says string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(fmt.Sprint(err), says) {
		t.Errorf("got %v (%T), want %v that says %q", err, err, kind, says)
	}
}

// WantNoSecret looks for the secret in every form it is sent or shown in.
func WantNoSecret(t testing.TB, err error, secret string) {
	t.Helper()
	shown := fmt.Sprintf("%v %+v %#v", err, err, err)
	for _, form := range []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), url.UserPassword("", secret).String(),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte("bot:" + secret)),
	} {
		if strings.Contains(shown, form) {
			t.Errorf("the secret is in the error: %s", shown)
		}
	}
}

// OnlyFile is the path of the one file that matches a pattern of filepath.Glob, in parts.
func OnlyFile(t testing.TB, parts ...string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(parts...))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v: %v, %v", parts, found, err)
	}
	return found[0]
}
