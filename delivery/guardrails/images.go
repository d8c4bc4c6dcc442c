package guardrails

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/lru"
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

// images refuses the images of a registry or repository that images.allow of a policy does not list or images.deny lists, images without a digest, and
// pull policies. The function sources refuses registries and repositories of charts and artifacts.
func images(object *unstructured.Unstructured, rules *v1alpha1.PolicyRules) []found {
	rule := rules.Images
	if rule == nil {
		return nil
	}
	var broken []found
	for _, pulled := range imagesOf(object) {
		image := pulled.image
		name := fullName(image)
		quoted := few.Line(image, maxQuoted)
		switch {
		case len(rule.Allow) > 0 && !matchesAny(rule.Allow, name):
			broken = append(broken, found{"images.allow", fmt.Sprintf("has the image %s, which is not among the allowed ones: %s", quoted, listed(rule.Allow))})
		case matchesAny(rule.Deny, name):
			broken = append(broken, found{"images.deny", fmt.Sprintf("has the image %s, which is among the refused ones: %s", quoted, listed(rule.Deny))})
		case rule.RequireDigest && !digested.MatchString(image):
			broken = append(broken, found{"images.requireDigest", fmt.Sprintf("has the image %s without a digest: write it in Git as %s@sha256:<digest>", quoted, quoted)})
		case len(rule.PullPolicies) > 0 && !slices.Contains(rule.PullPolicies, pulled.policy):
			broken = append(broken, found{"images.pullPolicies", fmt.Sprintf("has the image %s with imagePullPolicy %s; allowed are: %s", quoted, few.Line(pulled.policy, maxQuoted), listed(rule.PullPolicies))})
		}
	}
	return broken
}

// pulled is an image, and when a node asks the registry for it.
type pulled struct{ image, policy string }

// imagesOf returns the images of an object's pod: those of its containers of every sort, and those of image volumes. Each is returned once.
func imagesOf(object *unstructured.Unstructured) []pulled {
	pod := podspec.Of(object)
	if pod == nil {
		return nil
	}
	containers, _ := pod.Containers()
	var all []pulled
	add := func(named, policy any) {
		image, _ := named.(string)
		set, _ := policy.(string)
		one := pulled{image, cmp.Or(set, pullPolicy(image))}
		if image != "" && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	for _, c := range containers {
		add(c["image"], c["imagePullPolicy"])
	}
	for _, volume := range mappings(pod.Spec["volumes"]) {
		source, _ := volume["image"].(map[string]any)
		add(source["reference"], source["pullPolicy"])
	}
	return all
}

// pullPolicy is the imagePullPolicy that the API server sets if there is none: Always for an image whose tag is latest, or that has neither tag nor
// digest.
func pullPolicy(image string) string {
	tagged, _, digest := strings.Cut(image, "@")
	name := reference.Name(tagged)
	if tag := strings.TrimPrefix(tagged, name); tag == ":latest" || tag == "" && !digest {
		return string(corev1.PullAlways)
	}
	return string(corev1.PullIfNotPresent)
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
	host = registryOf(host)
	if host == hub && !strings.Contains(path, "/") {
		return library + path
	}
	return host + "/" + path
}

// zeros begin a port. Clients take :0443 for :443.
var zeros = regexp.MustCompile(`:0+`)

// registryOf returns one name for all names of a registry, given in lower case.
func registryOf(host string) string {
	host = strings.TrimSuffix(zeros.ReplaceAllString(host, ":"), ":443")
	if slices.Contains(hubAliases, host) {
		return hub
	}
	return host
}

// matchesAny reports whether a full name matches one of the patterns.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return compiled(pattern).MatchString(name) })
}

// maxPatterns is how many patterns are kept as expressions, of some KiB each.
const maxPatterns = 1000

// recent are the patterns that were used last: the same few patterns are compared with each image of each object.
var recent = struct {
	sync.Mutex
	compiled *lru.Cache[string, *regexp.Regexp]
}{compiled: lru.New[string, *regexp.Regexp](maxPatterns, nil)}

// compiled returns the pattern as a regular expression. The schema allows only letters, digits and the characters in it.
func compiled(pattern string) *regexp.Regexp {
	recent.Lock()
	defer recent.Unlock()
	known, ok := recent.compiled.Get(pattern)
	if !ok {
		known = regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, "[^/]*") + "(/.*)?$")
		recent.compiled.Add(pattern, known)
	}
	return known
}
