package kubeconfigs

import (
	"errors"
	"strings"

	v1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/store"
)

// entry is a project in a kubeconfig.
type entry struct{ tenant, project, role string }

// name is that of the context.
func (e entry) name() string { return e.tenant + "/" + e.project }

// user is the name of the user. kubectl merges files, of which the first that has a name wins. So names of users and clusters have all that
// they depend on: no token goes to another API server, and no context gets another role.
func (s Server) user(e entry) string { return e.name() + "/" + e.role + "@" + s.host() }

// host is the host of the API server, with its port.
func (s Server) host() string { return strings.TrimPrefix(s.URL, "https://") }

// withToken returns a kubeconfig with a token.
func (s Server) withToken(k store.Kubeconfig, token string) (string, error) {
	user := func(e entry) string { return s.user(e) + "/" + k.ID }
	e := entry{k.Tenant, k.Project, k.Role}
	return s.write([]entry{e}, user, func(entry) v1.AuthInfo { return v1.AuthInfo{Token: token} })
}

// write returns a kubeconfig with a context for each project, of which the first one is the current one. user names the users, and as has
// their credentials.
func (s Server) write(all []entry, user func(entry) string, as func(entry) v1.AuthInfo) (string, error) {
	cluster := "kubeop@" + s.host()
	file := v1.Config{APIVersion: "v1", Kind: "Config", Clusters: []v1.NamedCluster{{Name: cluster, Cluster: v1.Cluster{Server: s.URL, CertificateAuthorityData: s.CA}}}}
	for _, e := range all {
		file.AuthInfos = append(file.AuthInfos, v1.NamedAuthInfo{Name: user(e), AuthInfo: as(e)})
		file.Contexts = append(file.Contexts, v1.NamedContext{Name: e.name(), Context: v1.Context{Cluster: cluster, AuthInfo: user(e), Namespace: v1alpha1.ProjectNamespace(e.tenant, e.project)}})
	}
	if len(all) > 0 {
		file.CurrentContext = all[0].name()
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		return "", errors.New("writing a kubeconfig") // The error may have the token.
	}
	return string(text), nil
}
