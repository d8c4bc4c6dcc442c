package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestABuildNoticesChangesOfWhatItReadOnly has builds that need more and less of a repository, and changes one thing of it at a time: those that read
// it must notice, and nobody else.
func TestABuildNoticesChangesOfWhatItReadOnly(t *testing.T) {
	const manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {of: %s}}"
	repo := sources.NewGitRepo(t)
	repo.Write("base/kustomization.yaml", "resources: [config.yaml]")
	repo.Write("base/config.yaml", fmt.Sprintf(manifest, "base"))
	repo.Write("base/README.md", "for people")
	repo.Write("parts/debug/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nconfigMapGenerator: [{name: b, envs: [b.env]}]\n")
	repo.Write("parts/debug/b.env", "a=b")
	repo.Write("patch.yaml", fmt.Sprintf(manifest, "patch"))
	repo.Write("alone/kustomization.yaml", "resources: [config.yaml]")
	repo.Write("alone/config.yaml", fmt.Sprintf(manifest, "alone"))
	repo.Write("over/kustomization.yaml", "resources: [../base]\npatches: [{path: ../patch.yaml}]")
	repo.Write("broken/kustomization.yaml", "resources: [../absent]")
	repo.Write("plain/deep/config.yaml", fmt.Sprintf(manifest, "plain"))
	repo.Push("first")
	before := newest(repo, DefaultLimits())

	builds := map[string]struct {
		path  string
		build v1alpha1.Build
		fails bool
	}{
		"alone":      {path: "alone"},
		"over":       {path: "over"},
		"broken":     {path: "broken", fails: true},
		"plain":      {path: "plain"},
		"components": {path: "alone", build: v1alpha1.Build{Components: []string{"../parts/debug"}}},
	}
	reads, digests := map[string]Reads{}, map[string]string{}
	for name, b := range builds {
		reading := before.Reading()
		_, err := build.Folder(reading, b.path, &b.build, budget.App{})
		if (err != nil) != b.fails {
			t.Fatalf("%s: %v", name, err)
		}
		if reads[name], digests[name], err = reading.Done(); err != nil {
			t.Fatal(err)
		}
	}
	for _, change := range []struct {
		file    string
		noticed []string
	}{
		{"base/config.yaml", []string{"over"}},
		{"base/README.md", nil},
		{"parts/debug/b.env", []string{"components"}},
		{"patch.yaml", []string{"over"}},
		{"alone/config.yaml", []string{"alone", "components"}},
		{"alone/more.txt", []string{"alone", "components"}}, // Folders are compared as a whole.
		{"plain/deep/more.yaml", []string{"plain"}},
		{"absent/kustomization.yaml", []string{"broken"}},
		{"base/Kustomization", []string{"over"}}, // Two of them in a folder are an error.
		{"elsewhere/a.yaml", nil},
	} {
		repo.Write(change.file, "changed")
		repo.Push("changed " + change.file)
		after := newest(repo, DefaultLimits())
		repo.Git("reset", "-q", "--hard", "HEAD~1")
		for name := range builds {
			digest, err := after.DigestOf(reads[name])
			if err != nil {
				t.Fatal(err)
			}
			if got, want := digest != digests[name], slices.Contains(change.noticed, name); got != want {
				t.Errorf("%s changed: %s, which read %q, noticed it: %t, want %t", change.file, name, reads[name], got, want)
			}
		}
	}
}

func TestReadsRecordWhatWasRead(t *testing.T) {
	root := commitFolder(t, nil, func(r *sources.GitRepo) {
		r.Write("a/b/c.txt", "c")
		r.Write("d.txt", "d")
		for i := range maxReads + 1 {
			r.Write(fmt.Sprintf("many/%d", i), "x")
		}
	})
	for name, tc := range map[string]struct {
		ask  func(files fs.FS)
		want Reads
	}{
		"nothing":              {func(fs.FS) {}, nil},
		"files":                {func(files fs.FS) { _, _ = fs.ReadFile(files, "d.txt"); _, _ = fs.Stat(files, "a/b/c.txt") }, Reads{"a/b/c.txt", "d.txt"}},
		"what is not there":    {func(files fs.FS) { _, _ = fs.ReadFile(files, "a/none") }, Reads{"a/none"}},
		"what cannot be there": {func(files fs.FS) { _, _ = fs.ReadFile(files, "../d.txt"); _, _ = fs.ReadFile(files, "/d.txt") }, nil},
		"a folder": {func(files fs.FS) {
			_, _ = fs.ReadFile(files, "a/b/c.txt")
			_, _ = fs.ReadDir(files, "a")
			_, _ = fs.ReadDir(files, "a/b")
		}, Reads{"a/"}},
		"a folder that is opened": {func(files fs.FS) { _, _ = files.Open("a/b") }, Reads{"a/b/"}},
		"all":                     {func(files fs.FS) { _, _ = fs.ReadFile(files, "d.txt"); _, _ = fs.ReadDir(files, ".") }, Reads{"./"}},
		"too many": {func(files fs.FS) {
			for i := range maxReads + 1 {
				_, _ = fs.ReadFile(files, fmt.Sprintf("many/%d", i))
			}
		}, everything},
	} {
		t.Run(name, func(t *testing.T) {
			reading := root.Reading()
			tc.ask(reading)
			got, digest, err := reading.Done()
			if err != nil || digest == "" {
				t.Fatalf("digest %q, error %v", digest, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" && len(tc.want)+len(got) > 0 {
				t.Error(diff)
			}
		})
	}
}

// TestTheModeOfAFileThatWasReadCounts: a file, a program and a symbolic link may have the same bytes, and are not the same to a reader.
func TestTheModeOfAFileThatWasReadCounts(t *testing.T) {
	digests := map[string]string{}
	for name, write := range map[string]func(file string) error{
		"a file":          func(file string) error { return os.WriteFile(file, []byte("b.txt"), 0o600) },
		"a program":       func(file string) error { return os.WriteFile(file, []byte("b.txt"), 0o700) },
		"a symbolic link": func(file string) error { return os.Symlink("b.txt", file) },
	} {
		root := commitFolder(t, nil, func(r *sources.GitRepo) {
			if err := write(filepath.Join(r.Work, "a")); err != nil {
				t.Fatal(err)
			}
		})
		digest, err := root.DigestOf(Reads{"a"})
		if other, same := digests[digest]; err != nil || same {
			t.Errorf("%s has digest %q, and so has %q (%v)", name, digest, other, err)
		}
		digests[digest] = name
	}
}

// TestReadsAreBounded has somebody ask about more than is remembered, in number and in length, of what is not even there.
func TestReadsAreBounded(t *testing.T) {
	root := commitFolder(t, nil, func(r *sources.GitRepo) { r.Write("a.txt", "a") })
	long := strings.Repeat("x", 10_000)
	for name, paths := range map[string]int{long: 1_000, "short": 100_000} {
		reading := root.Reading()
		for i := range paths {
			_, _ = reading.Stat(fmt.Sprintf("none/%s%d", name, i))
			if kept := reading.bytes; kept > maxReadBytes+len(long)+10 || len(reading.read) > maxReads {
				t.Fatalf("%.9s: %d paths with %d bytes are remembered", name, len(reading.read), kept)
			}
		}
		if reads, _, err := reading.Done(); err != nil || !slices.Equal(reads, everything) {
			t.Errorf("%.9s: got %.100q and %v, want everything", name, reads, err)
		}
	}
}

// TestAReadingCountsOnItsOwn has what one app lists of a source leave room for the next one.
func TestAReadingCountsOnItsOwn(t *testing.T) {
	root := commitFolder(t, func(l *Limits) { l.Files = 5 }, func(r *sources.GitRepo) {
		for i := range 4 {
			r.Write(fmt.Sprintf("a/%d", i), "x")
			r.Write(fmt.Sprintf("b/%d", i), "x")
		}
	})
	for _, folder := range []string{"a", "b"} {
		if _, err := root.Reading().ReadDir(folder); err != nil {
			t.Error(err)
		}
	}
}

// TestAReadingIsItsFolder has it answer what the folder does, errors included.
func TestAReadingIsItsFolder(t *testing.T) {
	reading := commitFolder(t, nil, func(r *sources.GitRepo) { r.Write("a/b.txt", "b") }).Reading()
	if err := fstest.TestFS(reading, "a/b.txt"); err != nil {
		t.Error(err)
	}
	if _, err := reading.ReadFile("none"); !errors.Is(err, failure.ErrNotFound) {
		t.Errorf("got %v, want it not found", err)
	}
}
