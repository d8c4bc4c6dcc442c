// Package digest seals digests before a status shows them. Without that, people who may read a status, but not the Secrets that an app is
// made from, could try guesses of a value until one has the shown digest. A sealed digest is an HMAC of the plain one, so a plain digest
// that an earlier version of kubeop reported can be sealed without knowing its content.
package digest

import "strings"

// Seal makes of a digest the hexadecimal HMAC-SHA256 under a key that only the operator has. Nil leaves digests as they are.
type Seal func(digest string) string

// mark begins what Of returns, and shortMark what Short does, which no plain digest begins with.
const (
	mark      = "hmac-sha256:"
	shortMark = "h"
	shortSize = 16
)

// Of returns "hmac-sha256:<hex>" of a digest; "" for none. A sealed digest is returned unchanged.
func (s Seal) Of(digest string) string {
	if s == nil || digest == "" || strings.HasPrefix(digest, mark) {
		return digest
	}
	return mark + s(digest)
}

// Short returns 16 characters, the first of which is h, for lists of thousands; "" for no digest. A sealed digest is returned unchanged.
func (s Seal) Short(digest string) string {
	if s == nil || digest == "" || strings.HasPrefix(digest, shortMark) {
		return digest
	}
	return shortMark + s(digest)[:shortSize-1]
}
