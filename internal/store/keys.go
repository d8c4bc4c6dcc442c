package store

import (
	"context"
	"time"
)

// Sealed is an encrypted secret, bound to its place. internal/kms encrypts and decrypts it.
type Sealed struct {
	// Kind and ID are the place. Kind says what the secret is for.
	Kind, ID string
	// Key is the ID of the key-encryption key.
	Key  string
	Data []byte
}

// KindSigningKey is the kind of the private keys that sign JWTs.
const KindSigningKey = "signing-key"

// SigningKey is a key that signs JWTs.
type SigningKey struct {
	// Private is the private key. Its ID is also the ID of the SigningKey.
	Private Sealed
	Created time.Time
	// From and Until are the time in which the key signs.
	From, Until time.Time
}

// Keys stores encrypted secrets, and the keys that sign.
type Keys interface {
	Secrets
	SigningKeys
}

// Secrets stores the encrypted secrets of all kinds.
type Secrets interface {
	// ListSealed returns up to limit secrets after the place of one, ordered by kind and ID.
	ListSealed(ctx context.Context, after Sealed, limit int) ([]Sealed, error)
	// ReplaceSealed replaces a secret by the same secret with another encryption. It reports false, and does nothing, if the stored secret is not was.
	ReplaceSealed(ctx context.Context, was, is Sealed) (replaced bool, err error)
}

// SigningKeys stores the keys that sign JWTs.
type SigningKeys interface {
	// AddSigningKey adds a key. It reports false, and does nothing, if another key signs until a later time than k.From: so only one of several
	// managers adds the next key.
	AddSigningKey(ctx context.Context, k SigningKey) (added bool, err error)
	// ListSigningKeys returns the keys in the order in which they sign.
	ListSigningKeys(ctx context.Context) ([]SigningKey, error)
	// DropSigningKeys deletes the keys that signed until a time at most, with their private keys.
	DropSigningKeys(ctx context.Context, until time.Time) error
}
