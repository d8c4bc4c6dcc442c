package decrypt

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mapping is a mapping in the order of its file, on which the MAC depends. A value is a mapping, a []any, a string, int,
// float64, bool, time.Time or nil.
type mapping []field

type field struct {
	name  string
	value any
}

// comment is a decrypted comment. It is no part of the MAC, and is left out.
type comment struct{}

// opening begins every encrypted value.
const opening = "ENC[AES256_GCM,"

var encrypted = regexp.MustCompile(`^ENC\[AES256_GCM,data:([^,]+),iv:([^,]+),tag:([^,]+),type:([a-z]+)\]$`)

// onlyEncrypted goes first into a MAC over the encrypted values alone, so that it never equals one over all: the SHA-256 of
// "sops".
var onlyEncrypted, _ = hex.DecodeString("8a3fd2ad54ce66527b1034f3d147be0b0b975b3bf44f72c6fdadec8176f27d69")

// opener decrypts the values of one file and adds up their MAC.
type opener struct {
	block   cipher.Block
	encrypt rule
	partial bool
	mac     hash.Hash
	secrets []string
}

func newOpener(key []byte, encrypt rule, partial bool) *opener {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // The length of a data key was checked.
	}
	o := &opener{block: block, encrypt: encrypt, partial: partial, mac: sha512.New()}
	if partial {
		o.mac.Write(onlyEncrypted)
	}
	return o
}

// mapping decrypts a mapping; fit says whether a key of its path fits the rule.
func (o *opener) mapping(in mapping, path []string, fit bool) (mapping, error) {
	out := make(mapping, 0, len(in))
	for _, f := range in {
		value, err := o.value(f.value, append(slices.Clip(path), f.name), fit || o.encrypt.fits(f.name))
		if err != nil {
			return nil, err
		}
		out = append(out, field{f.name, value})
	}
	return out, nil
}

// value decrypts a value. Items of a list have the path of the list.
func (o *opener) value(in any, path []string, fit bool) (any, error) {
	switch v := in.(type) {
	case mapping:
		return o.mapping(v, path, fit)
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			value, err := o.value(item, path, fit)
			if err != nil {
				return nil, err
			}
			if _, ok := value.(comment); !ok {
				out = append(out, value)
			}
		}
		return out, nil
	case nil:
		return nil, nil
	}
	return o.leaf(in, path, fit)
}

func (o *opener) leaf(in any, path []string, fit bool) (any, error) {
	if fit != o.encrypt.encrypts {
		if !o.partial {
			o.mac.Write(bytesOf(in))
		}
		return in, nil
	}
	text, ok := in.(string)
	if !ok {
		return nil, fmt.Errorf("the value of %s is not encrypted, and should be: %w", strings.Join(path, "."), ErrDamaged)
	}
	value, err := o.decrypt(text, strings.Join(path, ":")+":")
	if err != nil {
		return nil, fmt.Errorf("the value of %s %w: %w", strings.Join(path, "."), err, ErrDamaged)
	}
	if _, ok := value.(comment); ok {
		return value, nil
	}
	plain := bytesOf(value)
	o.mac.Write(plain)
	if _, ok := value.(bool); !ok && len(plain) > 0 {
		o.secrets = append(o.secrets, string(plain))
	}
	return value, nil
}

// Why a value cannot be decrypted; the value itself is never told.
var (
	errNotEncrypted = errors.New("is not encrypted, and should be")
	errChanged      = errors.New("was changed or moved after it was encrypted")
	errUnknownType  = errors.New("is of an unknown type")
)

// decrypt opens one value; place is what it is bound to.
func (o *opener) decrypt(text, place string) (any, error) {
	if text == "" {
		return "", nil
	}
	m := encrypted.FindStringSubmatch(text)
	if m == nil {
		return nil, errNotEncrypted
	}
	var parts [3][]byte
	for i := range parts {
		var err error
		if parts[i], err = base64.StdEncoding.DecodeString(m[i+1]); err != nil {
			return nil, errChanged
		}
	}
	data, nonce, tag := parts[0], parts[1], parts[2]
	if len(nonce) == 0 {
		return nil, errChanged
	}
	gcm, err := cipher.NewGCMWithNonceSize(o.block, len(nonce))
	if err != nil {
		return nil, errChanged
	}
	plain, err := gcm.Open(nil, nonce, append(data, tag...), []byte(place))
	if err != nil {
		return nil, errChanged
	}
	return typed(string(plain), m[4])
}

// typed gives a decrypted value its type.
func typed(plain, kind string) (value any, err error) {
	switch kind {
	case "str", "bytes":
		return plain, nil
	case "int":
		value, err = strconv.Atoi(plain)
	case "float":
		value, err = strconv.ParseFloat(plain, 64)
	case "bool":
		value, err = strconv.ParseBool(plain)
	case "time":
		value, err = time.Parse(time.RFC3339, plain)
	case "comment":
		return comment{}, nil
	default:
		return nil, errUnknownType
	}
	if err != nil {
		return nil, errUnknownType // The parsers quote the value.
	}
	return value, nil
}

// bytesOf is a value as it goes into the MAC.
func bytesOf(value any) []byte {
	switch v := value.(type) {
	case string:
		return []byte(v)
	case int:
		return strconv.AppendInt(nil, int64(v), 10)
	case float64:
		return strconv.AppendFloat(nil, v, 'f', -1, 64)
	case bool:
		if v {
			return []byte("True")
		}
		return []byte("False")
	case time.Time:
		text, err := v.MarshalText()
		if err != nil {
			return nil
		}
		return text
	}
	return nil
}

// verify compares the MAC of what was decrypted with that of the file.
func (o *opener) verify(about *metadata) error {
	modified, err := time.Parse(time.RFC3339, about.LastModified)
	if err != nil {
		return fmt.Errorf("its lastmodified is no time: %w", ErrDamaged)
	}
	want, err := o.decrypt(about.MAC, modified.Format(time.RFC3339))
	if err != nil {
		return fmt.Errorf("its MAC %w: %w", err, ErrDamaged)
	}
	text, _ := want.(string)
	is := strings.ToUpper(hex.EncodeToString(o.mac.Sum(nil)))
	if subtle.ConstantTimeCompare([]byte(text), []byte(is)) != 1 {
		return fmt.Errorf("its MAC is not that of its values: something was added, removed or moved after it was encrypted: %w", ErrDamaged)
	}
	return nil
}
