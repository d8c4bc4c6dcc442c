package kms

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/tink-crypto/tink-go/v2/tink"
)

const (
	keyBytes = 32
	// maxKeys is how many keys a file may have.
	maxKeys = 32
)

var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// NewKey returns the line of a new key.
func NewKey(id string) (string, error) {
	if !idPattern.MatchString(id) {
		return "", errors.New("the id of a key may have 1 to 63 of A-Za-z0-9._-, and begins with a letter or a digit")
	}
	key := make([]byte, keyBytes)
	rand.Read(key) // It never fails, see its documentation.
	return id + " " + base64.StdEncoding.EncodeToString(key), nil
}

// Read reads a file of keys: a line each, "<id> <base64 of 32 bytes>". The first one encrypts, and all decrypt. Empty lines and those with
// # at their beginning are not read. Errors name lines, and never what is in them.
func Read(path string) (*Keys, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("reading the file of keys: %w. Each line of it is an id and a key, as `manager key` prints one", err)
		}
		return nil, fmt.Errorf("reading the file of keys: %w", err)
	}
	k, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("reading the file of keys %s: %w", path, err)
	}
	return k, nil
}

func parse(text string) (*Keys, error) {
	k := &Keys{keys: map[string]tink.AEAD{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, encoded, _ := strings.Cut(line, " ")
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		switch {
		case err != nil || len(key) != keyBytes || !idPattern.MatchString(id):
			return nil, fmt.Errorf("line %d is not an id and the base64 of %d bytes", number, keyBytes)
		case k.keys[id] != nil:
			return nil, fmt.Errorf("line %d has the id of a line before", number)
		case len(k.keys) == maxKeys:
			return nil, fmt.Errorf("it has more than %d keys", maxKeys)
		}
		if k.keys[id], err = envelope(key); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if k.first == "" {
			k.first = id
		}
	}
	if k.first == "" {
		return nil, errors.New("it has no key")
	}
	return k, nil
}
