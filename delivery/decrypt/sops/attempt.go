package sops

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sopslib "github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/keyservice"
	"google.golang.org/grpc"

	"github.com/kubeop/kubeop/delivery/decrypt"
)

// attempt decrypts the data key of one file, or parts of it, with any key of the Secret that fits. It is the library's KeyServiceClient.
type attempt struct {
	*decrypter
	// size is the length of a data key, or of a part of one, in bytes.
	size int
	// why says, by the description of a key, why the key could not be used. open has the keys that could be used.
	why  map[string]string
	open map[string]bool
	// failed: a service for which there are credentials did not decrypt the data key.
	failed bool
}

var errSize = errors.New("what it decrypts is no data key")

// Decrypt implements keyservice.KeyServiceClient.
func (a *attempt) Decrypt(ctx context.Context, r *keyservice.DecryptRequest, _ ...grpc.CallOption) (*keyservice.DecryptResponse, error) {
	plain, err := a.plain(ctx, r)
	if err == nil && len(plain) != a.size {
		err = errSize
	}
	if err != nil {
		return nil, err
	}
	a.open[describe(r.Key)] = true
	return &keyservice.DecryptResponse{Plaintext: plain}, nil
}

func (a *attempt) plain(ctx context.Context, r *keyservice.DecryptRequest) ([]byte, error) {
	enc := string(r.Ciphertext)
	switch r.Key.KeyType.(type) {
	case *keyservice.Key_AgeKey:
		return a.keys.age(enc, a.try)
	case *keyservice.Key_PgpKey:
		return a.keys.pgp(enc, a.try)
	}
	plain, err := a.services.decrypt(ctx, r.Key, enc)
	if err == nil && len(plain) == a.size {
		return plain, nil
	}
	if err == nil {
		err = errSize
	}
	a.failed = a.failed || !errors.Is(err, errNoCredentials)
	a.why[describe(r.Key)] = err.Error()
	return nil, err
}

// Encrypt implements keyservice.KeyServiceClient.
func (*attempt) Encrypt(context.Context, *keyservice.EncryptRequest, ...grpc.CallOption) (*keyservice.EncryptResponse, error) {
	return nil, errors.ErrUnsupported
}

// try counts tries, and reports whether they are within the limit.
func (d *decrypter) try(n int) bool {
	d.tries = min(d.tries+n, maxTries+1)
	return d.tries <= maxTries
}

// explain says why the data key could not be decrypted. If a service failed, a retry may succeed.
func (a *attempt) explain(about *sopslib.Metadata) error {
	if a.tries > maxTries {
		return fmt.Errorf("to decrypt the files of an app, keys may be tried %d times together, each key of the Secret on each recipient of each file: use fewer of them in Git: %w", maxTries, decrypt.ErrKeys)
	}
	class := decrypt.ErrKeys
	if a.failed {
		class = decrypt.ErrService
	}
	groups := about.KeyGroups
	if len(groups) == 1 {
		return fmt.Errorf("no key in Secret %s decrypts it; it is encrypted for %s%s: %w", a.keys.secret, a.recipients(groups[0]), write(a.keys.secret), class)
	}
	var locked []string
	for i, group := range groups {
		if !a.opened(group) {
			locked = append(locked, fmt.Sprintf("group %d for %s", i+1, a.recipients(group)))
		}
	}
	parts := len(groups) - len(locked)
	if parts >= about.ShamirThreshold {
		return fmt.Errorf("its key groups do not hold different parts of one key: %w", decrypt.ErrDamaged)
	}
	return fmt.Errorf("the keys in Secret %s decrypt %d of its %d key groups, and it takes %d: add a key of another: %s%s: %w",
		a.keys.secret, parts, len(groups), about.ShamirThreshold, strings.Join(locked, "; "), write(a.keys.secret), class)
}

func (a *attempt) opened(group sopslib.KeyGroup) bool {
	for _, key := range group {
		if of := keyservice.KeyFromMasterKey(key); a.open[describe(&of)] {
			return true
		}
	}
	return false
}

// recipients describes the keys of a group for a message.
func (a *attempt) recipients(group sopslib.KeyGroup) string {
	if len(group) == 0 {
		return "no key"
	}
	var all []string
	for _, key := range group {
		of := keyservice.KeyFromMasterKey(key)
		called := describe(&of)
		if why := a.why[called]; why != "" {
			called += " (" + why + ")"
		}
		all = append(all, called)
	}
	return strings.Join(all, ", ")
}
