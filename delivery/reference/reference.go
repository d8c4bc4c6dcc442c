// Package reference reads references of images.
package reference

import (
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Name returns a reference without its tag and digest.
func Name(reference string) string {
	name, _, _ := strings.Cut(reference, "@")
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name = name[:colon]
	}
	return name
}

// Hub is the registry of images that name none.
const Hub = "docker.io"

// hubAliases are other names of the same registry.
var hubAliases = []string{"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

// Host returns the registry of an image in lower case, with the port if the reference has one. As in Docker, the part before the first slash
// is a registry if it has a dot or a colon, or is localhost; other images are of Hub. See
// https://github.com/distribution/reference/blob/main/normalize.go.
func Host(image string) string {
	first, _, path := strings.Cut(image, "/")
	if !path || !strings.ContainsAny(first, ".:") && first != "localhost" && strings.ToLower(first) == first {
		return Hub
	}
	host := strings.ToLower(first)
	if slices.Contains(hubAliases, host) {
		return Hub
	}
	return host
}

// PullSecrets returns the names of the pull Secrets that images need, in their order, each once.
func PullSecrets(all []v1alpha1.PullSecret, images ...string) (names []string) {
	for _, secret := range all {
		if slices.ContainsFunc(images, func(image string) bool { return Host(image) == secret.Host }) {
			names = append(names, secret.Name())
		}
	}
	return names
}
