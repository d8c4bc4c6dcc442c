// Package pullsecret says which Registries a tenant may use, and makes the Secrets by which images are pulled from them. It is pure.
package pullsecret

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/reference"
)

// Of returns the registries that a tenant may use, sorted by name: those that name the tenant, or a policy that it is under. Registries that
// are being deleted are left out. Of two registries of one host it has the first: kubeop refuses two in Git, but not those that people
// create with kubectl.
func Of(tenant *v1alpha1.Tenant, policies []v1alpha1.Policy, registries []v1alpha1.Registry) []*v1alpha1.Registry {
	var all []*v1alpha1.Registry
	for i := range registries {
		if registries[i].DeletionTimestamp == nil && May(tenant, policies, &registries[i]) {
			all = append(all, &registries[i])
		}
	}
	slices.SortFunc(all, func(a, b *v1alpha1.Registry) int { return cmp.Compare(a.Name, b.Name) })
	taken := map[string]bool{}
	return slices.DeleteFunc(all, func(r *v1alpha1.Registry) bool {
		second := taken[r.Spec.Host]
		taken[r.Spec.Host] = true
		return second
	})
}

// May reports whether a tenant may use a registry.
func May(tenant *v1alpha1.Tenant, policies []v1alpha1.Policy, registry *v1alpha1.Registry) bool {
	if slices.Contains(registry.Spec.Tenants, tenant.Name) {
		return true
	}
	if len(registry.Spec.Policies) == 0 {
		return false
	}
	under, _ := guardrails.Select(tenant, policies)
	return slices.ContainsFunc(under, func(p v1alpha1.Policy) bool { return slices.Contains(registry.Spec.Policies, p.Name) })
}

// entry is an entry of a .dockerconfigjson.
type entry struct {
	Username      string `json:"username,omitempty"`
	Password      string `json:"password,omitempty"`
	Auth          string `json:"auth,omitempty"`
	IdentityToken string `json:"identitytoken,omitempty"`
	RegistryToken string `json:"registrytoken,omitempty"`
}

// hubKey is the key of Docker Hub in a .dockerconfigjson. Nodes find its credentials under no other.
const hubKey = "https://index.docker.io/v1/"

// authority is the key of the certificate authorities by which kubeop knows the registry.
const authority = "ca.crt"

// Content returns the data of a pull Secret for one host, from the data of the Secret of this namespace and name: .dockerconfigjson with an
// entry for the host, or username and password. It has no other entry, and of the other keys only ca.crt. Data without credentials for the host
// is ErrInvalid; the error has no part of the data but its keys.
func Content(namespace, name, host string, data map[string][]byte) (map[string][]byte, error) {
	auth, err := transport.AuthFromSecret(namespace, name, data)
	if err != nil {
		return nil, err
	}
	own, refresh, err := auth.ForHost(host)
	if err != nil {
		return nil, err
	}
	if own.Anonymous() && refresh == "" {
		return nil, fmt.Errorf("%w; %s", failure.New(failure.ErrInvalid, "it has no credentials for %s: neither an entry of that host in %s, nor username and password", host, corev1.DockerConfigJsonKey),
			auth.Write("username", "password"))
	}
	of := entry{Username: own.Username, Password: own.Password, IdentityToken: refresh, RegistryToken: own.BearerToken}
	if own.Username != "" || own.Password != "" {
		of.Auth = base64.StdEncoding.EncodeToString([]byte(own.Username + ":" + own.Password))
	}
	key := host
	if host == reference.Hub {
		key = hubKey
	}
	config, err := json.Marshal(map[string]any{"auths": map[string]entry{key: of}})
	if err != nil {
		return nil, fmt.Errorf("encoding the credentials for %s: %w", host, err)
	}
	content := map[string][]byte{corev1.DockerConfigJsonKey: config}
	if len(own.CA) > 0 {
		content[authority] = own.CA
	}
	return content, nil
}
