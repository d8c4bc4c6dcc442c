// Package testkeys derives the private keys for the encrypted files in testdata from words in this file. So the repository holds no key
// files. The keys must protect only test data.
package testkeys

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// The words of the keys in testdata: two of age, one of OpenPGP.
const (
	First  = "the first key of the tests"
	Second = "the second key of the tests"
	Third  = "the OpenPGP key of the tests"
)

// Age returns the age identity for the words, in the format of age-keygen. Its 32 bytes are the SHA-256 of the words.
func Age(words string) string {
	key := sha256.Sum256([]byte(words))
	return strings.ToUpper(bech32("age-secret-key-", key[:]))
}

// OpenPGP returns the armored private key for the words, always with the same fingerprint.
func OpenPGP(words string) (string, error) {
	random := rand.NewChaCha8(sha256.Sum256([]byte(words)))
	entity, err := openpgp.NewEntity(words, "", "", &packet.Config{
		Algorithm: packet.PubKeyAlgoEdDSA, Rand: random, Time: func() time.Time { return time.Unix(1_700_000_000, 0) },
	})
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	out, err := armor.Encode(&text, openpgp.PrivateKeyType, nil)
	if err != nil {
		return "", err
	}
	if err := entity.SerializePrivate(out, nil); err != nil {
		return "", err
	}
	if err := out.Close(); err != nil {
		return "", err
	}
	return text.String(), nil
}

const letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

// bech32 encodes data with a prefix as in BIP 173, in lower case.
func bech32(name string, data []byte) string {
	values := append(fives(data), make([]byte, 6)...)
	sum := checksum(name, values) ^ 1
	for i := range 6 {
		values[len(values)-6+i] = byte(sum>>(5*(5-i))) & 31
	}
	var text strings.Builder
	text.WriteString(name + "1")
	for _, value := range values {
		text.WriteByte(letters[value])
	}
	return text.String()
}

// fives splits data into groups of five bits. The last one is padded with zeros.
func fives(data []byte) []byte {
	var groups []byte
	rest, bits := uint(0), 0
	for _, b := range data {
		rest, bits = rest<<8|uint(b), bits+8
		for ; bits >= 5; bits -= 5 {
			groups = append(groups, byte(rest>>(bits-5))&31)
		}
	}
	if bits > 0 {
		groups = append(groups, byte(rest<<(5-bits))&31)
	}
	return groups
}

func checksum(name string, values []byte) uint32 {
	var all []byte
	for i := range len(name) {
		all = append(all, name[i]>>5)
	}
	all = append(all, 0)
	for i := range len(name) {
		all = append(all, name[i]&31)
	}
	sum := uint32(1)
	for _, value := range append(all, values...) {
		top := sum >> 25
		sum = sum&0x1ffffff<<5 ^ uint32(value)
		for i, factor := range []uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if top>>i&1 == 1 {
				sum ^= factor
			}
		}
	}
	return sum
}
