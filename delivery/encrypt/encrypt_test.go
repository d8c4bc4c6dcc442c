package encrypt

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/decrypt/sops"
	"github.com/kubeop/kubeop/internal/testkeys"
)

func recipient(t *testing.T, words string) string {
	t.Helper()
	identity, err := age.ParseX25519Identity(testkeys.Age(words))
	if err != nil {
		t.Fatal(err)
	}
	return identity.Recipient().String()
}

// TestTheOperatorDecryptsIt with each of the keys, as it decrypts files of apps.
func TestTheOperatorDecryptsIt(t *testing.T) {
	long := strings.Repeat("a line of a certificate: with \"quotes\" and ü\n", 100)
	secret := Secret{Name: "database", Type: "kubernetes.io/basic-auth", Data: map[string][]byte{
		"password": []byte("hunter2"), "true": []byte("yes"), "123": []byte("0123"), "empty": nil, "tls.crt": []byte(long), "blob": {0, 1, 0xff, 0xfe}, "nul": []byte("a\x00b"), "latin": {'a', 0xfc}, "enc": []byte("ENC[AES256_GCM,data:no]"),
	}}
	text, err := secret.Encrypted([]string{recipient(t, testkeys.First), recipient(t, testkeys.Second)}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, plain := range []string{"hunter2", "certificate", "0123"} {
		if strings.Contains(string(text), plain) {
			t.Errorf("the file has the value %s in the clear:\n%s", plain, text)
		}
	}
	for _, words := range []string{testkeys.First, testkeys.Second} {
		got := opened(t, text, words)
		values := map[string][]byte{}
		for name, value := range got.StringData {
			values[name] = []byte(value)
		}
		for name, value := range got.Data {
			values[name] = value
		}
		if binary := slices.Sorted(maps.Keys(got.Data)); !slices.Equal(binary, []string{"blob", "latin", "nul"}) {
			t.Errorf("%v are data; only what is no text is", binary)
		}
		want := map[string][]byte{}
		for name, value := range secret.Data {
			want[name] = append([]byte{}, value...)
		}
		if diff := cmp.Diff(want, values); diff != "" || got.Name != "database" || got.Type != corev1.SecretTypeBasicAuth || got.Kind != "Secret" {
			t.Errorf("-want +got of %s %s:\n%s", got.Kind, got.Name, diff)
		}
	}
}

// TestAFieldWithoutValuesIsNotWritten: an empty one would be null, which no Secret has.
func TestAFieldWithoutValuesIsNotWritten(t *testing.T) {
	for field, value := range map[string][]byte{"data": []byte("text"), "stringData": {0xff}} {
		secret := Secret{Name: "a", Data: map[string][]byte{"a": value}}
		text, err := secret.Encrypted([]string{recipient(t, testkeys.First)}, time.Now())
		if err != nil || strings.Contains(string(text), "\n"+field+":") {
			t.Errorf("%s: %v\n%s", field, err, text)
		}
	}
}

func opened(t *testing.T, text []byte, words string) *corev1.Secret {
	t.Helper()
	keys, err := sops.New("sops", map[string][]byte{"age.agekey": []byte(testkeys.Age(words))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := fs.ReadFile(decrypt.Open(fstest.MapFS{"secret.yaml": {Data: text}}, keys), "secret.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	secret := &corev1.Secret{}
	if err := yaml.UnmarshalStrict(plain, secret); err != nil {
		t.Fatalf("%v\n%s", err, plain)
	}
	return secret
}

// TestAChangeIsNoticed: the MAC is over the name, too.
func TestAChangeIsNoticed(t *testing.T) {
	secret := Secret{Name: "database", Data: map[string][]byte{"password": []byte("hunter2")}}
	text, err := secret.Encrypted([]string{recipient(t, testkeys.First)}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := sops.New("sops", map[string][]byte{"age.agekey": []byte(testkeys.Age(testkeys.First))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), `"database"`, `"other"`, 1)
	if _, err := fs.ReadFile(decrypt.Open(fstest.MapFS{"a.yaml": {Data: []byte(changed)}}, keys), "a.yaml"); err == nil {
		t.Error("a changed name was not noticed")
	}
}

func TestTheFirstRuleOfAPathNamesTheRecipients(t *testing.T) {
	const rules = "creation_rules:\n- {path_regex: '^projects/shop/', age: 'age1a, age1b'}\n- {path_regex: pgp, pgp: ABC}\n- {path_regex: list, age: [age1c]}\n"
	for path, tc := range map[string]struct {
		rules string
		want  []string
		err   string
	}{
		"projects/shop/a.yaml": {rules, []string{"age1a", "age1b"}, ""},
		"pgp.yaml":             {rules, nil, "creation_rules[1] has keys other than those of age"},
		"list.yaml":            {rules, []string{"age1c"}, ""},
		"other.yaml":           {rules, nil, ""},
		"kms.yaml":             {"creation_rules: [{kms: arn}]", nil, RulesFile + ": creation_rules[0] has keys other than those of age"},
		"gcp.yaml":             {"creation_rules: [{age: age1d, gcp_kms: projects/a}]", nil, "has keys other than those of age"},
		"azure.yaml":           {"creation_rules: [{age: age1d, azure_keyvault: 'https://a'}]", nil, "has keys other than those of age"},
		"vault.yaml":           {"creation_rules: [{age: age1d, hc_vault_transit_uri: 'https://a'}]", nil, "has keys other than those of age"},
		"groups.yaml":          {"creation_rules: [{age: age1d, key_groups: [{age: [age1e]}]}]", nil, "has keys other than those of age"},
		"spaces.yaml":          {"creation_rules: [{age: ' age1d ,, age1e,'}]", []string{"age1d", "age1e"}, ""},
		"first.yaml":           {"creation_rules: [{age: age1d}, {age: age1e}]", []string{"age1d"}, ""},
		"all.yaml":             {"creation_rules: [{age: age1d}]", []string{"age1d"}, ""},
		"broken.yaml":          {"creation_rules: [{path_regex: '('}]", nil, "path_regex"},
		"text.yaml":            {"creation_rules: 3", nil, RulesFile},
	} {
		got, err := Recipients([]byte(tc.rules), path)
		if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v, want %q: %s", path, err, tc.err, diff)
		}
	}
	text, err := (&Secret{Name: "a"}).Encrypted([]string{recipient(t, testkeys.First)}, time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("CET", 3600)))
	if want := "\n    lastmodified: \"2026-03-01T12:00:00Z\"\n"; err != nil || !strings.Contains(string(text), want) || strings.Contains(string(text), "\ntype:") {
		t.Errorf("%v, without %q or with a type:\n%s", err, want, text)
	}
	if _, err := (&Secret{Name: "a"}).Encrypted([]string{"age1wrong"}, time.Now()); err == nil || !strings.Contains(err.Error(), `"age1wrong" is no age recipient`) {
		t.Errorf("got %v", err)
	}
}
