// Package sops decrypts files with SOPS' own library (github.com/getsops/sops). It uses only the keys that it gets as data, and no keys
// from the environment, files, a home directory or a metadata service. It belongs in a process of its own, see cmd/decrypt, because the
// library links the clients of five clouds.
//
// The package limits what the library does not limit: how deep a file is nested, how many recipients and key groups it has, and how often a
// key is tried. It refuses a value that should be encrypted and is not, and names its place.
package sops

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	sopslib "github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	sopsage "github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/keyservice"

	"github.com/kubeop/kubeop/delivery/decrypt"
)

// Limits of how much work a file may cause.
const (
	// maxDepth is how deep mappings and lists may be nested in an encrypted file.
	maxDepth = 100
	// maxRecipients is how many keys of one kind a file may be encrypted for, in all its key groups together.
	maxRecipients = 64
	// maxGroups is how many key groups a file may have.
	maxGroups = 64
	// maxKeys is how many private keys a Secret may contain, because each is tried on each data key.
	maxKeys = 64
	// maxTries is how many tries all files of one app may cause together: each private key is tried on each encrypted form of a data key
	// that it may fit. An author can put several of these into a file for each recipient.
	maxTries = 5000
	// maxINILines is how many lines an INI file may have, because the library searches all keys of a section for each new one.
	maxINILines = 10_000
	// maxRegex is the maximum length of a regular expression that says which values are encrypted, in bytes. A compiled one takes hundreds
	// of times as much memory.
	maxRegex = 1024
)

// decrypter decrypts the files of one app.
type decrypter struct {
	keys     *keys
	services *services
	tries    int
}

// New returns a Decrypter for the files of one app, with the keys and credentials in the data of the Secret, "namespace/name". It connects to key
// services only through the RoundTripper. The error is a decrypt.ErrKeys if a key is invalid or there is none.
func New(secret string, data map[string][]byte, through http.RoundTripper) (decrypt.Decrypter, error) {
	d, err := newDecrypter(secret, data, through)
	if err != nil {
		return nil, err
	}
	return d.decrypt, nil
}

func newDecrypter(secret string, data map[string][]byte, through http.RoundTripper) (*decrypter, error) {
	keys, err := readKeys(secret, data)
	if err != nil {
		return nil, err
	}
	services, err := readServices(secret, data, through)
	if err != nil {
		return nil, err
	}
	if keys.count() == 0 && services.none() {
		return nil, fmt.Errorf("the Secret %s has no key *.agekey or *.asc, and no credentials of a service (%s)%s: what it should decrypt: %w",
			secret, strings.Join(credentialKeys, ", "), write(secret), decrypt.ErrKeys)
	}
	return &decrypter{keys: keys, services: services}, nil
}

// decrypt is a decrypt.Decrypter. A panic of the library is returned as an error of the file.
func (d *decrypter) decrypt(in decrypt.Format, data []byte) (file decrypt.Decrypted, err error) {
	defer func() {
		if recover() != nil {
			file, err = decrypt.Decrypted{}, errShape
		}
	}()
	return d.decryptFile(in, data)
}

func (d *decrypter) decryptFile(in decrypt.Format, data []byte) (decrypt.Decrypted, error) {
	tree, err := load(in, data)
	if err != nil {
		return decrypt.Decrypted{}, err
	}
	if err := checkMetadata(&tree.Metadata); err != nil {
		return decrypt.Decrypted{}, err
	}
	key, err := d.dataKey(&tree.Metadata)
	if err != nil {
		return decrypt.Decrypted{}, err
	}
	cipher := &recorder{Cipher: aes.NewCipher()}
	if err := decryptTree(tree, key, cipher); err != nil {
		return decrypt.Decrypted{}, err
	}
	plain, err := emit(in, tree.Branches)
	return decrypt.Decrypted{Plain: plain, Secrets: cipher.secrets, Recipients: ageRecipients(&tree.Metadata)}, err
}

// ageRecipients returns the age public keys for which a file is encrypted.
func ageRecipients(about *sopslib.Metadata) (recipients []string) {
	for _, group := range about.KeyGroups {
		for _, key := range group {
			if key, is := key.(*sopsage.MasterKey); is {
				recipients = append(recipients, key.Recipient)
			}
		}
	}
	return recipients
}

// dataKey decrypts the data key of a file with the Secret's keys.
func (d *decrypter) dataKey(about *sopslib.Metadata) ([]byte, error) {
	size := keyBytes
	if len(about.KeyGroups) > 1 {
		size = partBytes
	}
	tried := &attempt{decrypter: d, size: size, why: map[string]string{}, open: map[string]bool{}}
	key, err := about.GetDataKeyWithKeyServices([]keyservice.KeyServiceClient{tried}, sopslib.DefaultDecryptionOrder)
	if err == nil && len(key) == keyBytes {
		return key, nil
	}
	return nil, tried.explain(about)
}

// decryptTree decrypts the values of a file in place and verifies its MAC.
func decryptTree(tree *sopslib.Tree, key []byte, cipher *recorder) error {
	// The library's encryption visits the same values as its decryption, and passes the path of each.
	copied, unencrypted := *tree, &finder{}
	copied.Branches = nil
	for _, branch := range tree.Branches {
		copied.Branches = append(copied.Branches, clone(branch).(sopslib.TreeBranch))
	}
	if _, err := copied.Encrypt(key, unencrypted); err != nil {
		return firstOf(unencrypted.err, errShape)
	}
	mac, err := tree.Decrypt(key, cipher)
	if err != nil {
		return firstOf(cipher.err, errShape)
	}
	secrets := cipher.secrets
	want, err := cipher.Decrypt(tree.Metadata.MessageAuthenticationCode, key, tree.Metadata.LastModified.Format(time.RFC3339))
	cipher.secrets = secrets
	if err != nil {
		return fmt.Errorf("its MAC was changed or moved after it was encrypted: %w", decrypt.ErrDamaged)
	}
	if want != mac || mac == "" {
		return fmt.Errorf("its MAC is not that of its values: something was added, removed or moved after it was encrypted: %w", decrypt.ErrDamaged)
	}
	return nil
}

// clone copies mappings and lists.
func clone(value any) any {
	switch v := value.(type) {
	case sopslib.TreeBranch:
		branch := slices.Clone(v)
		for i := range branch {
			branch[i].Value = clone(branch[i].Value)
		}
		return branch
	case []any:
		list := slices.Clone(v)
		for i := range list {
			list[i] = clone(list[i])
		}
		return list
	}
	return value
}

func firstOf(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
