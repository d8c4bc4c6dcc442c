package host

import (
	"errors"
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

func TestTheHostNameGivesTheTypeOfAGitHost(t *testing.T) {
	for raw, want := range map[string]Type{
		"https://github.com/acme/shop.git":          GitHub,
		"https://GitHub.com/acme/shop":              GitHub,
		"https://github.example.com/acme/shop":      GitHub,
		"ssh://git@gitlab.com/acme/shop.git":        GitLab,
		"https://gitlab.example.com:8443/a/b/c.git": GitLab,
		"https://codeberg.org/acme/shop":            Gitea,
		"https://forgejo.example.com/acme/shop":     Gitea,
		"https://bitbucket.org/acme/shop":           Bitbucket,
		"https://bitbucket.example.com/scm/a/b.git": BitbucketServer,
		"https://git.example.com/acme/shop":         "",
		"https://evil-github.com/acme/shop":         "",
		"https://github.com.evil.example/acme/shop": GitHub, // Its own host gets the request, no other.
		"::":                               "",
		"https://notgithub.com/github.com": "",
	} {
		if got := TypeOf(raw); got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}

func TestLocateFindsTheAPIOfARepository(t *testing.T) {
	tests := map[string]struct {
		at         Place
		base, name string
	}{
		"GitHub":                     {Place{URL: "https://github.com/acme/shop.git"}, "https://api.github.com", "acme/shop"},
		"GitHub by SSH":              {Place{URL: "ssh://git@github.com:22/acme/shop.git"}, "https://api.github.com", "acme/shop"},
		"GitHub Enterprise":          {Place{URL: "https://github.example.com/acme/shop"}, "https://github.example.com/api/v3", "acme/shop"},
		"GitLab with groups":         {Place{URL: "https://gitlab.com/acme/team/shop.git"}, "https://gitlab.com", "acme/team/shop"},
		"Gitea with a port":          {Place{URL: "http://git.example.com:3000/acme/shop.git", Type: Gitea}, "http://git.example.com:3000", "acme/shop"},
		"Gitea below a path":         {Place{URL: "https://example.com/git/acme/shop.git", Type: Gitea, Address: "https://example.com/git/"}, "https://example.com/git", "acme/shop"},
		"Gitea with another address": {Place{URL: "ssh://git@ssh.example.com:2222/acme/shop.git", Type: Gitea, Address: "https://git.example.com"}, "https://git.example.com", "acme/shop"},
		"Bitbucket":                  {Place{URL: "https://acme@bitbucket.org/acme/shop.git"}, "https://api.bitbucket.org", "acme/shop"},
		"Bitbucket Server":           {Place{URL: "https://bitbucket.example.com/scm/acme/shop.git"}, "https://bitbucket.example.com", "acme/shop"},
		"Bitbucket Server by SSH":    {Place{URL: "ssh://git@bitbucket.example.com:7999/~jane/shop.git"}, "https://bitbucket.example.com", "~jane/shop"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			kind := tc.at.Type
			if kind == "" {
				kind = TypeOf(tc.at.URL)
			}
			base, repository, err := locate(tc.at, kind)
			if err != nil {
				t.Fatal(err)
			}
			if base.String() != tc.base || repository != tc.name {
				t.Errorf("got %s of %s, want %s of %s", repository, base, tc.name, tc.base)
			}
		})
	}
}

func TestLocateRefusesURLsThatNameNoRepository(t *testing.T) {
	for name, at := range map[string]Place{
		"an unknown host":                {URL: "https://git.example.com/acme/shop"},
		"a URL without a host":           {URL: "/acme/shop", Type: GitHub},
		"a URL without an owner":         {URL: "https://github.com/shop", Type: GitHub},
		"a URL with too many parts":      {URL: "https://github.com/acme/shop/tree", Type: GitHub},
		"a URL without a name":           {URL: "https://github.com/acme/.git", Type: GitHub},
		"a name that is another path":    {URL: "https://git.example.com/acme/%2e%2e", Type: Gitea},
		"a name with a query":            {URL: "https://git.example.com/acme/shop%3Fx", Type: Gitea},
		"a group that is empty":          {URL: "https://gitlab.com/acme//shop", Type: GitLab},
		"an address that is not http":    {URL: "https://github.com/acme/shop", Type: GitHub, Address: "file:///etc/passwd"},
		"an address that is not a URL":   {URL: "https://github.com/acme/shop", Type: GitHub, Address: "::"},
		"an address that has no host":    {URL: "https://github.com/acme/shop", Type: GitHub, Address: "https:///x"},
		"a URL that cannot be parsed":    {URL: "https://github.com/%zz", Type: GitHub},
		"a type that is none of the API": {URL: "https://github.com/acme/shop", Type: "svn"},
	} {
		if _, _, err := locate(at, at.Type); !errors.Is(err, failure.ErrInvalid) {
			t.Errorf("%s: got %v, want an error that it is invalid", name, err)
		}
	}
}
