package guardrails

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
)

// Source is a place from which something of an app is fetched.
type Source struct {
	// Type says by which patterns it is judged.
	Type SourceType
	// URL of the Git repository, the Helm repository, or the chart or artifact in a registry.
	URL string
}

// SourceType is a type of sources: the name of its field in SourceRules.
type SourceType string

// The types of sources.
const (
	GitRepository  SourceType = "git"
	HelmRepository SourceType = "helm"
	OCIRepository  SourceType = "oci"
)

const ociScheme = "oci://"

// SourceOf returns the source that an App names; false if kubeop fetches nothing by a URL for it. Images are judged by ImageRules.
func SourceOf(spec *v1alpha1.AppSpec) (Source, bool) {
	switch {
	case spec.Git != nil && spec.Git.OCI != nil:
		return Source{OCIRepository, spec.Git.OCI.URL}, true
	case spec.Git != nil && spec.Git.URL != "":
		return Source{GitRepository, spec.Git.URL}, true
	case spec.Helm != nil && spec.Helm.Git != nil:
		return Source{GitRepository, spec.Helm.Git.URL}, true
	case spec.Helm != nil && spec.Helm.Repository != "":
		return ChartSource(spec.Helm.Repository, spec.Helm.Chart), true
	}
	return Source{}, false
}

// ChartSource returns the source of a chart in a Helm repository or a registry.
func ChartSource(repository, chart string) Source {
	if strings.HasPrefix(repository, ociScheme) {
		return Source{OCIRepository, strings.TrimSuffix(repository, "/") + "/" + chart}
	}
	return Source{HelmRepository, repository}
}

// CheckSource returns the rules that a source breaks, in the order of Check. spec is nil if no policy holds.
func CheckSource(source Source, spec *v1alpha1.GuardrailsSpec) []Violation {
	if spec == nil {
		return nil
	}
	var all []Violation
	for _, action := range []v1alpha1.PolicyAction{v1alpha1.DenyAction, v1alpha1.WarnAction, v1alpha1.AuditAction} {
		for _, applied := range *listOf(spec, action) {
			if f, broken := sources(source, applied.Sources); broken {
				all = append(all, Violation{Rule: Sources, Policy: applied.Policy, Action: action, Field: f.field, Why: f.why})
			}
		}
	}
	return all
}

// LimitsSources reports whether a policy has rules about sources.
func LimitsSources(spec *v1alpha1.GuardrailsSpec) bool {
	limits := func(p v1alpha1.AppliedPolicy) bool { return p.Sources != nil }
	return spec != nil && (slices.ContainsFunc(spec.Deny, limits) || slices.ContainsFunc(spec.Warn, limits) || slices.ContainsFunc(spec.Audit, limits))
}

// sources: apps are made only from what the policy allows.
func sources(source Source, rule *v1alpha1.SourceRules) (found, bool) {
	var allow, deny []string
	switch {
	case rule == nil:
	case source.Type == GitRepository && rule.Git != nil:
		allow, deny = rule.Git.Allow, rule.Git.Deny
	case source.Type == HelmRepository && rule.Helm != nil:
		allow, deny = rule.Helm.Allow, rule.Helm.Deny
	case source.Type == OCIRepository && rule.OCI != nil:
		allow, deny = rule.OCI.Allow, rule.OCI.Deny
	}
	if len(allow)+len(deny) == 0 {
		return found{}, false
	}
	field, quoted := "sources."+string(source.Type), few.Line(withoutUser(source.URL), maxQuoted)
	at, plain := placeOf(source)
	switch {
	case !plain && len(allow) > 0:
		return found{field + ".allow", fmt.Sprintf(unclear, quoted)}, true
	case !plain:
		return found{field + ".deny", fmt.Sprintf(unclear, quoted)}, true
	case len(allow) > 0 && !slices.ContainsFunc(allow, at.allowedBy):
		return found{field + ".allow", fmt.Sprintf("is fetched from %s, which is not among the allowed sources: %s", quoted, listed(allow))}, true
	case slices.ContainsFunc(deny, at.deniedBy):
		return found{field + ".deny", fmt.Sprintf("is fetched from %s, which is among the refused sources: %s", quoted, listed(deny))}, true
	}
	return found{}, false
}

// unclear is why a source breaks each rule that has patterns for its type.
const unclear = "is fetched from %s, which servers may read in several ways: write it in Git in ASCII letters, without query, fragment, percent signs, and dots or nothing between slashes"

// place is a source as patterns are compared with it. at is the host in lowercase, without the port that its scheme has anyway, and the path without
// ".git"; scheme is "" in registries.
type place struct{ scheme, at string }

var schemePorts = map[string]string{"https": "443", "http": "80", "ssh": "22"}

// placeOf returns the place of a source. plain reports whether its URL can be read in one way only.
func placeOf(source Source) (p place, plain bool) {
	if name, oci := strings.CutPrefix(source.URL, ociScheme); oci {
		// Its host is the first part, whatever it is; "acme/web" is no repository of docker.io here.
		host, below, _ := strings.Cut(strings.ToLower(name), "/")
		return place{at: registryOf(host) + "/" + below}, isPlain("/"+name) && !strings.ContainsAny(name, "?#")
	}
	u, err := url.Parse(source.URL)
	if err != nil || u.Opaque != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return place{}, false
	}
	at := strings.TrimSuffix(u.EscapedPath(), "/")
	host := withoutPort(u.Scheme, strings.TrimSuffix(strings.ToLower(u.Host), "."))
	return place{u.Scheme, host + strings.TrimSuffix(at, ".git")}, host != "" && isPlain("/"+host+at)
}

// isPlain reports whether a path of a URL is only in letters that stand for themselves, and leads nowhere else.
func isPlain(at string) bool {
	return path.Clean(at) == at && !strings.ContainsFunc(at, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' || r == '%' || r == '\\' })
}

func withoutPort(scheme, host string) string {
	return strings.TrimSuffix(host, ":"+schemePorts[scheme])
}

// allowedBy reports whether a pattern has the place. Only a pattern that says so allows http://.
func (p place) allowedBy(pattern string) bool {
	at, has := inScheme(pattern, p.scheme)
	return has && compiled(at).MatchString(p.at)
}

// inScheme returns a pattern as places of a scheme are compared with it, and whether it has any of these.
func inScheme(pattern, of string) (at string, has bool) {
	scheme, rest, found := strings.Cut(pattern, "://")
	if !found {
		scheme, rest = "", pattern
	}
	if scheme == "" && of == "http" || scheme != "" && scheme != of {
		return "", false
	}
	host, below, _ := strings.Cut(strings.TrimSuffix(rest, ".git"), "/")
	if host = withoutPort(of, host); below != "" {
		host += "/" + below
	}
	return host, true
}

// deniedBy reports whether a pattern has the place, whatever the letters' case, and whatever the scheme if the pattern has none: many hosts take both for
// the same repository.
func (p place) deniedBy(pattern string) bool {
	p.at = strings.ToLower(p.at)
	pattern = strings.ToLower(pattern)
	if !strings.Contains(pattern, "://") && p.scheme != "" {
		pattern = p.scheme + "://" + pattern
	}
	return p.allowedBy(pattern)
}

// withoutUser returns a URL without the name and password in it.
func withoutUser(text string) string {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		u.User = nil
		return u.String()
	}
	return text
}
