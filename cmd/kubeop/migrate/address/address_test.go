package address

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFetchableRemovesCredentialsAndRefusesLocalURLs(t *testing.T) {
	for given, want := range map[string]string{
		"git@github.com:acme/fleet.git":          "ssh://git@github.com/acme/fleet.git",
		"https://user:token@example.com/a.git":   "https://example.com/a.git",
		"https://token@example.com/a.git":        "https://example.com/a.git",
		"ssh://git@example.com:2222/a.git":       "ssh://git@example.com:2222/a.git",
		"/srv/git/a.git":                         "",
		"file:///srv/git/a.git":                  "",
		"https://example.com/a\nb":               "",
		"ssh://git:password@example.com/a/b.git": "ssh://example.com/a/b.git",
	} {
		if got := Fetchable(given); got != want {
			t.Errorf("Fetchable(%q) = %q, want %q", given, got, want)
		}
	}
	if !Same("git@example.com:acme/a.git", "https://example.com/acme/a") || Same("https://example.com/acme/a", "https://example.com/acme/b") {
		t.Error("addresses are compared wrongly")
	}
}

func TestRefsAndImagesBecomeTheFieldsOfKubeop(t *testing.T) {
	for revision, want := range map[string]map[string]any{
		"": {}, "HEAD": {}, "main": {"branch": "main"}, "v1.2.3": {"tag": "v1.2.3"}, "1.x": {"branch": "1.x"}, ">=1.0.0": {"semver": ">=1.0.0"}, "1.2.*": {"semver": "1.2.*"},
		"refs/heads/a": {"name": "refs/heads/a"}, "0123456789abcdef0123456789abcdef01234567": {"commit": "0123456789abcdef0123456789abcdef01234567"},
	} {
		if diff := cmp.Diff(want, Ref(revision)); diff != "" {
			t.Errorf("%q: %s", revision, diff)
		}
	}
	for text, want := range map[string]map[string]any{
		"nginx:1.27":                 {"name": "nginx", "newTag": "1.27"},
		"nginx=r.example.com:5000/n": {"name": "nginx", "newName": "r.example.com:5000/n"},
		"a=b:1@sha256:abc":           {"name": "a", "newName": "b", "newTag": "1", "digest": "sha256:abc"},
	} {
		if diff := cmp.Diff(want, Image(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestInsideKeepsPathsWithinTheRepository(t *testing.T) {
	for given, want := range map[string]string{"./a/b/": "a/b", ".": "", "": "", "./": "", "../../etc": "etc", "/a": "a", "a/../b": "b"} {
		if got := Inside(given); got != want {
			t.Errorf("Inside(%q) = %q, want %q", given, got, want)
		}
	}
}
