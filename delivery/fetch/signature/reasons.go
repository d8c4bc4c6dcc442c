package signature

import "github.com/kubeop/kubeop/delivery/fetch/failure"

func unreadableKey(name string) error {
	return failure.New(failure.ErrInvalid, "%s of the Secret of verify cannot be read: *.asc are keys as \"gpg --armor --export\" prints them, *.pub lines as in authorized_keys without options", failure.Printable(name))
}

func unknownKey(id string) error {
	return failure.New(failure.ErrSignature, "is signed by key %s, which is not in the Secret of verify: add the key if you trust it", id)
}

func badSignature(id string) error {
	return failure.New(failure.ErrSignature, "has a signature by key %s that is not one of this content: it was changed after it was signed", id)
}

func unreadableSignature() error {
	return failure.New(failure.ErrSignature, "has a signature that cannot be read: sign it again")
}
