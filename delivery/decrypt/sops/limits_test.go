package sops

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	sopslib "github.com/getsops/sops/v3"
	sopsage "github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/keyservice"
	"github.com/getsops/sops/v3/logging"
	sopspgp "github.com/getsops/sops/v3/pgp"
	"github.com/getsops/sops/v3/stores/json"
	"github.com/getsops/sops/v3/stores/yaml"

	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/internal/testkeys"
)

// groupsOf are as many key groups, each for as many age keys.
func groupsOf(groups, recipients int) []sopslib.KeyGroup {
	var all []sopslib.KeyGroup
	for range groups {
		var group sopslib.KeyGroup
		for range recipients {
			group = append(group, &sopsage.MasterKey{Recipient: "age1"})
		}
		all = append(all, group)
	}
	return all
}

func TestMetadataBeyondTheLimitsIsRefused(t *testing.T) {
	mixed := append(groupsOf(1, maxRecipients)[0], &sopspgp.MasterKey{Fingerprint: "A"})
	rule := strings.Repeat("x", maxRegex)
	for name, tc := range map[string]struct {
		about     sopslib.Metadata
		threshold int
		is        error
		says      string
	}{
		"one group":               {sopslib.Metadata{KeyGroups: groupsOf(1, 1)}, 1, nil, ""},
		"as many groups as may":   {sopslib.Metadata{KeyGroups: groupsOf(maxGroups, 1)}, maxGroups, nil, ""},
		"a group more":            {sopslib.Metadata{KeyGroups: groupsOf(maxGroups+1, 0)}, 0, decrypt.ErrKeys, "has more than 64 key groups"},
		"as many keys as may":     {sopslib.Metadata{KeyGroups: groupsOf(2, maxRecipients/2)}, 2, nil, ""},
		"a key more":              {sopslib.Metadata{KeyGroups: append(groupsOf(1, maxRecipients), groupsOf(1, 1)...)}, 0, decrypt.ErrKeys, "more than 64 keys of a kind"},
		"another kind of key":     {sopslib.Metadata{KeyGroups: []sopslib.KeyGroup{mixed}}, 1, nil, ""},
		"two of three groups":     {sopslib.Metadata{KeyGroups: groupsOf(3, 1), ShamirThreshold: 2}, 2, nil, ""},
		"three of three groups":   {sopslib.Metadata{KeyGroups: groupsOf(3, 1), ShamirThreshold: 3}, 3, nil, ""},
		"four of three groups":    {sopslib.Metadata{KeyGroups: groupsOf(3, 1), ShamirThreshold: 4}, 4, decrypt.ErrDamaged, "shamir_threshold is not from 2 to 3"},
		"one of three groups":     {sopslib.Metadata{KeyGroups: groupsOf(3, 1), ShamirThreshold: 1}, 1, decrypt.ErrDamaged, "shamir_threshold is not from 2 to 3"},
		"a rule of the limit":     {sopslib.Metadata{EncryptedRegex: rule, UnencryptedRegex: rule, EncryptedCommentRegex: rule, UnencryptedCommentRegex: rule}, 0, nil, ""},
		"a long rule":             {sopslib.Metadata{UnencryptedRegex: rule + "x"}, 0, decrypt.ErrDamaged, "its unencrypted_regex has more than 1024 bytes"},
		"a long rule of comments": {sopslib.Metadata{EncryptedCommentRegex: rule + "x"}, 0, decrypt.ErrDamaged, "its encrypted_comment_regex has more than 1024 bytes"},
		"no rule of comments":     {sopslib.Metadata{UnencryptedCommentRegex: "("}, 0, decrypt.ErrDamaged, "its unencrypted_comment_regex is none"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkMetadata(&tc.about)
			if !errors.Is(err, tc.is) || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if tc.about.ShamirThreshold != tc.threshold {
				t.Errorf("it takes %d groups, want %d", tc.about.ShamirThreshold, tc.threshold)
			}
		})
	}
}

func TestTooManyKeysAndLinesAreRefused(t *testing.T) {
	if _, err := New("k", map[string][]byte{"a.agekey": []byte(strings.Repeat(testkeys.Age(testkeys.First)+"\n", maxKeys))}, nil); err != nil {
		t.Errorf("as many keys as may be: %v", err)
	}
	for lines, want := range map[int]error{maxINILines: nil, maxINILines + 1: decrypt.ErrDamaged} {
		if err := fewLines([]byte(strings.Repeat("\n", lines))); !errors.Is(err, want) {
			t.Errorf("an INI file of %d lines: %v, want %v", lines, err, want)
		}
	}
	// Braces in a text are no nesting, nor are those behind an escaped quote.
	for _, text := range []string{`{"a":"` + strings.Repeat("[", maxDepth+1) + `"}`, `{"a":"\"` + strings.Repeat("{", maxDepth+1) + `"}`, strings.Repeat("[]", maxDepth+1)} {
		if err := shallowJSON([]byte(text)); err != nil {
			t.Errorf("%.10s: %v", text, err)
		}
	}
	if err := plainYAML([]byte("a: b\n---\n- &x c\n- *x\n")); !errors.Is(err, errShape) {
		t.Errorf("an alias in the second document: %v", err)
	}
	for _, kind := range []struct {
		name    string
		decrypt func(*keys, string, func(int) bool) ([]byte, error)
	}{{"age", (*keys).age}, {"OpenPGP", (*keys).pgp}} {
		all, err := readKeys("k", map[string][]byte{"one.agekey": keyData(t, "one.agekey"), "pgp.asc": keyData(t, "pgp.asc")})
		if err != nil {
			t.Fatal(err)
		}
		for name, k := range map[string]*keys{"without keys": {}, "with keys": all} {
			if _, err := kind.decrypt(k, strings.Repeat("x", maxEncBytes+1), func(int) bool { return true }); !errors.Is(err, errNone) {
				t.Errorf("%s, %s: a data key that is too long: %v", kind.name, name, err)
			}
		}
	}
}

// TestAPanicIsAnErrorOfTheFile, and nothing of what was decrypted is returned.
func TestAPanicIsAnErrorOfTheFile(t *testing.T) {
	file, err := (&decrypter{}).decrypt(decrypt.YAML, read(t, "secret.yaml"))
	if !errors.Is(err, decrypt.ErrDamaged) || file.Plain != nil || file.Secrets != nil || file.Recipients != nil {
		t.Errorf("got %q, %v", file, err)
	}
}

// TestTheKeysOfASecretDecryptTheirPartsOfAKey: of how many groups of a file.
func TestTheKeysOfASecretDecryptTheirPartsOfAKey(t *testing.T) {
	split, err := splitKey()
	if err != nil {
		t.Fatal(err)
	}
	secret := map[string][]byte{}
	holding := func(part []byte) sopslib.KeyGroup {
		t.Helper()
		own, key := identity(t)
		secret[fmt.Sprint(len(secret), ".agekey")] = own["a.agekey"]
		if err := key.Encrypt(part); err != nil {
			t.Fatal(err)
		}
		return sopslib.KeyGroup{key}
	}
	short := append([]byte{}, split[1][:keyBytes]...)
	for name, tc := range map[string]struct {
		groups []sopslib.KeyGroup
		is     error
		says   string
	}{
		"two parts":              {[]sopslib.KeyGroup{holding(split[0]), holding(split[1])}, nil, ""},
		"the same part twice":    {[]sopslib.KeyGroup{holding(split[0]), holding(split[0])}, decrypt.ErrDamaged, "its key groups do not hold different parts of one key"},
		"a group without a key":  {[]sopslib.KeyGroup{{}, holding(split[1])}, decrypt.ErrKeys, "decrypt 1 of its 2 key groups, and it takes 2: add a key of another: group 1 for no key"},
		"of which one is none":   {[]sopslib.KeyGroup{holding(split[0]), holding(nil)}, decrypt.ErrKeys, "decrypt 1 of its 2 key groups, and it takes 2: add a key of another: group 2 for age"},
		"of which one is short":  {[]sopslib.KeyGroup{holding(split[0]), holding(short)}, decrypt.ErrKeys, "decrypt 1 of its 2 key groups, and it takes 2: add a key of another: group 2 for age"},
		"one that is no whole":   {[]sopslib.KeyGroup{holding(split[0])}, decrypt.ErrKeys, "no key in Secret keys decrypts it; it is encrypted for age"},
		"one that is less still": {[]sopslib.KeyGroup{holding([]byte("short"))}, decrypt.ErrKeys, "no key in Secret keys decrypts it; it is encrypted for age"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := newDecrypter("keys", secret, nil)
			if err != nil {
				t.Fatal(err)
			}
			key, err := d.dataKey(&sopslib.Metadata{KeyGroups: tc.groups, ShamirThreshold: len(tc.groups)})
			if !errors.Is(err, tc.is) || err != nil && !strings.Contains(err.Error(), tc.says) || (err == nil) != (string(key) == string(dataKey)) {
				t.Errorf("got %q, %v, want %v, %q", key, err, tc.is, tc.says)
			}
		})
	}
}

func TestABinaryFileHasText(t *testing.T) {
	secret, master := identity(t)
	d, err := New("k", secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	store := json.NewStore(&config.JSONStoreConfig{})
	if plain, _, err := opened(d(decrypt.Binary, sealed(t, store, `{"data": "text"}`, nil, master))); err != nil || string(plain) != "text" {
		t.Errorf("got %q, %v", plain, err)
	}
	plain, _, err := opened(d(decrypt.Binary, sealed(t, store, `{"other": "text"}`, nil, master)))
	if !errors.Is(err, decrypt.ErrDamaged) || !strings.Contains(err.Error(), "it has no text data") || plain != nil {
		t.Errorf("got %q, %v", plain, err)
	}
}

// TestOnlyTextsAndNumbersAreSecret: a message with each "true" hidden would be useless.
func TestOnlyTextsAndNumbersAreSecret(t *testing.T) {
	secret, master := identity(t)
	d, err := New("k", secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	data := sealed(t, yaml.NewStore(&config.YAMLStoreConfig{}), "a: true\nb: \"\"\nc: 4711\nd: words\n", nil, master)
	plain, secrets, err := opened(d(decrypt.YAML, data))
	slices.Sort(secrets)
	if err != nil || !slices.Equal(secrets, []string{"4711", "words"}) {
		t.Errorf("of %q the secrets are %q, %v", plain, secrets, err)
	}
}

// TestTheProcessIsIsolated: see TestMain.
func TestTheProcessIsIsolated(t *testing.T) {
	for name, want := range map[string]string{"VAULT_MAX_RETRIES": "0", "AWS_MAX_ATTEMPTS": "1", "HOME": "", "PATH": ""} {
		if got := os.Getenv(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, logger := range logging.Loggers {
		if logger.Out != io.Discard {
			t.Errorf("the library's logger %s writes", name)
		}
	}
}

func TestMessagesNameAKeyByItsKindAndID(t *testing.T) {
	for want, key := range map[string]*keyservice.Key{
		`age "age1"`:                         {KeyType: &keyservice.Key_AgeKey{AgeKey: &keyservice.AgeKey{Recipient: "age1"}}},
		`OpenPGP "ABCD"`:                     {KeyType: &keyservice.Key_PgpKey{PgpKey: &keyservice.PgpKey{Fingerprint: "ABCD"}}},
		`AWS KMS "arn"`:                      {KeyType: &keyservice.Key_KmsKey{KmsKey: &keyservice.KmsKey{Arn: "arn"}}},
		`GCP KMS "id"`:                       {KeyType: &keyservice.Key_GcpKmsKey{GcpKmsKey: &keyservice.GcpKmsKey{ResourceId: "id"}}},
		`Azure Key Vault "https://v/keys/n"`: {KeyType: &keyservice.Key_AzureKeyvaultKey{AzureKeyvaultKey: &keyservice.AzureKeyVaultKey{VaultUrl: "https://v", Name: "n"}}},
		`Vault "https://v/v1/e/keys/k"`:      {KeyType: &keyservice.Key_VaultKey{VaultKey: &keyservice.VaultKey{VaultAddress: "https://v", EnginePath: "e", KeyName: "k"}}},
		`Huawei Cloud KMS "h"`:               {KeyType: &keyservice.Key_HckmsKey{HckmsKey: &keyservice.HckmsKey{KeyId: "h"}}},
		"a key of an unknown kind":           {},
	} {
		if got := describe(key); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
