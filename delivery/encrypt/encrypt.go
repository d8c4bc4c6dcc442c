// Package encrypt writes Secrets in the format of SOPS 3, encrypted for age recipients. SOPS' own library links the clients of five clouds,
// and what is needed of its format is small: see aes/cipher.go, sops.go and stores/yaml of github.com/getsops/sops. Its tests decrypt what it
// writes with SOPS' library, as the operator does.
package encrypt

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"filippo.io/age"
	"filippo.io/age/armor"
)

const (
	// encryptedFields are the fields of a Secret whose values are encrypted, as SOPS names them in the file.
	encryptedFields = "^(data|stringData)$"
	// formatVersion is the version of SOPS that writes this format.
	formatVersion = "3.13.3"
	keyBytes      = 32
	nonceBytes    = 32
)

// Secret is a Secret to encrypt.
type Secret struct {
	Name string
	// Type is the type of the Secret; "" for Opaque.
	Type string
	// Data are its values. Those that are no text become data, the others stringData.
	Data map[string][]byte
}

// Encrypted returns the manifest of a Secret, encrypted for all recipients, which are age public keys.
func (s *Secret) Encrypted(recipients []string, now time.Time) ([]byte, error) {
	f := &sealed{key: make([]byte, keyBytes)}
	if _, err := rand.Read(f.key); err != nil {
		return nil, fmt.Errorf("making a data key: %w", err)
	}
	f.plain("apiVersion", "v1")
	f.plain("kind", "Secret")
	f.text.WriteString("metadata:\n")
	f.plain("    name", s.Name)
	if s.Type != "" {
		f.plain("type", s.Type)
	}
	binary, text := map[string]string{}, map[string]string{}
	for name, value := range s.Data {
		if utf8.Valid(value) && !bytes.ContainsRune(value, 0) {
			text[name] = string(value)
		} else {
			binary[name] = base64.StdEncoding.EncodeToString(value)
		}
	}
	if err := errors.Join(f.secrets("data", binary), f.secrets("stringData", text), f.metadata(recipients, now)); err != nil {
		return nil, err
	}
	return f.text.Bytes(), nil
}

// sealed is a file as it is written.
type sealed struct {
	text bytes.Buffer
	key  []byte
	// values are all values in the order of the file: the MAC is over them.
	values bytes.Buffer
}

// plain writes a field that is not encrypted.
func (f *sealed) plain(name, value string) {
	fmt.Fprintf(&f.text, "%s: %s\n", name, quoted(value))
	f.values.WriteString(value)
}

// secrets writes encrypted fields.
func (f *sealed) secrets(field string, of map[string]string) error {
	if len(of) == 0 {
		return nil
	}
	fmt.Fprintf(&f.text, "%s:\n", field)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		hidden, err := f.seal(of[name], field+":"+name+":")
		if err != nil {
			return err
		}
		fmt.Fprintf(&f.text, "    %s: %s\n", quoted(name), hidden)
		f.values.WriteString(of[name])
	}
	return nil
}

// quoted returns a text that YAML always reads as this text.
func quoted(text string) string {
	// A string always has a JSON form.
	out, _ := json.Marshal(text)
	return string(out)
}

// seal encrypts a value for a place, to which it is bound. SOPS leaves an empty value as it is.
func (f *sealed) seal(value, place string) (string, error) {
	if value == "" {
		return `""`, nil
	}
	block, err := aes.NewCipher(f.key)
	if err != nil {
		return "", err
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, nonceBytes)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, nonceBytes)
	if _, err := rand.Read(nonce); err != nil {
		return "", err
	}
	out := gcm.Seal(nil, nonce, []byte(value), []byte(place))
	cut := len(out) - gcm.Overhead()
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:str]", encode(out[:cut]), encode(nonce), encode(out[cut:])), nil
}

// metadata writes the data key, encrypted for each recipient, and the MAC.
func (f *sealed) metadata(recipients []string, now time.Time) error {
	f.text.WriteString("sops:\n    age:\n")
	for _, recipient := range recipients {
		hidden, err := f.keyFor(recipient)
		if err != nil {
			return err
		}
		fmt.Fprintf(&f.text, "        - recipient: %s\n          enc: |\n", recipient)
		for _, line := range strings.Split(strings.TrimSpace(hidden), "\n") {
			fmt.Fprintf(&f.text, "            %s\n", line)
		}
	}
	modified := now.UTC().Format(time.RFC3339)
	mac, err := f.seal(fmt.Sprintf("%X", sha512.Sum512(f.values.Bytes())), modified)
	if err != nil {
		return err
	}
	fmt.Fprintf(&f.text, "    lastmodified: %q\n    mac: %s\n    encrypted_regex: %s\n    version: %s\n", modified, mac, encryptedFields, formatVersion)
	return nil
}

// keyFor encrypts the data key for a recipient.
func (f *sealed) keyFor(recipient string) (string, error) {
	public, err := age.ParseX25519Recipient(recipient)
	if err != nil {
		return "", fmt.Errorf("%q is no age recipient: it begins with age1, as age-keygen prints it", recipient)
	}
	var text bytes.Buffer
	armored := armor.NewWriter(&text)
	w, err := age.Encrypt(armored, public)
	if err != nil {
		return "", fmt.Errorf("encrypting for %s: %w", recipient, err)
	}
	_, err = w.Write(f.key)
	if err := errors.Join(err, w.Close(), armored.Close()); err != nil {
		return "", fmt.Errorf("encrypting for %s: %w", recipient, err)
	}
	return text.String(), nil
}
