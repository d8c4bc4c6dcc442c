package guardrails

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/podspec"
	"github.com/kubeop/kubeop/delivery/reference"
)

// hub is the registry of images that name none, and library is the path of those that name no owner.
const (
	hub     = "docker.io"
	library = hub + "/library/"
)

// hubAliases are other names of the same registry.
var hubAliases = []string{"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

// digested matches an image that is named by its digest.
var digested = regexp.MustCompile(`@sha(256:[0-9a-f]{64}|512:[0-9a-f]{128})$`)

// images: pods may run only images that the policy allows.
func images(object *unstructured.Unstructured, rules *v1alpha1.PolicyRules) []found {
	rule := rules.Images
	if rule == nil {
		return nil
	}
	var broken []found
	for _, image := range imagesOf(object) {
		name := fullName(image)
		quoted := few.Line(image, maxQuoted)
		switch {
		case len(rule.Allow) > 0 && !matchesAny(rule.Allow, name):
			broken = append(broken, found{"images.allow", fmt.Sprintf("has the image %s, which is not among the allowed ones: %s", quoted, listed(rule.Allow))})
		case matchesAny(rule.Deny, name):
			broken = append(broken, found{"images.deny", fmt.Sprintf("has the image %s, which is among the refused ones: %s", quoted, listed(rule.Deny))})
		case rule.RequireDigest && !digested.MatchString(image):
			broken = append(broken, found{"images.requireDigest", fmt.Sprintf("has the image %s without a digest: write it in Git as %s@sha256:<digest>", quoted, quoted)})
		}
	}
	return broken
}

// imagesOf returns the images of an object's pod: those of its containers of every sort, and those of image volumes. Each is returned once.
func imagesOf(object *unstructured.Unstructured) []string {
	pod := podspec.Of(object)
	if pod == nil {
		return nil
	}
	containers, _ := pod.Containers()
	var all []string
	add := func(value any) {
		if image, _ := value.(string); image != "" && !slices.Contains(all, image) {
			all = append(all, image)
		}
	}
	for _, c := range containers {
		add(c["image"])
	}
	for _, volume := range maps(pod.Spec["volumes"]) {
		source, _ := volume["image"].(map[string]any)
		add(source["reference"])
	}
	return all
}

// fullName returns the name of an image without tag and digest, in lower case, with its registry as the kubelet reads it: the first part of the path
// is a registry if it has a dot, a port or an upper-case letter, or is "localhost"; otherwise the registry is docker.io.
func fullName(image string) string {
	name := reference.Name(image)
	first, _, found := strings.Cut(name, "/")
	registry := found && (strings.ContainsAny(first, ".:") || first == "localhost" || first != strings.ToLower(first))
	name = strings.ToLower(name)
	if !registry {
		name = hub + "/" + name
	}
	host, path, _ := strings.Cut(name, "/")
	host = strings.TrimSuffix(host, ":443")
	if slices.Contains(hubAliases, host) {
		host = hub
	}
	if host == hub && !strings.Contains(path, "/") {
		return library + path
	}
	return host + "/" + path
}

// matchesAny reports whether a full name matches one of the patterns.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return compiled(pattern).MatchString(name) })
}

// compiled returns the pattern as a regular expression. The schema allows only letters, digits and the characters in it.
func compiled(pattern string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, "[^/]*") + "(/.*)?$")
}
