package signature

import (
	"bytes"
	"errors"
	"slices"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
)

// sshNamespace is Git's namespace: signatures that the key made for another purpose do not count.
const sshNamespace = "git"

// addSSH parses lines in the format of authorized_keys. Options are refused, because they limit the use of a key and are not evaluated
// here.
func (k *publicKeys) addSSH(name string, text []byte) error {
	for len(bytes.TrimSpace(text)) > 0 {
		key, _, options, rest, err := ssh.ParseAuthorizedKey(text)
		if err != nil && bytes.HasPrefix(bytes.TrimSpace(text), []byte("#")) {
			return nil // Only comments are left.
		}
		if err != nil || len(options) > 0 {
			return k.unreadableKey(name)
		}
		k.ssh = append(k.ssh, key)
		text = rest
	}
	return nil
}

func (k *publicKeys) verifySSH(s signed) error {
	signature, err := sshsig.Unarmor(s.signature)
	if errors.Is(err, sshsig.ErrUnsupportedHashAlgorithm) {
		return failure.New(failure.ErrSignature, "has a signature with a hash that is neither sha256 nor sha512: sign it again with one of them, and push it")
	}
	if err != nil {
		// The library refuses RSA with SHA-1 here; only its text says so.
		return failure.New(failure.ErrSignature, "has a signature that cannot be read, or is made with SHA-1, which can be forged: sign it again, with a newer OpenSSH, and push it")
	}
	id := ssh.FingerprintSHA256(signature.PublicKey)
	trusted := slices.ContainsFunc(k.ssh, func(key ssh.PublicKey) bool { return bytes.Equal(key.Marshal(), signature.PublicKey.Marshal()) })
	switch {
	case !trusted:
		return k.unknownKey(id)
	case signature.Namespace != sshNamespace:
		return failure.New(failure.ErrSignature, "has a signature by key %s that was made for %q and not for Git", id, few.Quote(signature.Namespace))
	case signature.Signature.Format == "ssh-dss": // The library would verify DSA.
		return failure.New(failure.ErrSignature, "has a signature by key %s with SHA-1, which can be forged: sign it with a newer OpenSSH, and push it", id)
	}
	if err := sshsig.Verify(bytes.NewReader(s.content), signature, signature.PublicKey, signature.HashAlgorithm, sshNamespace); err != nil {
		return badSignature(id)
	}
	return nil
}
