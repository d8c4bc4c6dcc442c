// Package token makes tokens and one-time codes, and the hashes that the store keeps.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
)

// Prefix begins every token, so that scanners for secrets recognize a published one.
const Prefix = "kubeop_"

// 256 random bits need no slow hash: nobody can try them all.
const randomBytes = 32

var pattern = regexp.MustCompile(`^` + Prefix + `[A-Za-z0-9_-]{43}$`)

// New returns a new token.
func New() string { return Prefix + random() }

// NewCode returns a new one-time code. It is no token: only the setup accepts it.
func NewCode() string { return "setup_" + random() }

func random() string {
	data := make([]byte, randomBytes)
	rand.Read(data) // It never fails, see its documentation.
	return base64.RawURLEncoding.EncodeToString(data)
}

// IsToken reports whether a text has the form of a token.
func IsToken(text string) bool { return pattern.MatchString(text) }

// maxJWT limits the size of a JWT, in bytes: a text of this size is none. The headers of a request may have 16 KiB.
const maxJWT = 12 << 10

// Only the compact form is accepted; libraries also read others.
var jwtPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+$`)

// Issuer returns the issuer that a JWT names. It is not verified: it says which keys can verify the JWT.
func Issuer(text string) (issuer string, is bool) {
	if len(text) > maxJWT {
		return "", false
	}
	parts := jwtPattern.FindStringSubmatch(text)
	if parts == nil {
		return "", false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", false
	}
	// The claims are not decoded into a struct, because its fields would match in any case.
	var claims map[string]any
	if json.Unmarshal(payload, &claims) != nil {
		return "", false
	}
	issuer, is = claims["iss"].(string)
	return issuer, is && issuer != ""
}

// Hash returns what the store keeps of a token or a code.
func Hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
