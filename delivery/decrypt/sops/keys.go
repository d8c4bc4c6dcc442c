package sops

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/ProtonMail/go-crypto/openpgp"
	pgparmor "github.com/ProtonMail/go-crypto/openpgp/armor"
	sopsage "github.com/getsops/sops/v3/age"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/decrypt"
)

// keyBytes is the length of a file's data key. partBytes is the length of one part of it (Shamir's secret sharing): the length of the key,
// and one byte. maxEncBytes is the maximum length of the encrypted form of either.
const (
	keyBytes    = 32
	partBytes   = keyBytes + 1
	maxEncBytes = 16 << 10
)

// keys are the private keys of one Secret.
type keys struct {
	secret     string
	identities []age.Identity
	ring       openpgp.EntityList
}

func (k *keys) count() int { return len(k.identities) + len(k.ring) }

// readKeys reads the private keys in the data of the named Secret: each key *.agekey contains age identities, one per line, each key *.asc
// armored OpenPGP keys without a passphrase. Other keys are ignored.
func readKeys(secret string, data map[string][]byte) (*keys, error) {
	k := &keys{secret: secret}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if why := k.read(name, data[name]); why != "" {
			return nil, wrongKey(secret, name, why)
		}
	}
	if n := k.count(); n > maxKeys {
		return nil, fmt.Errorf("the Secret %s holds %d keys; it may hold %d: what it should decrypt: %w", secret, n, maxKeys, decrypt.ErrKeys)
	}
	return k, nil
}

func wrongKey(secret, name, why string) error {
	return fmt.Errorf("key %s of Secret %s %s%s: %w", name, secret, why, write(secret), decrypt.ErrKeys)
}

// write says who may add a key to the Secret, or replace one, and how; "" if the namespace of the Secret is not known.
func write(secret string) string {
	namespace, name, known := strings.Cut(secret, "/")
	if !known {
		return ""
	}
	return "; " + command.WriteSecret(namespace, name)
}

// read adds the private keys in one key of the Secret, and returns what is wrong with them. It leaves out the parsers' errors, which may
// quote them.
func (k *keys) read(name string, content []byte) string {
	switch {
	case strings.HasSuffix(name, ".agekey"):
		identities, err := age.ParseIdentities(bytes.NewReader(content))
		if err != nil {
			return "holds something else than age identities as age-keygen writes them, one a line"
		}
		k.identities = append(k.identities, identities...)
	case strings.HasSuffix(name, ".asc"):
		ring, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(content))
		if err != nil {
			return "holds no armored OpenPGP key"
		}
		return k.addRing(ring)
	}
	return ""
}

func (k *keys) addRing(ring openpgp.EntityList) string {
	for _, entity := range ring {
		if entity.PrivateKey == nil {
			return "holds a public OpenPGP key; it takes the private one"
		}
		for _, sub := range entity.Subkeys {
			if sub.PrivateKey != nil && sub.PrivateKey.Encrypted {
				return "is protected by a passphrase; export the key without one"
			}
		}
	}
	k.ring = append(k.ring, ring...)
	return ""
}

// errNone means that none of the private keys decrypts a data key.
var errNone = errors.New("no key decrypts it")

// age decrypts a data key with the age identities. It does not call the library without identities, because that would look for some
// elsewhere.
func (k *keys) age(enc string, try func(int) bool) ([]byte, error) {
	if len(k.identities) == 0 || len(enc) > maxEncBytes {
		return nil, errNone
	}
	var counted sopsage.ParsedIdentities
	for _, identity := range k.identities {
		counted = append(counted, countedIdentity{identity, try})
	}
	key := &sopsage.MasterKey{EncryptedKey: enc}
	counted.ApplyToMasterKey(key)
	return key.Decrypt()
}

// errTried ends decryption when the maximum number of tries is reached.
var errTried = errors.New("tried too often")

// countedIdentity counts a try for each stanza.
type countedIdentity struct {
	age.Identity
	try func(int) bool
}

// Unwrap implements age.Identity.
func (c countedIdentity) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	if !c.try(len(stanzas)) {
		return nil, errTried
	}
	return c.Identity.Unwrap(stanzas)
}

// pgp decrypts a data key with the OpenPGP keys. It tries a key if the message names its ID, or names no ID. The library's own
// implementation needs a keyring on disk, or GnuPG.
func (k *keys) pgp(enc string, try func(int) bool) ([]byte, error) {
	if len(k.ring) == 0 || len(enc) > maxEncBytes {
		return nil, errNone
	}
	block, err := pgparmor.Decode(strings.NewReader(enc))
	if err != nil {
		return nil, err
	}
	message, err := openpgp.ReadMessage(block.Body, countedRing{k.ring, try}, nil, nil)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(message.UnverifiedBody, partBytes+1))
}

// countedRing counts the keys to try, and returns none above the limit.
type countedRing struct {
	openpgp.EntityList
	try func(int) bool
}

// KeysById implements openpgp.KeyRing.
//
//nolint:revive // it is the library's name
func (r countedRing) KeysById(id uint64) []openpgp.Key { return r.counted(r.EntityList.KeysById(id)) }

// DecryptionKeys implements openpgp.KeyRing.
func (r countedRing) DecryptionKeys() []openpgp.Key { return r.counted(r.EntityList.DecryptionKeys()) }

func (r countedRing) counted(keys []openpgp.Key) []openpgp.Key {
	if !r.try(len(keys)) {
		return nil
	}
	return keys
}
