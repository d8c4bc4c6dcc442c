package decrypt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func one(name string, data []byte) fs.FS { return fstest.MapFS{name: {Data: data}} }

// mac is how the MAC of an encrypted file begins.
const mac = opening + "data:AA==,iv:AA==,tag:AA==,type:str]"

func TestPlainFilesAreNotChanged(t *testing.T) {
	for name, text := range map[string]string{
		"a.yaml": "kind: ConfigMap\ndata: {a: 'sops writes ENC[AES256_GCM,data:…]'}\n", "b.json": "{",
		"d.yaml": "data:\n  file: |\n    sops: ENC[AES256_GCM,\n   - [\n", "e.env": "sops=ENC[AES256_GCM,\n", "f.bin": "\x00",
		"g.yaml": "sops: off\na: " + opening + "\n", "h.yaml": "a: {sops: {mac: '" + mac + "'}}\n", "i.json": `{"a": {"sops": {"mac": "` + mac + `"}}}`,
		"l.yaml": "sops: [\n", "m.json": `"sops": ` + "mac", "n.json": `{"sops": 7, "a": "` + mac + `"}`,
		"j.json": `{"SOPS": {"mac": "` + mac + `"}}`, "k.ini": "[a]\nsops = " + mac + "\n",
	} {
		got, err := fs.ReadFile(Open(one(name, []byte(text)), nil), name)
		if err != nil || string(got) != text {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestAFileThatCannotBeReadIsNotEmpty(t *testing.T) {
	if got, err := fs.ReadFile(Open(one("a.yaml", nil), nil), "b.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestWithoutADecrypterEncryptedFilesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"a.yaml": "a: b\nsops:\n  mac: " + mac + "\n", "b.yml": `{a: b, "sops": {mac: "` + mac + `"}}`, "c.json": `{"a":"b","sops":{"mac":"` + mac + `"}}`,
		"d.env": "a=b\nsops_mac=" + mac + "\n", "e.ini": "[a]\nb = c\n[sops]\nmac = " + mac + "\n", "f.txt": `{"data": "x", "sops": {"mac": "` + mac + `"}}`,
		"g.ini": `{"data": "x", "sops": {"mac": "` + mac + `"}}`, "h.txt": "sops: " + opening, "i.yaml": "a: [\nsops: " + opening + "\n",
		"j.yaml": "x: &a {mac: '" + mac + "'}\nsops: *a\n",
	} {
		_, err := fs.ReadFile(Open(one(name, []byte(text)), nil), name)
		const want = "is encrypted with SOPS, and the app has no decryption: set it in app.yaml, with provider sops: cannot be decrypted"
		if err == nil || err.Error() != want || !errors.Is(err, ErrKeys) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestFilesAreDecryptedByTheirExtension, and what was decrypted is reported, also of a file that failed.
func TestFilesAreDecryptedByTheirExtension(t *testing.T) {
	in := map[string]Format{}
	files := fstest.MapFS{
		"a.yaml": {Data: []byte("sops: {mac: '" + mac + "'}")}, "a.env": {Data: []byte("sops_mac=" + mac)}, "a.INI": {Data: []byte("[sops]\nmac = " + mac)},
		"a.json": {Data: []byte(`{"sops":{"mac":"` + mac + `"}}`)}, "a": {Data: []byte(`{"sops":{"mac":"` + mac + `"}}`)},
	}
	reading := ""
	f := Open(files, func(format Format, _ []byte) (Decrypted, error) {
		in[reading] = format
		if format == Env {
			return Decrypted{Secrets: []string{"half"}, Recipients: []string{"age1old"}}, ErrDamaged
		}
		return Decrypted{Plain: []byte("plain"), Recipients: map[string][]string{"a.json": {"age1old"}, "a.INI": {"age1old", "age1new"}}[reading]}, nil
	})
	for reading = range files {
		if got, err := fs.ReadFile(f, reading); string(got) != "plain" && !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %q, %v", reading, got, err)
		}
	}
	if diff := cmp.Diff(map[string]Format{"a.yaml": YAML, "a.env": Env, "a.INI": INI, "a.json": JSON, "a": Binary}, in); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"half"}, f.Secrets()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "a.json", "a.yaml"}, f.NotFor("age1new")); diff != "" {
		t.Errorf("not for the new key: -want +got:\n%s", diff)
	}
	_, err := f.Manifest("manifests[0]", []byte("{}"))
	if err != nil {
		t.Error(err)
	}
	if _, err := Open(nil, nil).Manifest("manifests[0]", files["a.json"].Data); err == nil || err.Error()[:len("manifests[0]: is encrypted")] != "manifests[0]: is encrypted" {
		t.Errorf("got %v", err)
	}
}

func FuzzEncrypted(f *testing.F) {
	f.Add("a.yaml", []byte("sops: {mac: '"+mac+"'}"))
	f.Add("a.json", []byte(`{"sops":{"mac":"`+mac+`"}}`))
	f.Fuzz(func(_ *testing.T, name string, data []byte) { encrypted(formatOf(name, data), data) })
}

// TestFilesAreReadDecryptedOrNotAtAll: nothing opens a file as it is, and a link is not followed.
func TestFilesAreReadDecryptedOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("a: b\n"), 0o600), os.Symlink("a.yaml", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	f := Open(os.DirFS(dir), nil)
	var refused *fs.PathError
	if opened, err := f.Open("a.yaml"); opened != nil || !errors.Is(err, errors.ErrUnsupported) || !errors.As(err, &refused) || refused.Path != "a.yaml" {
		t.Errorf("got %v, %v", opened, err)
	}
	entries, err := fs.ReadDir(f, ".")
	if err != nil || len(entries) != 2 || entries[0].Name() != "a.yaml" {
		t.Errorf("got %v, %v", entries, err)
	}
	for name, mode := range map[string]fs.FileMode{"a.yaml": 0, "link": fs.ModeSymlink} {
		if info, err := fs.Stat(f, name); err != nil || info.Mode().Type() != mode {
			t.Errorf("%s: got %v, %v", name, info, err)
		}
	}
}
