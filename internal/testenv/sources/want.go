// Package sources has helpers of tests of fetching: servers for all kinds of sources, and checks of errors.
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

// WantError fails unless err is of the kind, or nil for a nil kind, and its message contains the text.
func WantError(t testing.TB, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(fmt.Sprint(err), text) {
		t.Errorf("got %v (%T), want %v with %q", err, err, kind, text)
	}
}

// WantNoSecret fails if the error contains the secret, in any encoding in which it is sent or shown.
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

// OnlyFile returns the path of the only file that matches the pattern of filepath.Glob, which is joined from parts.
func OnlyFile(t testing.TB, parts ...string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(parts...))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v: %v, %v", parts, found, err)
	}
	return found[0]
}
