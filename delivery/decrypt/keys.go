package decrypt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"filippo.io/age"
	agearmor "filippo.io/age/armor"
	"github.com/ProtonMail/go-crypto/openpgp"
	pgparmor "github.com/ProtonMail/go-crypto/openpgp/armor"
)

// keyBytes is the length of a file's data key; partBytes that of a part of one, a byte for each of the key's and the point
// they were taken at; maxEncBytes that of the encrypted form of either.
const (
	keyBytes    = 32
	partBytes   = keyBytes + 1
	maxEncBytes = 16 << 10
)

// Keys are the private keys of one Secret.
type Keys struct {
	secret     string
	identities []age.Identity
	ring       openpgp.EntityList
}

// ReadKeys reads the private keys in the data of a Secret of that name: each key *.agekey holds age identities, one a line,
// each key *.asc armored OpenPGP keys without a passphrase. Other keys are left alone. It is an ErrKeys when one cannot be
// read or there is none.
func ReadKeys(secret string, data map[string][]byte) (*Keys, error) {
	k := &Keys{secret: secret}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if why := k.read(name, data[name]); why != "" {
			return nil, fmt.Errorf("key %s of Secret %s %s: %w", name, secret, why, ErrKeys)
		}
	}
	switch n := len(k.identities) + len(k.ring); {
	case n == 0:
		return nil, fmt.Errorf("the Secret %s has no key *.agekey or *.asc: what it should decrypt: %w", secret, ErrKeys)
	case n > maxKeys:
		return nil, fmt.Errorf("the Secret %s holds %d keys; it may hold %d: what it should decrypt: %w", secret, n, maxKeys, ErrKeys)
	}
	return k, nil
}

// read adds the keys in one key of the Secret and says what is wrong with them. What the parsers say may quote them.
func (k *Keys) read(name string, content []byte) string {
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

func (k *Keys) addRing(ring openpgp.EntityList) string {
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

// age decrypts a data key for age; nil when that does not work. Each key is tried on each stanza.
func (k *Keys) age(enc string, try func(int) bool) []byte {
	if len(k.identities) == 0 || len(enc) > maxEncBytes {
		return nil
	}
	counted := make([]age.Identity, 0, len(k.identities))
	for _, identity := range k.identities {
		counted = append(counted, countedIdentity{identity, try})
	}
	in, err := age.Decrypt(agearmor.NewReader(strings.NewReader(enc)), counted...)
	if err != nil {
		return nil
	}
	return short(in)
}

// errTried ends decryption when no more may be tried.
var errTried = errors.New("tried too often")

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

// pgp decrypts a data key for OpenPGP; nil when that does not work. A key is tried where its ID is named, and where none is.
func (k *Keys) pgp(enc string, try func(int) bool) []byte {
	if len(k.ring) == 0 || len(enc) > maxEncBytes {
		return nil
	}
	block, err := pgparmor.Decode(strings.NewReader(enc))
	if err != nil {
		return nil
	}
	message, err := openpgp.ReadMessage(block.Body, countedRing{k.ring, try}, nil, nil)
	if err != nil {
		return nil
	}
	return short(message.UnverifiedBody)
}

// countedRing hands out keys to be tried, as many as may be.
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

// short reads a data key or a part of one, and a byte more where a message goes on.
func short(in io.Reader) []byte {
	key, err := io.ReadAll(io.LimitReader(in, partBytes+1))
	if err != nil {
		return nil
	}
	return key
}
