package tree

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// repository is a commit's tree in memory.
type repository map[string]*fstest.MapFile

func (r repository) Open(name string) (fs.File, error) { return fstest.MapFS(r).Open(name) }

// Digest hashes everything at or below the path, names and modes included, as Git does.
func (r repository) Digest(folder string) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(fstest.MapFS(r), folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %s", strings.TrimPrefix(name, folder), e.Type())
		if f, ok := r[name]; ok {
			sum.Write(f.Data)
		}
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil))[:12], err
}

func (r repository) Sub(path string) (Files, error) { return sub{r, path}, nil }

// sub is a folder of any files, whose paths are its own.
type sub struct {
	Files
	dir string
}

func (s sub) Open(name string) (fs.File, error) { return s.Files.Open(path.Join(s.dir, name)) }

func (s sub) ReadDir(name string) ([]fs.DirEntry, error) {
	return fs.ReadDir(s.Files, path.Join(s.dir, name))
}

func (s sub) Digest(name string) (string, error) { return s.Files.Digest(path.Join(s.dir, name)) }

func (s sub) Sub(name string) (Files, error) { return sub{s.Files, path.Join(s.dir, name)}, nil }

// counting counts which files are opened; folders are not parsed.
type counting struct {
	Files
	opened map[string]int
}

func (c *counting) Sub(path string) (Files, error) { return sub{c, path}, nil }

func (c *counting) Open(name string) (fs.File, error) {
	f, err := c.Files.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && !info.IsDir() {
		c.opened[name]++
	}
	return f, nil
}

// failing refuses to open one path.
type failing struct {
	Files
	path string
}

func (f *failing) Sub(path string) (Files, error) { return sub{f, path}, nil }

func (f *failing) Open(name string) (fs.File, error) {
	if name == f.path {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.Files.Open(name)
}

// readCase is one file of testdata.
type readCase struct {
	text  []byte
	scope Scope
	files repository
	want  string
}

// A case begins with lines "tenant: <tenant>" (none: the platform repository) and "base: platform|tenant" (a sound
// repository below the case's own files). Each "-- name --" begins a file; "-- name -> target --" is a symlink,
// "-- name @ --" a submodule, "-- name gone --" leaves a file of the base out. "-- want --" is the golden part.
var header = regexp.MustCompile(`(?m)^-- (\S+)(?: (->|@|gone)(?: (\S+))?)? --\n`)

func loadCase(t *testing.T, file string) readCase {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := readCase{text: text, scope: Scope{Repository: "platform"}, files: repository{}}
	heads := header.FindAllSubmatchIndex(text, -1)
	c.settings(t, string(text[:heads[0][0]]))
	for i, h := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		c.add(string(text[h[2]:h[3]]), group(text, h, 2), group(text, h, 3), text[h[1]:end])
	}
	return c
}

func group(text []byte, h []int, n int) string {
	if h[2*n] < 0 {
		return ""
	}
	return string(text[h[2*n]:h[2*n+1]])
}

func (c *readCase) settings(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "tenant":
			c.scope.Repository, c.scope.Tenant = value, value
		case "base":
			maps.Copy(c.files, baseFiles(t, value))
		}
	}
}

func (c *readCase) add(name, mark, target string, data []byte) {
	switch {
	case name == "want":
		c.want = string(data)
	case mark == "->":
		c.files[name] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte(target)}
	case mark == "@":
		c.files[name] = &fstest.MapFile{Mode: fs.ModeIrregular}
	case mark == "gone":
		delete(c.files, name)
	default:
		c.files[name] = &fstest.MapFile{Data: data}
	}
}

func (c *readCase) rewrite(t *testing.T, file, want string) {
	t.Helper()
	before, _, _ := bytes.Cut(c.text, []byte("-- want --\n"))
	if err := os.WriteFile(file, append(before, "-- want --\n"+want...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// baseFiles is a sound repository: one tenant, two projects, three apps. As a tenant repository it is that tenant's part.
func baseFiles(t testing.TB, class string) repository {
	t.Helper()
	project := "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata:\n  name: %s\nspec:\n  quota:\n    requests.cpu: 2\n"
	app := "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata:\n  name: %s\n  labels:\n    team: blue\nspec:\n" +
		"  type: Image\n  image:\n    reference: registry.example/%[1]s:v1\n    ports:\n    - name: http\n      port: 8080\n"
	tenant := "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata:\n  name: acme\nspec:\n  owners:\n" +
		"  - kind: User\n    name: lead@acme.example\n"
	r := repository{"kubeop.yaml": {Data: []byte("layout: v1\n")}}
	prefix := ""
	switch class {
	case "platform":
		prefix = "tenants/acme/"
		r[prefix+"tenant.yaml"] = &fstest.MapFile{Data: []byte(tenant)}
	case "tenant":
	default:
		t.Fatalf("no base %q", class)
	}
	for _, name := range []string{"shop", "blog"} {
		r[prefix+"projects/"+name+"/project.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, project, name)}
	}
	for _, name := range []string{"shop/apps/web", "shop/apps/api", "blog/apps/web"} {
		r[prefix+"projects/"+name+"/app.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, app, name[len(name)-3:])}
	}
	return r
}
