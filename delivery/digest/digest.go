// Package digest seals digests before a status shows them. Otherwise a person who may read a status, but not the Secrets that an app is
// made from, could guess a value and compare its digest. A sealed digest is an HMAC of the plain one, so a plain digest that an earlier
// version of kubeop reported can be sealed without knowing its content.
package digest

import "strings"

// Seal turns a digest into the hexadecimal HMAC-SHA256 under a key that only the operator has. A nil Seal leaves digests unchanged.
type Seal func(digest string) string

// mark is the prefix of a result of Of, and shortMark that of Short. No plain digest begins with either.
const (
	mark      = "hmac-sha256:"
	shortMark = "h"
	shortSize = 16
)

// Of returns "hmac-sha256:<hex>" for a digest; "" for "". A sealed digest is returned unchanged.
func (s Seal) Of(digest string) string {
	if s == nil || digest == "" || strings.HasPrefix(digest, mark) {
		return digest
	}
	return mark + s(digest)
}

// Short returns 16 characters, the first of which is h, for lists of thousands of digests; "" for "". A sealed digest is returned
// unchanged.
func (s Seal) Short(digest string) string {
	if s == nil || digest == "" || strings.HasPrefix(digest, shortMark) {
		return digest
	}
	return shortMark + s(digest)[:shortSize-1]
}
