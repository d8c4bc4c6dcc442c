// Package token makes tokens and one-time codes, and the hashes that are stored of them.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
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

// Hash returns what is stored of a token or a code.
func Hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
