package token

import (
	"bytes"
	"strings"
	"testing"
)

func TestTokensAreRandomAndRecognized(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		token, code := New(), NewCode()
		if !IsToken(token) || IsToken(code) || seen[token] || seen[code] {
			t.Fatalf("token %q, code %q", token, code)
		}
		seen[token], seen[code] = true, true
	}
	token := New()
	for _, other := range []string{"", Prefix, token[:len(token)-1], token + "x", strings.ToUpper(token), " " + token, token + "\n", strings.Replace(token, "kubeop_", "github_", 1)} {
		if IsToken(other) {
			t.Errorf("%q is taken for a token", other)
		}
	}
	if bytes.Equal(Hash(token), Hash(New())) || strings.Contains(string(Hash(token)), token) {
		t.Error("the hash tells the token")
	}
}
