package sops

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"filippo.io/age"
	sopslib "github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	sopsage "github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/config"
	sopskeys "github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/stores/yaml"

	"github.com/kubeop/kubeop/delivery/decrypt"
)

// dataKey is that of the files of these tests.
var dataKey = bytes.Repeat([]byte("data key"), 4)

// sealed is a file that SOPS' library encrypts for the master keys. set changes what SOPS writes about it.
func sealed(t testing.TB, store sopslib.Store, text string, set func(*sopslib.Metadata), masters ...sopskeys.MasterKey) []byte {
	t.Helper()
	branches, err := store.LoadPlainFile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	tree := sopslib.Tree{Branches: branches, Metadata: sopslib.Metadata{KeyGroups: []sopslib.KeyGroup{masters}, Version: "3.13.3", LastModified: time.Unix(1.7e9, 0).UTC()}}
	if set != nil {
		set(&tree.Metadata)
	}
	for _, group := range tree.Metadata.KeyGroups {
		for _, master := range group {
			if err := master.EncryptIfNeeded(dataKey); err != nil {
				t.Fatal(err)
			}
		}
	}
	cipher := aes.NewCipher()
	mac, err := tree.Encrypt(dataKey, cipher)
	if err == nil {
		tree.Metadata.MessageAuthenticationCode, err = cipher.Encrypt(mac, dataKey, tree.Metadata.LastModified.Format(time.RFC3339))
	}
	if err != nil {
		t.Fatal(err)
	}
	data, err := store.EmitEncryptedFile(tree)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// identity is a new age key, for a Secret and as a master key.
func identity(t testing.TB) (map[string][]byte, sopskeys.MasterKey) {
	t.Helper()
	is, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	master, err := sopsage.MasterKeyFromRecipient(is.Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"a.agekey": []byte(is.String())}, master
}

// TestManyValuesOfJSONAreWrittenAtOnce: what the library would write again for each value is written once.
func TestManyValuesOfJSONAreWrittenAtOnce(t *testing.T) {
	branch := make(sopslib.TreeBranch, 0, 100_000)
	for i := range 100_000 {
		branch = append(branch, sopslib.TreeItem{Key: fmt.Sprint("k", i), Value: []any{i, sopslib.Comment{Value: "no value"}}})
	}
	began := time.Now()
	plain, err := emit(decrypt.JSON, sopslib.TreeBranches{branch})
	if took := time.Since(began); err != nil || took > 5*time.Second || bytes.Count(plain, []byte("\n")) != 300_002 {
		t.Errorf("%d bytes in %s: %v", len(plain), took, err)
	}
}

// TestCommentsMarkEncryptedValues, and stay in what is decrypted.
func TestCommentsMarkEncryptedValues(t *testing.T) {
	secret, master := identity(t)
	const text = "# sops:secret\na: hidden words\nlist:\n    # about b\n    - b\n# nothing\nc: shown\n"
	data := sealed(t, yaml.NewStore(&config.YAMLStoreConfig{}), text, func(m *sopslib.Metadata) { m.EncryptedCommentRegex = "sops:secret" }, master)
	if !bytes.Contains(data, []byte("c: shown")) || bytes.Contains(data, []byte("hidden words")) {
		t.Fatalf("it is encrypted to\n%s", data)
	}
	d, err := New("k", secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, secrets, err := opened(d(decrypt.YAML, data))
	if err != nil || string(plain) != text || !slices.Contains(secrets, "hidden words") {
		t.Errorf("got %q, %q, %v", plain, secrets, err)
	}
}

// TestAnUnencryptedCommentIsNoError: SOPS before 3.8 left comments as they were, in lists too.
func TestAnUnencryptedCommentIsNoError(t *testing.T) {
	secret, master := identity(t)
	data := sealed(t, yaml.NewStore(&config.YAMLStoreConfig{}), "a: one\nlist:\n    - two\n", nil, master)
	data = bytes.Replace(data, []byte("list:\n    - "), []byte("# plain\nlist:\n    # words\n    - "), 1)
	d, err := New("k", secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	if plain, _, err := opened(d(decrypt.YAML, data)); err != nil || string(plain) != "a: one\n# plain\nlist:\n    # words\n    - two\n" {
		t.Errorf("got %q, %v", plain, err)
	}
}
