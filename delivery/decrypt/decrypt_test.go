package decrypt

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"filippo.io/age"
	agearmor "filippo.io/age/armor"
	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/kubeop/kubeop/internal/testkeys"
)

// The files in testdata were encrypted by SOPS 3.13.3 for the keys of testkeys; *.plain is what its own decryption wrote.

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func keysOf(t testing.TB, name string) *Keys {
	t.Helper()
	pgp, err := testkeys.OpenPGP(testkeys.Third)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"one.agekey": testkeys.Age(testkeys.First), "two.agekey": testkeys.Age(testkeys.Second), "pgp.asc": pgp, "groups.agekey": testkeys.Age(testkeys.First) + "\n" + testkeys.Age(testkeys.Second)}
	keys, err := ReadKeys("sops-keys", map[string][]byte{"README": []byte("not a key"), name: []byte(all[name])})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func one(name string, data []byte) fs.FS { return fstest.MapFS{name: {Data: data}} }

func TestReadFile(t *testing.T) {
	tests := map[string]string{
		"secret.yaml": "one.agekey", "types.yaml": "two.agekey", "partial.yaml": "one.agekey", "values.json": "one.agekey",
		"settings.env": "one.agekey", "note.txt": "one.agekey", "blob.bin": "one.agekey", "pgp.yaml": "pgp.asc", "both.yaml": "pgp.asc",
		"config.ini": "one.agekey", "settings.ini": "one.agekey", "shamir.yaml": "groups.agekey", "groups.env": "groups.agekey",
		"groups.ini": "groups.agekey", "groups.json": "groups.agekey",
	}
	for name, key := range tests {
		t.Run(name, func(t *testing.T) {
			files := Open(os.DirFS("testdata"), keysOf(t, key))
			got, err := fs.ReadFile(files, name)
			if err != nil {
				t.Fatal(err)
			}
			want := withoutComments(string(read(t, name+".plain")))
			if diff := cmp.Diff(want, string(got)); diff != "" && !strings.HasSuffix(name, ".yaml") {
				t.Errorf("-sops +kubeop:\n%s", diff)
			}
			if diff := cmp.Diff(parsed(t, want), parsed(t, string(got))); diff != "" && strings.HasSuffix(name, ".yaml") {
				t.Errorf("-sops +kubeop:\n%s", diff)
			}
			if len(files.Secrets()) == 0 {
				t.Error("no value is told to be secret")
			}
		})
	}
}

func withoutComments(text string) string {
	return regexp.MustCompile(`(?m)^[^\S\n]*[#;].*\n`).ReplaceAllString(text, "")
}

func parsed(t *testing.T, text string) []any {
	t.Helper()
	decoder, all := yamlv3.NewDecoder(strings.NewReader(text)), []any(nil)
	for {
		var value any
		if err := decoder.Decode(&value); err != nil {
			return all
		}
		all = append(all, value)
	}
}

func TestSecretsAreTold(t *testing.T) {
	files := Open(os.DirFS("testdata"), keysOf(t, "one.agekey"))
	if _, err := fs.ReadFile(files, "secret.yaml"); err != nil {
		t.Fatal(err)
	}
	want := []string{"correct horse battery", "first line\nsecond line\n", "c2VjcmV0LXRva2VuLTEyMzQ="}
	if diff := cmp.Diff(want, files.Secrets()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatIsNotEncryptedIsLeftAlone(t *testing.T) {
	for name, text := range map[string]string{
		"a.yaml": "kind: ConfigMap\ndata: {a: 'sops writes ENC[AES256_GCM,data:…]'}\n", "b.json": "{", "c.txt": "sops: ENC[AES256_GCM,",
		"d.yaml": "data:\n  file: |\n    sops: ENC[AES256_GCM,\n   - [\n", "e.env": "sops=ENC[AES256_GCM,\n", "f.bin": "\x00",
	} {
		for _, keys := range []*Keys{nil, {}} {
			got, err := fs.ReadFile(Open(one(name, []byte(text)), keys), name)
			if name == "c.txt" {
				if !errors.Is(err, ErrKeys) && !errors.Is(err, ErrDamaged) {
					t.Errorf("%s: got %v", name, err)
				}
				continue
			}
			if err != nil || string(got) != text {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
		}
	}
}

func TestWithoutKeys(t *testing.T) {
	for _, name := range []string{"secret.yaml", "values.json", "settings.env", "note.txt", "blob.bin", "pgp.yaml", "shamir.yaml", "config.ini"} {
		_, err := fs.ReadFile(Open(os.DirFS("testdata"), nil), name)
		const want = "is encrypted with SOPS, and the app has no decryption: set decryption.secretRef: cannot be decrypted"
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestManifest(t *testing.T) {
	files := Open(nil, keysOf(t, "one.agekey"))
	got, err := files.Manifest("manifests[0]", read(t, "values.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(read(t, "values.json.plain")), string(got)); diff != "" {
		t.Errorf("-sops +kubeop:\n%s", diff)
	}
	_, err = Open(nil, nil).Manifest("manifests[0]", read(t, "values.json"))
	if err == nil || !strings.HasPrefix(err.Error(), "manifests[0]: is encrypted with SOPS") {
		t.Errorf("got %v", err)
	}
}

func TestReadFileErrors(t *testing.T) {
	secret, shamir := string(read(t, "secret.yaml")), string(read(t, "shamir.yaml"))
	password := regexp.MustCompile(`password: (ENC.*)\n`).FindStringSubmatch(secret)[1]
	lines := regexp.MustCompile(`lines: (ENC.*)\n`).FindStringSubmatch(secret)[1]
	many := strings.Repeat("        - enc: x\n          recipient: y\n", 65)
	tests := map[string]struct {
		name, text string
		is         error
		want       []string
	}{
		"another key":           {"other.yaml", "", ErrKeys, []string{"no key in Secret sops-keys decrypts it; it is encrypted for age \"age10kskfxlkfarl2vvxj2csrlcu53"}},
		"a key of another kind": {"pgp.yaml", "", ErrKeys, []string{`it is encrypted for OpenPGP "4048E57621C38B7477A2C1045FD8B3B00D8705F1"`}},
		"too few key groups":    {"shamir.yaml", "", ErrKeys, []string{"the keys in Secret sops-keys decrypt 1 of its 2 key groups, and it takes 2: add a key of another: group 2 for age \"age10kskfx"}},
		"flat key groups":       {"groups.env", "", ErrKeys, []string{"decrypt 1 of its 3 key groups, and it takes 2", "group 2 for age \"age10kskfx", "; group 3 for age \"age16hem6"}},
		"a threshold of one":    {"a.yaml", strings.Replace(shamir, "shamir_threshold: 2", "shamir_threshold: 1", 1), ErrDamaged, []string{"its shamir_threshold is not from 2 to 2"}},
		"a threshold too high":  {"a.yaml", strings.Replace(shamir, "shamir_threshold: 2", "shamir_threshold: 3", 1), ErrDamaged, []string{"its shamir_threshold is not from 2 to 2"}},
		"too many groups":       {"a.yaml", strings.Replace(shamir, "    key_groups:\n", "    key_groups:\n"+strings.Repeat("        - {}\n", 64), 1), ErrKeys, []string{"has more than 64 key groups"}},
		"another format":        {"a.yaml", string(read(t, "config.ini")), ErrDamaged, []string{"is encrypted with SOPS, but not as a file of its extension"}},
		"a changed INI value":   {"a.ini", strings.Replace(string(read(t, "config.ini")), "data:Aw==", "data:Ag==", 1), ErrDamaged, []string{"the value of a.b was changed or moved"}},
		"an added INI section":  {"a.ini", "[x]\ny_unencrypted = z\n" + string(read(t, "config.ini")), ErrDamaged, []string{"its MAC is not that of its values"}},
		"two INI sections sops": {"a.ini", "[sops]\nx = y\n" + string(read(t, "config.ini")), ErrDamaged, []string{"is encrypted with SOPS, but not as a file of its extension"}},
		"a long INI file":       {"a.ini", strings.Repeat("\n", maxINILines) + string(read(t, "config.ini")), ErrDamaged, []string{"is an INI file of more than 10000 lines"}},
		"a service":             {"a.yaml", strings.Replace(secret, "    age:\n", "    kms:\n        - arn: arn:aws:kms:x\n          enc: x\n    was:\n", 1), ErrKeys, []string{"it is encrypted for kms (which is not supported)"}},
		"too many keys":         {"a.yaml", strings.Replace(secret, "    age:\n", "    age:\n"+many, 1), ErrKeys, []string{"more than 64 keys of a kind"}},
		"a changed value":       {"a.yaml", strings.Replace(secret, password, "ENC[AES256_GCM,data:AAAA"+password[len("ENC[AES256_GCM,data:AAAA"):], 1), ErrDamaged, []string{"the value of stringData.password was changed or moved"}},
		"a moved value":         {"a.yaml", strings.Replace(secret, password, lines, 1), ErrDamaged, []string{"the value of stringData.password was changed or moved"}},
		"a plain value":         {"a.yaml", strings.Replace(secret, password, "hunter22-in-the-clear", 1), ErrDamaged, []string{"the value of stringData.password is not encrypted, and should be"}},
		"a plain number":        {"a.yaml", strings.Replace(secret, password, "42424242", 1), ErrDamaged, []string{"the value of stringData.password is not encrypted, and should be"}},
		"a removed value":       {"a.yaml", regexp.MustCompile(`    password: .*\n`).ReplaceAllString(secret, ""), ErrDamaged, []string{"its MAC is not that of its values"}},
		"another name":          {"a.yaml", strings.Replace(secret, "name: db", "name: another", 1), ErrDamaged, []string{"its MAC is not that of its values"}},
		"another time":          {"a.yaml", strings.Replace(secret, `lastmodified: "20`, `lastmodified: "19`, 1), ErrDamaged, []string{"its MAC was changed or moved"}},
		"no time":               {"a.yaml", strings.Replace(secret, `lastmodified: "20`, `lastmodified: "x`, 1), ErrDamaged, []string{"its lastmodified is no time"}},
		"a bad rule":            {"a.yaml", strings.Replace(secret, "^(data|stringData)$", "(", 1), ErrDamaged, []string{"its encrypted_regex is none"}},
		"a long rule":           {"a.yaml", strings.Replace(secret, "^(data|stringData)$", strings.Repeat("x", 1025), 1), ErrDamaged, []string{"its encrypted_regex has more than 1024 bytes"}},
		"two rules":             {"a.yaml", strings.Replace(secret, "    encrypted_regex", "    encrypted_suffix: x\n    encrypted_regex", 1), ErrDamaged, []string{"more than one rule"}},
		"a rule of comments":    {"a.yaml", strings.Replace(secret, "encrypted_regex", "encrypted_comment_regex", 1), ErrDamaged, []string{"comments that say what is encrypted are not supported"}},
		"a rule taken away":     {"a.yaml", strings.Replace(secret, "    encrypted_regex", "    x", 1), ErrDamaged, []string{"the value of apiVersion is not encrypted, and should be"}},
		"an alias":              {"a.yaml", strings.Replace(secret, "kind: Secret", "kind: &a Secret\nx: *a", 1), ErrDamaged, []string{"not as a file of its extension, or was changed"}},
		"too deep":              {"a.json", `{"sops":{"mac":"` + opening + `"},"a":` + strings.Repeat("[", 200_000), ErrDamaged, []string{"is encrypted with SOPS, but not as a file"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			data := []byte(tc.text)
			if tc.text == "" {
				data = read(t, tc.name)
			}
			_, err := fs.ReadFile(Open(one(tc.name, data), keysOf(t, "one.agekey")), tc.name)
			if !errors.Is(err, tc.is) {
				t.Fatalf("got %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			for _, secret := range []string{"correct horse", "second line", "AGE-SECRET", "42424242", "in-the-clear"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%v tells a secret", err)
				}
			}
		})
	}
}

// TestTriesAreBounded reads a file for one recipient, as it says, whose data key is encrypted a hundred times for nobody.
func TestTriesAreBounded(t *testing.T) {
	var identities strings.Builder
	for range 60 {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		identities.WriteString(identity.String() + "\n")
	}
	keys, err := ReadKeys("k", map[string][]byte{"a.agekey": []byte(identities.String())})
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	var enc bytes.Buffer
	armored := agearmor.NewWriter(&enc)
	out, err := age.Encrypt(armored, slices.Repeat([]age.Recipient{nobody.Recipient()}, 100)...)
	if err = errors.Join(err, out.Close(), armored.Close()); err != nil {
		t.Fatal(err)
	}
	about := &metadata{group: group{Age: []ageRecipient{{Recipient: "somebody", Enc: enc.String()}}}}
	files := Open(nil, keys)
	if _, err := files.dataKey(about); !errors.Is(err, ErrKeys) || !strings.Contains(err.Error(), "keys may be tried 5000 times together") {
		t.Errorf("got %v", err)
	}
	for name, key := range map[string]string{"secret.yaml": "one.agekey", "pgp.yaml": "pgp.asc"} {
		files := Open(os.DirFS("testdata"), keysOf(t, key))
		files.tries = maxTries
		if _, err := fs.ReadFile(files, name); err == nil || !strings.Contains(err.Error(), "5000 times together") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestReadKeysErrors(t *testing.T) {
	public := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), 40))
	for name, tc := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"nothing":         {nil, "the Secret k has no key *.agekey or *.asc"},
		"other names":     {map[string][]byte{"identity": []byte(testkeys.Age(testkeys.First))}, "the Secret k has no key *.agekey or *.asc"},
		"no age identity": {map[string][]byte{"a.agekey": []byte(strings.Replace(testkeys.Age(testkeys.First), "-1", "-1BROKEN", 1))}, "key a.agekey of Secret k holds something else than age identities"},
		"many keys":       {map[string][]byte{"a.agekey": []byte(strings.Repeat(testkeys.Age(testkeys.First)+"\n", 65))}, "the Secret k holds 65 keys; it may hold 64"},
		"an age plugin":   {map[string][]byte{"a.agekey": []byte("AGE-PLUGIN-TPM-1QGPSCHAHT5")}, "key a.agekey of Secret k holds something else than age identities"},
		"no OpenPGP key":  {map[string][]byte{"a.asc": []byte(public)}, "key a.asc of Secret k holds no armored OpenPGP key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadKeys("k", tc.data)
			if !errors.Is(err, ErrKeys) || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
			if strings.Contains(err.Error(), "BROKEN") {
				t.Errorf("%v tells a key", err)
			}
		})
	}
}

func FuzzReadFile(f *testing.F) {
	for _, name := range []string{"secret.yaml", "types.yaml", "values.json", "settings.env", "note.txt", "pgp.yaml", "shamir.yaml", "groups.env", "groups.ini"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(name, data)
	}
	keys := keysOf(f, "groups.agekey")
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if !fs.ValidPath(name) || name == "." {
			t.Skip("fstest.MapFS has no such names")
		}
		_, err := fs.ReadFile(Open(one(name, data), keys), name)
		if err != nil && (strings.Contains(err.Error(), "correct horse") || strings.Contains(err.Error(), "plain words")) {
			t.Errorf("%v tells a secret", err)
		}
	})
}
