package budget

import "strings"

// repositoryPrefix is the prefix of the name under which a Repository's own fetches count. No tenant can have such a name, because it
// contains a space.
const repositoryPrefix = "repository "

// OfRepository returns the tenant that the fetches of a Repository count for. It is not the tenant to which the Repository belongs, because
// the apps of that tenant could use up the disk and the turns that are needed for the push that repairs them.
func OfRepository(name string) string { return repositoryPrefix + name }

// NameOf returns the name of a tenant, or of the Repository that counts as one.
func NameOf(tenant string) string { return strings.TrimPrefix(tenant, repositoryPrefix) }

// Describe names a tenant, or the Repository that counts as one, in a message.
func Describe(tenant string) string {
	if strings.HasPrefix(tenant, repositoryPrefix) {
		return tenant
	}
	return "tenant " + tenant
}
