package token

import (
	"bytes"
	"encoding/base64"
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
		t.Error("the hash reveals the token")
	}
}

func TestTheIssuerIsReadFromTheClaimOfAJWT(t *testing.T) {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	jwt := func(payload string) string { return part(`{"alg":"RS256"}`) + "." + part(payload) + ".c2ln" }
	inner := jwt(`{"iss":"https://a"}`)
	for name, c := range map[string]struct{ text, want string }{
		"one":                   {inner, "https://a"},
		"another case":          {jwt(`{"ISS":"https://a"}`), ""},
		"none":                  {jwt(`{}`), ""},
		"an empty one":          {jwt(`{"iss":""}`), ""},
		"no string":             {jwt(`{"iss":["https://a"]}`), ""},
		"no JSON":               {jwt(`{"iss":"https://a"`), ""},
		"a JWT in it":           {jwt(inner), ""},
		"no signature":          {part(`{"alg":"none"}`) + "." + part(`{"iss":"https://a"}`) + ".", ""},
		"two parts":             {part(`{"alg":"none"}`) + "." + part(`{"iss":"https://a"}`), ""},
		"encrypted":             {inner + ".a.b", ""},
		"the form of JSON":      {`{"payload":"` + part(`{"iss":"https://a"}`) + `"}`, ""},
		"another alphabet":      {strings.Replace(inner, ".c2ln", ".c2+/", 1), ""},
		"something after it":    {inner + "\n", ""},
		"a token":               {New(), ""},
		"as large as it may be": {jwt(`{"iss":"https://a","x":"` + strings.Repeat("x", 8<<10) + `"}`), "https://a"},
		"too large":             {jwt(`{"iss":"https://a","x":"` + strings.Repeat("x", 12<<10) + `"}`), ""},
	} {
		if got, is := Issuer(c.text); got != c.want || is != (c.want != "") {
			t.Errorf("%s: %q, %t", name, got, is)
		}
	}
}
