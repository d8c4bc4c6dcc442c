package hostname

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/idna"
	"k8s.io/apimachinery/pkg/util/validation"
)

// wildcard is the first label of the name of a wildcard's claim. "*" cannot be in the name of an object. No host name may begin with it.
const wildcard = "wildcard--of"

// maxName is how long the name of an object can be, and a host name.
const maxName = 253

// profile maps international names to their ASCII form, as browsers do. Hyphens at the third and fourth place are allowed, as Kubernetes allows them.
var profile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(), idna.CheckHyphens(false))

// Normalize returns the one form of a host name that all its spellings have: lower case, international names in ASCII, no dot at the end.
// Wildcards begin with "*.". An error says why there can be no such host name.
func Normalize(host string) (string, error) {
	if len(host) > 4*maxName {
		return "", fmt.Errorf("is longer than %d characters", maxName)
	}
	name, any := strings.CutPrefix(host, "*.")
	name, err := profile.ToASCII(name)
	if name = strings.TrimSuffix(name, "."); len(name) > maxName {
		return "", fmt.Errorf("is longer than %d characters", maxName)
	}
	if err != nil || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", errors.New("is no host name")
	}
	if name == wildcard || strings.HasPrefix(name, wildcard+".") {
		return "", fmt.Errorf("begins with %s., which stands for wildcards", wildcard)
	}
	if any {
		name = "*." + name
	}
	if len(ClaimName(name)) > maxName {
		return "", fmt.Errorf("is longer than %d characters", maxName)
	}
	return name, nil
}

// ClaimName returns the name of the HostnameClaim of a normalized host name.
func ClaimName(name string) string {
	if domain, any := strings.CutPrefix(name, "*."); any {
		return wildcard + "." + domain
	}
	return name
}

// Wildcards returns the wildcards that have a normalized host name or wildcard, the narrowest first, without itself.
func Wildcards(name string) []string {
	var all []string
	name = strings.TrimPrefix(name, "*.")
	for {
		_, above, found := strings.Cut(name, ".")
		if !found {
			return all
		}
		all, name = append(all, "*."+above), above
	}
}

// Covers reports whether a wildcard has a normalized host name, or a wildcard below it.
func Covers(wildcard, name string) bool {
	domain, any := strings.CutPrefix(wildcard, "*.")
	return any && name != wildcard && strings.HasSuffix(name, "."+domain)
}
