// Package kms encrypts what the store keeps of secrets (envelope encryption): each record has a data key of its own, which a key-encryption
// key from a file encrypts. The record is bound to its place, so in another row it cannot be read, and without the file nothing of it can.
package kms

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// Place is where a record is kept: in which table, in the row of which ID.
type Place struct{ Table, ID string }

// associated returns the associated data of a record at the place. Quoted, no two places have the same.
func (p Place) associated() []byte {
	return []byte("kubeop " + strconv.Quote(p.Table) + " " + strconv.Quote(p.ID))
}

// Sealed is an encrypted record.
type Sealed struct {
	// Key is the ID of the key-encryption key.
	Key string
	// Data has the encrypted data key and the encrypted record, as Tink's KMSEnvelopeAEAD writes them.
	Data []byte
}

// ErrNoKey is returned for a record of a key that the file does not have.
var ErrNoKey = errors.New("the file of keys does not have the key of the record")

// Keys are key-encryption keys.
type Keys struct {
	// first is the ID of the key that encrypts.
	first string
	keys  map[string]tink.AEAD
}

// First returns the ID of the key that encrypts.
func (k *Keys) First() string { return k.first }

// Seal encrypts a record for its place.
func (k *Keys) Seal(at Place, record []byte) (Sealed, error) {
	data, err := k.keys[k.first].Encrypt(record, at.associated())
	if err != nil {
		return Sealed{}, fmt.Errorf("encrypting a record of %s: %w", at.Table, err)
	}
	return Sealed{Key: k.first, Data: data}, nil
}

// Open decrypts the record of a place. It fails for one that was sealed for another place, or changed.
func (k *Keys) Open(at Place, s Sealed) ([]byte, error) {
	key, has := k.keys[s.Key]
	if !has {
		return nil, fmt.Errorf("decrypting the record %s of %s, of key %q: %w", at.ID, at.Table, s.Key, ErrNoKey)
	}
	record, err := key.Decrypt(s.Data, at.associated())
	if err != nil {
		return nil, fmt.Errorf("decrypting the record %s of %s, of key %q: the key is another one, or the record was changed or is that of another place", at.ID, at.Table, s.Key)
	}
	return record, nil
}

// Rewrap returns a record encrypted by the first key, with a new data key. One that is so already stays as it is.
func (k *Keys) Rewrap(at Place, s Sealed) (Sealed, error) {
	if s.Key == k.first {
		return s, nil
	}
	record, err := k.Open(at, s)
	if err != nil {
		return Sealed{}, err
	}
	return k.Seal(at, record)
}

// envelope makes a data key for each record, and encrypts it by a key-encryption key.
func envelope(key []byte) (tink.AEAD, error) {
	outer, err := subtle.NewXChaCha20Poly1305(key)
	if err != nil {
		return nil, err
	}
	return aead.NewKMSEnvelopeAEAD2(aead.AES256GCMKeyTemplate(), outer), nil
}
