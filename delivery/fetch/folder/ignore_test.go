package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

var ignoreFiles = []string{
	"a.yaml", "b.yaml", "deep/a.yaml", "deep/deeper/a.yaml", "deep/deeper/b.txt", "test/x.yaml", "src/test/x.yaml", "src/test/keep.yaml",
	"foo/bar", "x/foo/bar", "foo/x/bar", "foo/x/y/bar", "docs/readme.md", "docs/keep/readme.md", "a b", "a ", "#hash", "!bang", "[x]", "x1", "x2", "xa", "x-", "x]", "A.yaml",
	"deploy/prod/web.yaml", "deploy/staging/web.yaml", "foo.d/web.yaml", "ab/c/ab/d", "star*", `back\slash`,
}

// TestIgnoreIsAsGitDoes compares with what git itself leaves out.
func TestIgnoreIsAsGitDoes(t *testing.T) {
	repo := sources.NewGitRepo(t)
	files := fstest.MapFS{}
	for _, name := range ignoreFiles {
		repo.Write(name, "x")
		files[name] = &fstest.MapFile{Data: []byte("x")}
		files["apps/web/"+name] = &fstest.MapFile{Data: []byte("x")}
	}
	for _, patterns := range []string{
		"a.yaml", "/a.yaml", "*.yaml", "*.yaml\n!b.yaml", "deep", "deep/", "deep/*", "deep/**", "deep/**\n!deep/a.yaml", "**/a.yaml", "**/deeper/a.yaml",
		"test/", "test/\n!keep.yaml", "src/test/*\n!keep.yaml", "foo/**/bar", "**/foo/bar", "foo/bar", "/foo", "/*\n!/deploy", "/*\n!/deploy\n/deploy/*\n!/deploy/prod",
		"# a comment\n\n", `\#hash`, `\!bang`, "#hash", "a b", `a\ `, "a ", "[x]", `\[x\]`, "x[0-9]", "x[!0-9]", "x[^0-9]", "x[[:digit:]]", "x[]-]", "x?", "?.yaml", "[", "x[", "x[a",
		"docs/**/readme.md", "**/readme.md", "**", "*", "!*", "/**", "/", "//", "foo*", "*/foo", "d*p", "d**p", "deep/**/b.txt", "ab/**/ab", "**/ab/d", "star\\*", `back\\slash`, "deep/deeper/", "a.yaml/", "*.yaml\r\nfoo\r\n",
		"web.yaml\n!deploy/prod/web.yaml", "A.YAML", ".", "..", "./a.yaml", "deep//a.yaml", "[a-", "[b-a].yaml", "x[a-]", "x[\\]]", `x\`, `\`,
	} {
		t.Run(patterns, func(t *testing.T) {
			repo.Write(".git/info/exclude", patterns)
			var want []string
			for name := range strings.SplitSeq(repo.Git("-c", "core.quotePath=false", "ls-files", "-z", "--others", "--exclude-standard"), "\x00") {
				if name != "" {
					want = append(want, name)
				}
			}
			slices.Sort(want)
			left, err := Ignore(files, "apps/web", patterns)
			if err != nil {
				if slices.Contains([]string{"[b-a].yaml", "[", "x[", "x[a", "[a-"}, patterns) && errors.Is(err, failure.ErrInvalid) {
					return // Git takes no notice of it, and kubeop refuses it.
				}
				t.Fatal(err)
			}
			var got []string
			err = fs.WalkDir(left, "apps/web", func(name string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					got = append(got, strings.TrimPrefix(name, "apps/web/"))
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("git and kubeop (-want +got):\n%s", diff)
			}
			if entries, _ := fs.ReadDir(left, "."); len(entries) < 10 {
				t.Errorf("files outside of the folder are left out, too")
			}
			for _, name := range ignoreFiles {
				_, err := fs.ReadFile(left, "apps/web/"+name)
				_, also := fs.Stat(left, "apps/web/"+name)
				if there := slices.Contains(got, name); (err == nil) != there || (also == nil) != there {
					t.Errorf("%s is listed: %t, and reading it says %v, %v", name, there, err, also)
				}
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
			}
		})
	}
}

func TestIgnoredLinksAreNotThere(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("app/web.yaml", "kind: Service")
	if err := os.Symlink("/etc/passwd", filepath.Join(repo.Work, "app", "link.yaml")); err != nil {
		t.Fatal(err)
	}
	repo.Push("first")
	files, err := Ignore(newest(repo, DefaultLimits()), "app", "link.yaml")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(files, "app")
	if err != nil || len(entries) != 1 || entries[0].Name() != "web.yaml" {
		t.Errorf("got %v, %v", entries, err)
	}
	if _, err := fs.Stat(files, "app/link.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestIgnoredFilesAreInNoAnswerOfTheFileSystem reads by all ways of io/fs. Those who open a folder see what those who read it see.
func TestIgnoredFilesAreInNoAnswerOfTheFileSystem(t *testing.T) {
	files := fstest.MapFS{}
	for _, name := range []string{"app/web.yaml", "app/secret.txt", "app/deep/b.yaml", "app/deep/secret.txt", "app/test/x.yaml", "other/secret.txt"} {
		files[name] = &fstest.MapFile{Data: []byte("a: b")}
	}
	left, err := Ignore(files, "app", "secret.txt\ntest/\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(left, "app/web.yaml", "app/deep/b.yaml", "other/secret.txt"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"app/secret.txt", "app/deep/secret.txt", "app/test", "app/test/x.yaml"} {
		if file, err := left.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s can be opened: %v, %v", name, file, err)
		}
	}
	folder, err := left.Open("app")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := folder.(fs.ReadDirFile).ReadDir(-1)
	if err != nil || len(entries) != 2 || entries[0].Name() != "deep" || entries[1].Name() != "web.yaml" {
		t.Errorf("the opened folder has %v, %v", entries, err)
	}
}

func TestTooManyPatternsAreRefused(t *testing.T) {
	if _, err := Ignore(fstest.MapFS{}, ".", strings.Repeat("a\n", maxIgnoreLines)); err != nil {
		t.Error(err)
	}
	if _, err := Ignore(fstest.MapFS{}, ".", strings.Repeat("a\n", maxIgnoreLines+1)); !errors.Is(err, failure.ErrTooLarge) || !strings.Contains(err.Error(), "100") {
		t.Errorf("got %v", err)
	}
}

// TestIgnoreTakesLimitedSteps reads a folder of many paths with patterns that are slow to match, and one of as many with the same
// patterns as people write them.
func TestIgnoreTakesLimitedSteps(t *testing.T) {
	files := fstest.MapFS{}
	for n := range 100 {
		files[fmt.Sprintf("long/%s%d", strings.Repeat("a", 1000), n)] = &fstest.MapFile{}
		files[fmt.Sprintf("short/%d.yaml", n)] = &fstest.MapFile{}
	}
	for folder, pattern := range map[string]string{"long": strings.Repeat("*a", 100) + "b\n", "short": "/docs/**/*.md\n"} {
		left, err := Ignore(files, ".", strings.Repeat(pattern, maxIgnoreLines))
		if err != nil {
			t.Fatal(err)
		}
		left.(*filtered).steps = maxIgnoreSteps * 19 / 20 // All of them take seconds.
		_, err = fs.ReadDir(left, folder)
		if folder == "long" {
			sources.WantError(t, err, failure.ErrTooLarge, "100000000 steps")
			_, err = fs.Stat(left, "long/"+strings.Repeat("a", 1000)+"99") // Whether it is ignored is not decided any more.
			sources.WantError(t, err, failure.ErrTooLarge, "100000000 steps")
		} else if err != nil {
			t.Error(err)
		}
	}
}

// TestIgnoreDecidesOncePerPath lists a folder inside many others, which are not matched again for each file.
func TestIgnoreDecidesOncePerPath(t *testing.T) {
	files := fstest.MapFS{}
	deep := strings.Repeat("a/", 30)
	for n := range 100 {
		files[fmt.Sprintf("%s%d", deep, n)] = &fstest.MapFile{}
	}
	left, err := Ignore(files, ".", "b")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := fs.ReadDir(left, path.Clean(deep)); err != nil {
			t.Fatal(err)
		}
	}
	if steps := left.(*filtered).steps; steps > 100*(len(deep)+2)+30*len(deep) {
		t.Errorf("it took %d steps", steps)
	}
}

func FuzzIgnore(f *testing.F) {
	f.Add("a/**/[b!-c]*\n!\\x")
	f.Fuzz(func(t *testing.T, patterns string) {
		files, err := Ignore(fstest.MapFS{"a/b/c": {Data: []byte("x")}}, "a", patterns)
		if err != nil {
			return
		}
		if _, err := fs.ReadDir(files, "."); err != nil {
			t.Error(err)
		}
	})
}
