package sops

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
	sopslib "github.com/getsops/sops/v3"
	sopsage "github.com/getsops/sops/v3/age"
	sopspgp "github.com/getsops/sops/v3/pgp"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubeop/kubeop/delivery/decrypt"
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

// opened returns a decrypted file, and the values that were encrypted in it.
func opened(file decrypt.Decrypted, err error) (plain []byte, secrets []string, failed error) {
	return file.Plain, file.Secrets, err
}

func keysOf(t testing.TB, name string) decrypt.Decrypter {
	t.Helper()
	keys, err := New("sops-keys", map[string][]byte{"README": []byte("not a key"), name: keyData(t, name)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func keyData(t testing.TB, name string) []byte {
	t.Helper()
	pgp, err := testkeys.OpenPGP(testkeys.Third)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"one.agekey": testkeys.Age(testkeys.First), "two.agekey": testkeys.Age(testkeys.Second), "pgp.asc": pgp, "groups.agekey": testkeys.Age(testkeys.First) + "\n" + testkeys.Age(testkeys.Second)}
	return []byte(all[name])
}

func one(name string, data []byte) fs.FS { return fstest.MapFS{name: {Data: data}} }

func TestReadFileDecryptsEachFormat(t *testing.T) {
	tests := map[string]string{
		"secret.yaml": "one.agekey", "types.yaml": "two.agekey", "partial.yaml": "one.agekey", "values.json": "one.agekey",
		"settings.env": "one.agekey", "note.txt": "one.agekey", "blob.bin": "one.agekey", "pgp.yaml": "pgp.asc", "both.yaml": "pgp.asc",
		"config.ini": "one.agekey", "settings.ini": "one.agekey", "shamir.yaml": "groups.agekey", "groups.env": "groups.agekey",
		"groups.ini": "groups.agekey", "groups.json": "groups.agekey",
	}
	for name, key := range tests {
		t.Run(name, func(t *testing.T) {
			files := decrypt.Open(os.DirFS("testdata"), keysOf(t, key))
			got, err := fs.ReadFile(files, name)
			if err != nil {
				t.Fatal(err)
			}
			want := string(read(t, name+".plain"))
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("-sops +kubeop:\n%s", diff)
			}
			if len(files.Secrets()) == 0 {
				t.Error("no value is reported as secret")
			}
		})
	}
}

// TestTheRecipientsOfAFileAreThoseOfAllGroups: all age keys for which it is encrypted. A file that one of them cannot open is not for another key.
func TestTheRecipientsOfAFileAreThoseOfAllGroups(t *testing.T) {
	recipient := regexp.MustCompile("age1[0-9a-z]{58}")
	for name, tc := range map[string]struct {
		key  string
		in   decrypt.Format
		want int
	}{
		"secret.yaml": {"one.agekey", decrypt.YAML, 1}, "both.yaml": {"pgp.asc", decrypt.YAML, 1}, "pgp.yaml": {"pgp.asc", decrypt.YAML, 0},
		"shamir.yaml": {"groups.agekey", decrypt.YAML, 2}, "groups.json": {"groups.agekey", decrypt.JSON, 3},
	} {
		data := read(t, name)
		file, err := keysOf(t, tc.key)(tc.in, data)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Compact(slices.Sorted(slices.Values(recipient.FindAllString(string(data), -1))))
		got := slices.Compact(slices.Sorted(slices.Values(file.Recipients)))
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || len(got) != tc.want {
			t.Errorf("%s: %d recipients, want %d; -in the file +got:\n%s", name, len(got), tc.want, diff)
		}
	}
	two := groupsOf(2, 2)
	two[1] = append(sopslib.KeyGroup{&sopspgp.MasterKey{Fingerprint: "A"}}, two[1]...)
	if got := ageRecipients(&sopslib.Metadata{KeyGroups: two}); len(got) != 4 {
		t.Errorf("two groups of two keys, and one of another kind, are %q", got)
	}
}

func TestDecryptedValuesAreReported(t *testing.T) {
	files := decrypt.Open(os.DirFS("testdata"), keysOf(t, "one.agekey"))
	if _, err := fs.ReadFile(files, "secret.yaml"); err != nil {
		t.Fatal(err)
	}
	want := []string{" of the password", "correct horse battery", "first line\nsecond line\n", "c2VjcmV0LXRva2VuLTEyMzQ="}
	if diff := cmp.Diff(want, files.Secrets()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadFileExplainsWhatItCannotDecrypt(t *testing.T) {
	secret, shamir := string(read(t, "secret.yaml")), string(read(t, "shamir.yaml"))
	password := regexp.MustCompile(`password: (ENC.*)\n`).FindStringSubmatch(secret)[1]
	lines := regexp.MustCompile(`lines: (ENC.*)\n`).FindStringSubmatch(secret)[1]
	many := strings.Repeat("        - enc: x\n          recipient: y\n", 65)
	tests := map[string]struct {
		name, text string
		is         error
		want       []string
	}{
		"another key":           {"other.yaml", "", decrypt.ErrKeys, []string{"no key in Secret sops-keys decrypts it; it is encrypted for age \"age10kskfxlkfarl2vvxj2csrlcu53"}},
		"a key of another kind": {"pgp.yaml", "", decrypt.ErrKeys, []string{`it is encrypted for OpenPGP "4048E57621C38B7477A2C1045FD8B3B00D8705F1"`}},
		"too few key groups":    {"shamir.yaml", "", decrypt.ErrKeys, []string{"the keys in Secret sops-keys decrypt 1 of its 2 key groups, and it takes 2: add a key of another: group 2 for age \"age10kskfx"}},
		"flat key groups":       {"groups.env", "", decrypt.ErrKeys, []string{"decrypt 1 of its 3 key groups, and it takes 2", "group 2 for age \"age10kskfx", "; group 3 for age \"age16hem6"}},
		"a threshold of one":    {"a.yaml", strings.Replace(shamir, "shamir_threshold: 2", "shamir_threshold: 1", 1), decrypt.ErrDamaged, []string{"its shamir_threshold is not from 2 to 2"}},
		"a threshold too high":  {"a.yaml", strings.Replace(shamir, "shamir_threshold: 2", "shamir_threshold: 3", 1), decrypt.ErrDamaged, []string{"its shamir_threshold is not from 2 to 2"}},
		"too many groups":       {"a.yaml", strings.Replace(shamir, "    key_groups:\n", "    key_groups:\n"+strings.Repeat("        - {}\n", 64), 1), decrypt.ErrKeys, []string{"has more than 64 key groups"}},
		"another format":        {"a.yaml", string(read(t, "config.ini")), decrypt.ErrDamaged, []string{"is encrypted with SOPS, but not as a file of its extension"}},
		"a changed INI value":   {"a.ini", strings.Replace(string(read(t, "config.ini")), "data:Aw==", "data:Ag==", 1), decrypt.ErrDamaged, []string{"the value of a.b was changed or moved"}},
		"an added INI section":  {"a.ini", "[x]\ny_unencrypted = z\n" + string(read(t, "config.ini")), decrypt.ErrDamaged, []string{"its MAC is not that of its values"}},
		"two INI sections sops": {"a.ini", "[sops]\nx = y\n" + string(read(t, "config.ini")), decrypt.ErrDamaged, []string{"what SOPS wrote about it, below sops, is wrong: \"Found duplicate sops entry\""}},
		"a long INI file":       {"a.ini", strings.Repeat("\n", maxINILines) + string(read(t, "config.ini")), decrypt.ErrDamaged, []string{"is an INI file of more than 10000 lines"}},
		"a service":             {"a.yaml", strings.Replace(secret, "    age:\n", "    kms:\n        - arn: arn:aws:kms:x\n          created_at: \"2024-01-01T00:00:00Z\"\n          enc: x\n    was:\n", 1), decrypt.ErrKeys, []string{"it is encrypted for AWS KMS \"arn:aws:kms:x\" (it takes sops.aws-kms in the Secret)"}},
		"too many keys":         {"a.yaml", strings.Replace(secret, "    age:\n", "    age:\n"+many, 1), decrypt.ErrKeys, []string{"more than 64 keys of a kind"}},
		"a changed value":       {"a.yaml", strings.Replace(secret, password, "ENC[AES256_GCM,data:AAAA"+password[len("ENC[AES256_GCM,data:AAAA"):], 1), decrypt.ErrDamaged, []string{"the value of stringData.password was changed or moved"}},
		"a moved value":         {"a.yaml", strings.Replace(secret, password, lines, 1), decrypt.ErrDamaged, []string{"the value of stringData.password was changed or moved"}},
		"a plain value":         {"a.yaml", strings.Replace(secret, password, "hunter22-in-the-clear", 1), decrypt.ErrDamaged, []string{"the value of stringData.password is not encrypted, and should be"}},
		"a plain number":        {"a.yaml", strings.Replace(secret, password, "42424242", 1), decrypt.ErrDamaged, []string{"the value of stringData.password is not encrypted, and should be"}},
		"a removed value":       {"a.yaml", regexp.MustCompile(`    password: .*\n`).ReplaceAllString(secret, ""), decrypt.ErrDamaged, []string{"its MAC is not that of its values"}},
		"another name":          {"a.yaml", strings.Replace(secret, "name: db", "name: another", 1), decrypt.ErrDamaged, []string{"its MAC is not that of its values"}},
		"another time":          {"a.yaml", strings.Replace(secret, `lastmodified: "20`, `lastmodified: "19`, 1), decrypt.ErrDamaged, []string{"its MAC was changed or moved"}},
		"no time":               {"a.yaml", strings.Replace(secret, `lastmodified: "20`, `lastmodified: "x`, 1), decrypt.ErrDamaged, []string{"below sops, is wrong: \"parsing time"}},
		"a bad rule":            {"a.yaml", strings.Replace(secret, "^(data|stringData)$", "(", 1), decrypt.ErrDamaged, []string{"its encrypted_regex is none"}},
		"a long rule":           {"a.yaml", strings.Replace(secret, "^(data|stringData)$", strings.Repeat("x", 1025), 1), decrypt.ErrDamaged, []string{"its encrypted_regex has more than 1024 bytes"}},
		"two rules":             {"a.yaml", strings.Replace(secret, "    encrypted_regex", "    encrypted_suffix: x\n    encrypted_regex", 1), decrypt.ErrDamaged, []string{"Cannot use more than one of encrypted_suffix"}},
		"a rule taken away":     {"a.yaml", strings.Replace(secret, "    encrypted_regex", "    x", 1), decrypt.ErrDamaged, []string{"the value of apiVersion is not encrypted, and should be"}},
		"an alias":              {"a.yaml", strings.Replace(secret, "kind: Secret", "kind: &a Secret\nx: *a", 1), decrypt.ErrDamaged, []string{"not as a file of its extension, or was changed"}},
		"too deep":              {"a.json", `{"sops":{"mac":"ENC[AES256_GCM,"},"a":` + strings.Repeat("[", 200_000), decrypt.ErrDamaged, []string{"is encrypted with SOPS, but not as a file"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			data := []byte(tc.text)
			if tc.text == "" {
				data = read(t, tc.name)
			}
			_, err := fs.ReadFile(decrypt.Open(one(tc.name, data), keysOf(t, "one.agekey")), tc.name)
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
					t.Errorf("%v reveals a secret", err)
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
	d, err := newDecrypter("k", map[string][]byte{"a.agekey": []byte(identities.String())}, nil)
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
	about := &sopslib.Metadata{KeyGroups: []sopslib.KeyGroup{{&sopsage.MasterKey{Recipient: "somebody", EncryptedKey: enc.String()}}}}
	if _, err := d.dataKey(about); !errors.Is(err, decrypt.ErrKeys) || !strings.Contains(err.Error(), "keys may be tried 5000 times together") {
		t.Errorf("got %v", err)
	}
	for name, key := range map[string]string{"secret.yaml": "one.agekey", "pgp.yaml": "pgp.asc"} {
		d, err := newDecrypter("k", map[string][]byte{key: keyData(t, key)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		d.tries = maxTries
		if _, err := d.decrypt(decrypt.YAML, read(t, name)); err == nil || !strings.Contains(err.Error(), "5000 times together") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestTheLastTryCounts: the try that reaches the limit may decrypt, and if it does not, the message names the recipient and not the limit.
func TestTheLastTryCounts(t *testing.T) {
	for file, want := range map[string]string{"secret.yaml": "", "other.yaml": "no key in Secret k decrypts it; it is encrypted for age"} {
		d, err := newDecrypter("k", map[string][]byte{"one.agekey": keyData(t, "one.agekey")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		d.tries = maxTries - 1
		_, err = d.decrypt(decrypt.YAML, read(t, file))
		if d.tries != maxTries || (err == nil) != (want == "") || err != nil && (!errors.Is(err, decrypt.ErrKeys) || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: after %d tries: %v, want %q", file, d.tries, err, want)
		}
	}
}

func TestReadKeysExplainsKeysThatItCannotUse(t *testing.T) {
	public := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), 40))
	for name, tc := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"nothing":                  {nil, "the Secret k has no key *.agekey or *.asc, and no credentials of a service (sops.aws-kms, sops.gcp-kms, sops.azure-kv, sops.vault-token)"},
		"other names":              {map[string][]byte{"identity": []byte(testkeys.Age(testkeys.First))}, "the Secret k has no key *.agekey or *.asc, and no credentials of a service (sops.aws-kms, sops.gcp-kms, sops.azure-kv, sops.vault-token)"},
		"no age identity":          {map[string][]byte{"a.agekey": []byte(strings.Replace(testkeys.Age(testkeys.First), "-1", "-1BROKEN", 1))}, "key a.agekey of Secret k holds something else than age identities"},
		"many keys":                {map[string][]byte{"a.agekey": []byte(strings.Repeat(testkeys.Age(testkeys.First)+"\n", 65))}, "the Secret k holds 65 keys; it may hold 64"},
		"an age plugin":            {map[string][]byte{"a.agekey": []byte("AGE-PLUGIN-TPM-1QGPSCHAHT5")}, "key a.agekey of Secret k holds something else than age identities"},
		"no AWS key":               {map[string][]byte{"sops.aws-kms": []byte("aws_access_key_id: A")}, "key sops.aws-kms of Secret k holds something else than aws_access_key_id, aws_secret_access_key"},
		"an AWS profile":           {map[string][]byte{"sops.aws-kms": []byte("[default]\nrole_arn = x")}, "key sops.aws-kms of Secret k holds something else"},
		"a GCP user":               {map[string][]byte{"sops.gcp-kms": []byte(`{"type": "external_account", "credential_source": {"file": "/var/run/secrets/token"}}`)}, "key sops.gcp-kms of Secret k holds something else than the key of a service account"},
		"a managed identity":       {map[string][]byte{"sops.azure-kv": []byte("clientId: x")}, "key sops.azure-kv of Secret k holds something else than tenantId, clientId and one of clientSecret"},
		"an authority without TLS": {map[string][]byte{"sops.azure-kv": []byte("authorityHost: http://x\ntenantId: a\nclientId: b\nclientSecret: c")}, "key sops.azure-kv of Secret k names an authorityHost that does not begin with https://"},
		"two Vault tokens":         {map[string][]byte{"sops.vault-token": []byte("a\nb")}, "key sops.vault-token of Secret k holds no token of Vault"},
		"no OpenPGP key":           {map[string][]byte{"a.asc": []byte(public)}, "key a.asc of Secret k holds no armored OpenPGP key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New("k", tc.data, nil)
			if !errors.Is(err, decrypt.ErrKeys) || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
			if strings.Contains(err.Error(), "BROKEN") {
				t.Errorf("%v reveals a key", err)
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
		_, err := fs.ReadFile(decrypt.Open(one(name, data), keys), name)
		if err != nil && (strings.Contains(err.Error(), "correct horse") || strings.Contains(err.Error(), "plain words")) {
			t.Errorf("%v reveals a secret", err)
		}
	})
}

// TestAnINIFileThatIsEncryptedAsOneValueIsRead although it has the extension of another format, as "sops encrypt --input-type binary" makes it.
func TestAnINIFileThatIsEncryptedAsOneValueIsRead(t *testing.T) {
	got, err := fs.ReadFile(decrypt.Open(one("note.ini", read(t, "note.txt")), keysOf(t, "one.agekey")), "note.ini")
	if err != nil || string(got) != string(read(t, "note.txt.plain")) {
		t.Errorf("got %q, %v", got, err)
	}
}

// BenchmarkReadFile is what a push with a secret waits for.
func BenchmarkReadFile(b *testing.B) {
	for name, key := range map[string]string{"secret.yaml": "one.agekey", "shamir.yaml": "groups.agekey", "settings.ini": "one.agekey"} {
		keys := keysOf(b, key)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := fs.ReadFile(decrypt.Open(os.DirFS("testdata"), keys), name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
