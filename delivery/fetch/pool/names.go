package pool

import (
	"net"
	"net/url"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// repositoryShare begins the name under which a Repository's fetches count.
const repositoryShare = "repository "

// RepositoryTenant is the tenant on whose behalf a Repository is fetched: not the one it belongs to, whose apps would else take the
// room and the turns of the push that mends them.
func RepositoryTenant(name string) string { return repositoryShare + name }

// NameOf is the name of a tenant, or of the Repository that counts as one.
func NameOf(tenant string) string { return strings.TrimPrefix(tenant, repositoryShare) }

// Whose names a tenant in a message.
func Whose(tenant string) string {
	if strings.HasPrefix(tenant, repositoryShare) {
		return failure.Printable(tenant)
	}
	return "tenant " + failure.Printable(tenant)
}

// HostOf is the host of a source's URL, with its port, as Task wants it; "" where the URL has none. Of an image it is the
// registry.
func HostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	at := u.Port()
	if at == "" {
		at = map[string]string{"ssh": "22", "http": "80"}[u.Scheme]
	}
	if at == "" {
		at = "443"
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), at)
}
