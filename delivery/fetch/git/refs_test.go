package git

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// advertised returns a list of refs; the hash of each is its place in the list.
func advertised(t testing.TB, symref string, names ...string) *packp.AdvRefs {
	t.Helper()
	refs := packp.NewAdvRefs()
	if symref != "" {
		if err := refs.Capabilities.Add(capability.SymRef, symref); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range names {
		hash := plumbing.Hash{byte(i + 1)}
		if name == headRef {
			refs.Head = &hash
			continue
		}
		refs.References[name] = hash
	}
	return refs
}

func TestHEADIsResolvedToItsBranch(t *testing.T) {
	cases := map[string]struct {
		refs *packp.AdvRefs
		want string
		says string
	}{
		"symref":            {advertised(t, "HEAD:refs/heads/trunk", "HEAD", "refs/heads/main", "refs/heads/trunk"), "trunk@sha1:03", ""},
		"symref to nothing": {advertised(t, "HEAD:refs/heads/gone", "refs/heads/main"), "", `no branch "gone"`},
		"symref of another": {advertised(t, "refs/remotes/a/HEAD:refs/heads/main", "HEAD", "refs/heads/main"), "HEAD@sha1:01", ""},
		"no branch's":       {advertised(t, "HEAD:refs/other/main", "HEAD", "refs/heads/main"), "HEAD@sha1:01", ""},
		"nothing said":      {advertised(t, "", "refs/heads/main"), "", "set ref.branch in Git"},
		"old server":        {advertised(t, "", "HEAD", "refs/heads/a"), "HEAD@sha1:01", ""},
		"empty":             {advertised(t, ""), "", "the repository is empty"},
	}
	same := advertised(t, "", "HEAD", "refs/heads/a", "refs/heads/b")
	*same.Head = same.References["refs/heads/b"]
	cases["old server, at a branch"] = struct {
		refs *packp.AdvRefs
		want string
		says string
	}{same, "b@sha1:03", ""}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := resolve(tc.refs, nil)
			if tc.says != "" {
				sources.WantError(t, err, failure.ErrNotFound, tc.says)
			} else if !strings.HasPrefix(got.revision(), tc.want) {
				t.Errorf("got %s, want %s", got.revision(), tc.want)
			}
		})
	}
}

func TestTheHighestTagOfARangeIsChosen(t *testing.T) {
	refs := advertised(t, "", "refs/tags/v1.0.0", "refs/tags/1.2.0", "refs/tags/v1.10.0", "refs/tags/v1.9", "refs/tags/v2.0.0-rc.1",
		"refs/tags/v3.0.0+b", "refs/tags/v3.0.0+a", "refs/tags/app/v9.0.0", "refs/tags/v7.0.0@nightly", "refs/heads/v8.0.0")
	for expression, want := range map[string]string{
		"*": "v3.0.0+b", "1.x": "v1.10.0", "~1.2": "1.2.0", ">=2.0.0-0 <2.0.0": "v2.0.0-rc.1", "<1.1": "v1.0.0", "v1.0.0": "v1.0.0",
	} {
		got, err := resolve(refs, &sourcev1.GitRepositoryRef{SemVer: expression})
		if err != nil || got.label != want {
			t.Errorf("%s: got %s, %v, want %s", expression, got.label, err, want)
		}
	}
	// A prerelease is chosen only if the range names one.
	_, err := resolve(refs, &sourcev1.GitRepositoryRef{SemVer: ">=2.0.0 <3.0.0"})
	sources.WantError(t, err, failure.ErrNotFound, "none of the repository's 9 tags")
}

func TestAVersionIsHigherOnlyThanAnotherVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		is, was string
		want    bool
	}{
		"higher":              {"v1.10.0@sha1:02", "v1.9.0@sha1:01", true},
		"lower":               {"v1.9.0@sha1:01", "v1.10.0@sha1:02", false},
		"equal":               {"1.2.0@sha1:02", "v1.2.0@sha1:01", false},
		"release of a beta":   {"v2.0.0@sha1:02", "v2.0.0-beta.1@sha1:01", true},
		"a branch":            {"main@sha1:02", "v1.0.0@sha1:01", false},
		"after a branch":      {"v1.0.0@sha1:02", "main@sha1:01", false},
		"two parts of three":  {"v2.1@sha1:02", "v1.0.0@sha1:01", false},
		"a commit by hash":    {"sha1:02", "sha1:01", false},
		"without the commits": {"v1.1.0", "v1.0.0", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := HigherVersion(tc.is, tc.was); got != tc.want {
				t.Errorf("%s is higher than %s: %t", tc.is, tc.was, got)
			}
		})
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("main", "", "", "", "", "refs/heads/main\nrefs/tags/v1.0.0", "HEAD:refs/heads/main")
	f.Add("", "v1", ">=1.0.0", "refs/pull/1/head", strings.Repeat("ab", 20), "refs/tags/v1", "")
	f.Fuzz(func(t *testing.T, branch, tag, semver, name, commit, listed, symref string) {
		refs := packp.NewAdvRefs()
		_ = refs.Capabilities.Add(capability.SymRef, symref)
		for name := range strings.SplitSeq(listed, "\n") {
			refs.References[name] = plumbing.Hash{1}
		}
		got, err := resolve(refs, &sourcev1.GitRepositoryRef{Branch: branch, Tag: tag, SemVer: semver, Name: name, Commit: commit})
		if err != nil {
			if !errors.Is(err, failure.ErrNotFound) && !errors.Is(err, failure.ErrInvalid) {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		if strings.ContainsAny(got.revision(), "\n\r\x00") {
			t.Errorf("revision %q", got.revision())
		}
		if commit != "" && got.commit.String() != commit {
			t.Errorf("asked for %s, got %s", commit, got.commit)
		}
	})
}

// FuzzRefList feeds a list of refs as a server could send it.
func FuzzRefList(f *testing.F) {
	f.Add([]byte("001e# service=git-upload-pack\n0000003c" + strings.Repeat("ab", 20) + " HEAD\x00ofs-delta\n0000"))
	f.Add([]byte("0011ERR go away\n"))
	f.Add([]byte("0000"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		from := &remote{limits: defaultLimits()}
		refs, err := from.decodeRefs(bytes.NewReader(sent))
		if (refs == nil) == (err == nil) {
			t.Errorf("%v, %v", refs, err)
		}
	})
}

// FuzzPack feeds a pack as a server could send it.
func FuzzPack(f *testing.F) {
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e"))
	f.Add([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		g, err := openGeneration(t.TempDir(), defaultLimits(), &packs{})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.addPack(t.Context(), bytes.NewReader(sent), "commit"); err != nil {
			return
		}
		if err := g.load(); err != nil {
			t.Errorf("a pack that was accepted cannot be opened: %v", err)
		}
	})
}
