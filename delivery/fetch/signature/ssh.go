package signature

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"path"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"golang.org/x/crypto/ssh"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// publicKeys are those that may sign.
type publicKeys struct {
	openpgp openpgp.EntityList
	ssh     []ssh.PublicKey
	now     func() time.Time
}

// readKeys reads the keys of a Secret.
func readKeys(v Verification) (*publicKeys, error) {
	keys := &publicKeys{now: v.Now}
	for name, text := range v.Keys {
		var err error
		switch path.Ext(name) {
		case ".asc":
			err = keys.addOpenPGP(name, text)
		case ".pub":
			err = keys.addSSH(name, text)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(keys.openpgp)+len(keys.ssh) == 0 {
		return nil, failure.New(failure.ErrInvalid, "the Secret of verify holds no public key: add *.asc (OpenPGP) or *.pub (SSH)")
	}
	return keys, nil
}

// addSSH reads lines as of authorized_keys. Options are refused: they limit what a key is good for, in ways that are not
// looked at here.
func (k *publicKeys) addSSH(name string, text []byte) error {
	for len(bytes.TrimSpace(text)) > 0 {
		key, _, options, rest, err := ssh.ParseAuthorizedKey(text)
		if err != nil && bytes.HasPrefix(bytes.TrimSpace(text), []byte("#")) {
			return nil // Nothing but comments is left.
		}
		if err != nil || len(options) > 0 {
			return unreadableKey(name)
		}
		k.ssh = append(k.ssh, key)
		text = rest
	}
	return nil
}

// sshMagic begins a signature and what it signs, see PROTOCOL.sshsig of OpenSSH; the namespace is Git's, so that what the
// key signed elsewhere counts for nothing here.
const (
	sshMagic     = "SSHSIG"
	sshNamespace = "git"
)

// sshSignature is what follows the magic in a signature.
type sshSignature struct {
	Version       uint32
	PublicKey     []byte
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Signature     []byte
}

// sshSigned is what follows the magic in what is signed.
type sshSigned struct {
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Hash          []byte
}

func (k *publicKeys) verifySSH(s signed) error {
	block, _ := pem.Decode(s.signature)
	if block == nil || block.Type != "SSH SIGNATURE" {
		return unreadableSignature()
	}
	raw, begins := bytes.CutPrefix(block.Bytes, []byte(sshMagic))
	var found sshSignature
	if !begins || ssh.Unmarshal(raw, &found) != nil || found.Version != 1 {
		return unreadableSignature()
	}
	key, err := ssh.ParsePublicKey(found.PublicKey)
	if err != nil {
		return unreadableSignature()
	}
	var signature ssh.Signature
	if ssh.Unmarshal(found.Signature, &signature) != nil {
		return unreadableSignature()
	}
	id := ssh.FingerprintSHA256(key)
	if !k.knows(key) {
		return unknownKey(id)
	}
	hash, known := sshHash(found.HashAlgorithm, s.content)
	switch {
	case found.Namespace != sshNamespace:
		return failure.New(failure.ErrSignature, "has a signature by key %s that was made for %q and not for Git", id, failure.Printable(found.Namespace))
	case !known:
		return failure.New(failure.ErrSignature, "has a signature by key %s with the hash %q: it may be sha256 or sha512", id, failure.Printable(found.HashAlgorithm))
	case signature.Format == ssh.KeyAlgoRSA || signature.Format == "ssh-dss":
		return failure.New(failure.ErrSignature, "has a signature by key %s with SHA-1, which can be forged: sign it with a newer OpenSSH", id)
	}
	about := ssh.Marshal(sshSigned{Namespace: found.Namespace, Reserved: found.Reserved, HashAlgorithm: found.HashAlgorithm, Hash: hash})
	if err := key.Verify(append([]byte(sshMagic), about...), &signature); err != nil {
		return badSignature(id)
	}
	return nil
}

func (k *publicKeys) knows(key ssh.PublicKey) bool {
	for _, known := range k.ssh {
		if bytes.Equal(known.Marshal(), key.Marshal()) {
			return true
		}
	}
	return false
}

func sshHash(algorithm string, content []byte) ([]byte, bool) {
	switch algorithm {
	case "sha256":
		sum := sha256.Sum256(content)
		return sum[:], true
	case "sha512":
		sum := sha512.Sum512(content)
		return sum[:], true
	}
	return nil, false
}
