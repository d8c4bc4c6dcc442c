package signature

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/few"
)

const openpgpKeyBegins = "-----BEGIN PGP PUBLIC KEY BLOCK-----"

// addOpenPGP reads armored public keys. A text may contain several.
func (k *publicKeys) addOpenPGP(name string, text []byte) error {
	blocks := bytes.Split(text, []byte(openpgpKeyBegins))
	for _, block := range blocks[1:] {
		keys, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(append([]byte(openpgpKeyBegins), block...)))
		if err != nil {
			return k.unreadableKey(name)
		}
		k.openpgp = append(k.openpgp, keys...)
	}
	if len(blocks) == 1 {
		return k.unreadableKey(name)
	}
	return nil
}

func (k *publicKeys) verifyOpenPGP(s signed) error {
	block, err := armor.Decode(bytes.NewReader(s.signature))
	if err != nil {
		return unreadableSignature()
	}
	raw, err := io.ReadAll(io.LimitReader(block.Body, 64*limit.KiB))
	if err != nil {
		return unreadableSignature()
	}
	id, err := issuer(raw)
	if err != nil {
		return unreadableSignature()
	}
	config := &packet.Config{Time: k.now}
	signature, signer, err := openpgp.VerifyDetachedSignature(k.openpgp, bytes.NewReader(s.content), bytes.NewReader(raw), config)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return k.unknownKey(id)
	case errors.Is(err, pgperrors.ErrKeyExpired):
		return failure.New(failure.ErrSignature, "is signed by key %s, which %s: sign with a key that is valid, or renew this one, and push it", id, expired(signer))
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return failure.New(failure.ErrSignature, "is signed by key %s, which was revoked: sign with another key, and push it", id)
	case errors.Is(err, pgperrors.ErrSignatureExpired):
		return failure.New(failure.ErrSignature, "has a signature by key %s that expired: sign it again, and push it", id)
	case signature == nil:
		return badSignature(id)
	}
	return failure.New(failure.ErrSignature, "has a signature by key %s that does not count: %s", id, few.Quote(err.Error()))
}

// issuer returns the ID of the key that a signature names.
func issuer(raw []byte) (string, error) {
	read, err := packet.Read(bytes.NewReader(raw))
	if err != nil {
		return "", err
	}
	signature, ok := read.(*packet.Signature)
	if !ok || signature.IssuerKeyId == nil {
		return "", errors.New("not a signature")
	}
	return fmt.Sprintf("%016X", *signature.IssuerKeyId), nil
}

// expired says when a key expired, if it has an expiry date.
func expired(signer *openpgp.Entity) string {
	if signer == nil {
		return "expired"
	}
	if self, _ := signer.PrimarySelfSignature(); self != nil && self.KeyLifetimeSecs != nil {
		at := signer.PrimaryKey.CreationTime.Add(time.Duration(*self.KeyLifetimeSecs) * time.Second)
		return "expired on " + at.UTC().Format(time.DateOnly)
	}
	return "expired"
}
