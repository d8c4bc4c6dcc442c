package testkeys

import (
	"fmt"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/ProtonMail/go-crypto/openpgp"
)

func TestAgeDerivesTheKeyFromTheWords(t *testing.T) {
	identity, err := age.ParseX25519Identity(Age(First))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := identity.Recipient().String(), "age1g2k6l9rx35q0rfu0nxxxtwrg4uazdt9d2es82twzxm6z7rwd9y2q6ekz6c"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if Age("a") == Age("b") {
		t.Error("other words are the same key")
	}
}

func TestOpenPGPKeysAreThoseOfTheirWords(t *testing.T) {
	text, err := OpenPGP(Third)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := openpgp.ReadArmoredKeyRing(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%X %X", ring[0].PrimaryKey.Fingerprint, ring[0].Subkeys[0].PublicKey.Fingerprint)
	if want := "4048E57621C38B7477A2C1045FD8B3B00D8705F1 8D28EDBEC290F4C4BFED700CAD1D0F5FB71B9458"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
