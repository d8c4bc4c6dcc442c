// Package token makes tokens and one-time codes, and the hashes that are stored of them.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
)

// Prefix is how every token begins, so that scanners for secrets find one that was published.
const Prefix = "kubeop_"

// 256 random bits need no slow hash: nobody tries them all.
const randomBytes = 32

var pattern = regexp.MustCompile(`^` + Prefix + `[A-Za-z0-9_-]{43}$`)

// New returns a new token.
func New() string { return Prefix + random() }

// NewCode returns a new one-time code. It is no token: no operation but the setup takes it.
func NewCode() string { return "setup_" + random() }

func random() string {
	data := make([]byte, randomBytes)
	rand.Read(data) // It never fails, see its documentation.
	return base64.RawURLEncoding.EncodeToString(data)
}

// IsToken reports whether a text has the form of a token.
func IsToken(text string) bool { return pattern.MatchString(text) }

// maxJWT is the size from which on a text is no JWT, in bytes. The headers of a request may have 16 KiB.
const maxJWT = 12 << 10

// Only the compact form: what else the libraries read has no use here.
var jwtPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+$`)

// Issuer returns who a JWT says that it is from. It is not verified: it says by whose keys to do that.
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
	// Not into a struct, whose fields are found in any case.
	var claims map[string]any
	if json.Unmarshal(payload, &claims) != nil {
		return "", false
	}
	issuer, is = claims["iss"].(string)
	return issuer, is && issuer != ""
}

// Hash returns what is stored of a token or a code.
func Hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
