package guardrails

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestSourcesAreJudgedByPatterns: "ok", or the field that is broken.
func TestSourcesAreJudgedByPatterns(t *testing.T) {
	for _, c := range []struct{ url, allow, deny, want string }{
		{"https://git.example.com/acme/web", "git.example.com", "", "ok"},
		{"https://git.example.com/acme/web", "git.example.com/acme", "", "ok"},
		{"https://git.example.com/acme/web", "git.example.com/acme/web", "", "ok"},
		{"https://git.example.com/acme/web.git/", "git.example.com/acme/web", "", "ok"},
		{"https://git.example.com/acme/web", "git.example.com/acme/web.git", "", "ok"},
		{"https://git.example.com/acme/web", "evil.org git.example.com/*/web", "", "ok"},
		{"https://GIT.example.com:443/acme/web", "git.example.com/acme", "", "ok"},
		{"https://git.example.com./acme/web", "git.example.com/acme", "", "ok"},
		{"https://git.example.com/acme", "git.example.com:443/acme", "", "ok"},
		{"ssh://git@git.example.com/acme/web", "git.example.com/acme", "", "ok"},
		{"ssh://git@git.example.com:22/acme/web", "ssh://git.example.com/acme", "", "ok"},
		{"https://a.b.example.com/x", "*.example.com", "", "ok"},
		{"https://anywhere.org/x", "*", "", "ok"},
		{"https://git.example.com:8443/x", "git.example.com:8443", "", "ok"},
		{"http://git.example.com/x", "http://git.example.com", "", "ok"},
		{"https://git.example.com", "git.example.com", "", "ok"},

		{"https://git.example.com/acme-2/web", "git.example.com/acme", "", "allow"},
		{"https://git.example.com/Acme/web", "git.example.com/acme", "", "allow"},
		{"https://git.example.com.evil.org/acme", "git.example.com", "", "allow"},
		{"https://evil.org/git.example.com", "git.example.com", "", "allow"},
		{"https://git.example.com@evil.org/x", "git.example.com", "", "allow"},
		{"https://git.example.com:8443/x", "git.example.com", "", "allow"},
		{"https://git.example.com/x", "git.example.com:8443", "", "allow"},
		{"http://git.example.com/x", "git.example.com", "", "allow"},
		{"http://git.example.com/x", "https://git.example.com", "", "allow"},
		{"https://git.example.com/x", "ssh://git.example.com", "", "allow"},
		{"https://git.example.com/acme/../evil", "git.example.com/acme", "", "allow"},
		{"https://git.example.com/acme/%2e%2e/evil", "git.example.com/acme", "", "allow"},
		{"https://git.example.com/acme%2fweb", "git.example.com/acme", "", "allow"},
		{"https://git.example.com/acme//web", "git.example.com/acme", "", "allow"},
		{"https://git.example.com/acme?x", "git.example.com/acme", "", "allow"},
		{"https://git.example.com/acme?", "git.example.com/acme", "", "allow"},
		{"https://git.example.com/acme#x", "git.example.com/acme", "", "allow"},
		{"https://", "git.example.com", "", "allow"},
		{"https:git.example.com", "*", "", "allow"},

		{"https://evil.org/x", "", "evil.org", "deny"},
		{"https://EVIL.org/X", "", "evil.org/x", "deny"},
		{"https://evil.org/x", "", "evil.org/X", "deny"},
		{"http://evil.org/x", "", "evil.org", "deny"},
		{"ssh://evil.org/x.git", "", "evil.org/x", "deny"},
		{"https://evil.org/%78", "", "evil.org/x", "deny"},
		{"https://ｅvil.org/x", "", "evil.org", "deny"},
		{"https://evil.org/x", "evil.org", "evil.org/x", "deny"},
		{"https://evil.org/y", "", "evil.org/x", "ok"},
		{"https://evil.org/x", "", "http://evil.org", "ok"},
		{"https://git.example.com/a%20b", "", "", "ok"},
	} {
		t.Run(c.url+" by "+c.allow+" but "+c.deny, func(t *testing.T) {
			rule := &v1alpha1.SourceRules{Git: &v1alpha1.URLPatterns{Allow: strings.Fields(c.allow), Deny: strings.Fields(c.deny)}}
			got := "ok"
			if f, broken := sources(Source{GitRepository, c.url}, rule); broken {
				got = strings.TrimPrefix(f.field, "sources.git.")
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if f, broken := sources(Source{HelmRepository, c.url}, rule); broken {
				t.Errorf("the rule for Git judges a Helm repository: %+v", f)
			}
		})
	}
}

// TestEachSourceIsJudgedByItsOwnList, and images and files of the same repository by none.
func TestEachSourceIsJudgedByItsOwnList(t *testing.T) {
	rules := Of([]v1alpha1.Policy{
		named("all", false, v1alpha1.PolicyRules{Sources: &v1alpha1.SourceRules{
			Git:  &v1alpha1.URLPatterns{Allow: []string{"git.example.com"}},
			Helm: &v1alpha1.URLPatterns{Allow: []string{"charts.example.com"}},
			OCI:  &v1alpha1.RepositoryPatterns{Allow: []string{"ghcr.io/acme"}, Deny: []string{"ghcr.io/acme/old"}},
		}}),
		named("warns", false, v1alpha1.PolicyRules{Sources: &v1alpha1.SourceRules{Action: v1alpha1.WarnAction, Helm: &v1alpha1.URLPatterns{Deny: []string{"example.org"}}}}),
		named("other", false, v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{RequireDigest: true}}),
	})
	for name, c := range map[string]struct {
		spec v1alpha1.AppSpec
		want []string
	}{
		"Git":          {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{URL: "https://git.example.com/a"}}, nil},
		"foreign Git":  {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{URL: "https://me:pass@evil.org/a"}}, []string{"Deny all sources.git.allow: is fetched from https://evil.org/a, which is not among the allowed sources: git.example.com"}},
		"artifact":     {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: "oci://ghcr.io/acme/manifests"}}}, nil},
		"old artifact": {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: "oci://GHCR.io/acme/old"}}}, []string{"Deny all sources.oci.deny: is fetched from oci://GHCR.io/acme/old, which is among the refused sources: ghcr.io/acme/old"}},
		"foreign artifact": {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: "oci://acme/manifests"}}}, []string{
			"Deny all sources.oci.allow: is fetched from oci://acme/manifests, which is not among the allowed sources: ghcr.io/acme"}},
		"artifact of a host": {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: "oci://library/manifests"}}}, []string{
			"Deny all sources.oci.allow: is fetched from oci://library/manifests, which is not among the allowed sources: ghcr.io/acme"}},
		"unclear artifact": {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: "oci://ghcr.io/acme/../evil"}}}, []string{
			"Deny all sources.oci.allow: is fetched from oci://ghcr.io/acme/../evil, which servers may read in several ways: " +
				"write it in Git in ASCII letters, without query, fragment, percent signs, and dots or nothing between slashes"}},
		"chart":               {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Repository: "https://charts.example.com", Chart: "web"}}, nil},
		"chart in Git":        {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{URL: "https://git.example.com/a"}}}, nil},
		"chart in a registry": {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Repository: "oci://ghcr.io/acme/", Chart: "web"}}, nil},
		"chart by name":       {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Repository: "oci://ghcr.io/acme", Chart: "old"}}, []string{"Deny all sources.oci.deny: is fetched from oci://ghcr.io/acme/old, which is among the refused sources: ghcr.io/acme/old"}},
		"foreign chart": {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Repository: "https://example.org", Chart: "web"}}, []string{
			"Deny all sources.helm.allow: is fetched from https://example.org, which is not among the allowed sources: charts.example.com",
			"Warn warns sources.helm.deny: is fetched from https://example.org, which is among the refused sources: example.org"}},
		"chart in the app's folder": {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Path: "chart"}}, nil},
		"Flux source":               {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{SourceRef: &v1alpha1.FluxSourceReference{Kind: "GitRepository", Name: "a"}}}, nil},
		"image":                     {v1alpha1.AppSpec{Image: &v1alpha1.ImageSource{Reference: "evil.org/web:1"}}, nil},
		"objects":                   {v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{Path: "manifests"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			if source, fetched := SourceOf(&c.spec); fetched {
				for _, v := range CheckSource(source, &rules) {
					got = append(got, fmt.Sprintf("%s %s %s: %s", v.Action, v.Policy, v.Field, v.Why))
				}
				if CheckSource(source, nil) != nil {
					t.Error("without policies something is refused")
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
