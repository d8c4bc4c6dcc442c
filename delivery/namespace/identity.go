package namespace

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Identity returns a digest of a Tenant's lasting identity, which stays the same when a restored backup changes the UID: the repository
// that the Tenant is bound to or, without one, its folder in the platform repository and the set of its owners. A Tenant with the same name
// and the same identity is the same tenant. Identity is "" for a Tenant that has neither.
func Identity(tenant *v1alpha1.Tenant) string {
	var parts []string
	switch bound := tenant.Spec.Repository; {
	case bound != nil:
		parts = []string{"repository", normalised(bound.URL), path.Clean("/" + bound.Path)}
	case len(tenant.Spec.Owners) > 0:
		parts = []string{"owners", tenant.Annotations[v1alpha1.FolderAnnotation]}
		parts = append(parts, ownersOf(tenant)...)
	default:
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func ownersOf(tenant *v1alpha1.Tenant) []string {
	var owners []string
	for _, o := range tenant.Spec.Owners {
		owners = append(owners, o.Kind+"/"+o.Name)
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

// defaultPorts are left out of a URL: a tenant may switch from HTTPS to SSH and still follow the same repository.
var defaultPorts = map[string]string{"https": "443", "http": "80", "ssh": "22"}

// normalised returns the host and path of a repository's URL in one form for all spellings and protocols.
func normalised(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	host := strings.ToLower(u.Hostname())
	if port := u.Port(); port != "" && port != defaultPorts[strings.ToLower(u.Scheme)] {
		host += ":" + port
	}
	return host + strings.TrimSuffix(strings.TrimRight(path.Clean("/"+u.Path), "/"), ".git")
}
