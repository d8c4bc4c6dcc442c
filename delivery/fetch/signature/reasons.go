package signature

import (
	"strings"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
)

// writeKeys says who may write keys into the Secret, and how; "" if it is not known.
func writeKeys(secret string) string {
	namespace, name, known := strings.Cut(secret, "/")
	if !known {
		return ""
	}
	return "; " + command.WriteSecret(namespace, name, "people.pub")
}

func (k *publicKeys) unreadableKey(name string) error {
	return failure.New(failure.ErrInvalid, "%s of the Secret of verify cannot be read: *.asc are keys as \"gpg --armor --export\" prints them, *.pub lines as in authorized_keys without options%s", few.Quote(name), writeKeys(k.secret))
}

func (k *publicKeys) unknownKey(id string) error {
	return failure.New(failure.ErrSignature, "is signed by key %s, which is not in the Secret of verify: add the key if you trust it%s", id, writeKeys(k.secret))
}

func badSignature(id string) error {
	return failure.New(failure.ErrSignature, "has a signature by key %s that is not one of this content: it was changed after it was signed", id)
}

func unreadableSignature() error {
	return failure.New(failure.ErrSignature, "has a signature that cannot be read: sign it again, and push it")
}
