package store

import (
	"context"
	"time"
)

// Sealed is a secret, encrypted for its place: internal/kms writes and reads it.
type Sealed struct {
	// Kind and ID are the place. The kind says what the secret is of.
	Kind, ID string
	// Key is the ID of the key-encryption key.
	Key  string
	Data []byte
}

// KindSigningKey is the kind of the private keys that sign JWTs.
const KindSigningKey = "signing-key"

// SigningKey is a key that signs JWTs.
type SigningKey struct {
	// Private is the private key. Its ID is the ID of the key.
	Private Sealed
	Created time.Time
	// From and Until are when it signs.
	From, Until time.Time
}

// Keys keeps encrypted secrets and the keys among them.
type Keys interface {
	Secrets
	SigningKeys
}

// Secrets are all encrypted secrets, of each kind.
type Secrets interface {
	// ListSealed returns up to limit secrets whose places come after one, in the order of kinds and IDs.
	ListSealed(ctx context.Context, after Sealed, limit int) ([]Sealed, error)
	// ReplaceSealed replaces a secret by itself, encrypted in another way. It reports false, and does nothing, if the secret is not as it was any more.
	ReplaceSealed(ctx context.Context, was, is Sealed) (replaced bool, err error)
}

// SigningKeys keeps the keys that sign JWTs.
type SigningKeys interface {
	// AddSigningKey adds a key. It reports false, and does nothing, if there is one that signs until a later time than k.From: of several managers, one adds the next key.
	AddSigningKey(ctx context.Context, k SigningKey) (added bool, err error)
	// ListSigningKeys returns the keys in the order in which they sign.
	ListSigningKeys(ctx context.Context) ([]SigningKey, error)
	// DropSigningKeys deletes keys that signed until a time or an earlier one, with their private keys.
	DropSigningKeys(ctx context.Context, until time.Time) error
}
