package sops

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	sopslib "github.com/getsops/sops/v3"

	"github.com/kubeop/kubeop/delivery/decrypt"
)

// errShape means that the file contains something that SOPS does not write, such as keys that are no text. The library's own error may
// quote values.
var errShape = fmt.Errorf("is encrypted with SOPS, but not as a file of its extension, or was changed since: %w", decrypt.ErrDamaged)

// recorder is the library's cipher. It records the decrypted values, and the last error with its place.
type recorder struct {
	sopslib.Cipher
	secrets []string
	err     error
}

// Decrypt implements sops.Cipher.
func (r *recorder) Decrypt(ciphertext string, key []byte, place string) (any, error) {
	value, err := r.Cipher.Decrypt(ciphertext, key, place)
	if err != nil {
		// The library stops at this error, except for a comment, which it takes for one that was never encrypted.
		r.err = fmt.Errorf("the value of %s was changed or moved after it was encrypted: %w", name(place), decrypt.ErrDamaged)
		return nil, r.err
	}
	if plain, err := sopslib.ToBytes(value); err == nil && len(plain) > 0 {
		if _, ok := value.(bool); !ok {
			r.secrets = append(r.secrets, string(plain))
		}
	}
	return value, nil
}

// encryptedValue is the form of every encrypted value.
var encryptedValue = regexp.MustCompile(`^ENC\[AES256_GCM,data:[^,]+,iv:[^,]+,tag:[^,]+,type:[a-z]+\]$`)

var errPlain = errors.New("a plain value")

// finder is a cipher that changes nothing. It finds the first value that should be encrypted and is not.
type finder struct{ err error }

// Encrypt implements sops.Cipher.
func (f *finder) Encrypt(value any, _ []byte, place string) (string, error) {
	switch v := value.(type) {
	case sopslib.Comment:
		return v.Value, nil // Older versions of SOPS did not encrypt comments.
	case string:
		if v == "" || encryptedValue.MatchString(v) {
			return v, nil
		}
	}
	f.err = fmt.Errorf("the value of %s is not encrypted, and should be: %w", name(place), decrypt.ErrDamaged)
	return "", errPlain
}

// Decrypt implements sops.Cipher.
func (*finder) Decrypt(string, []byte, string) (any, error) { return nil, errors.ErrUnsupported }

// name returns the place of a value for a message.
func name(place string) string {
	return strings.ReplaceAll(strings.TrimSuffix(place, ":"), ":", ".")
}
