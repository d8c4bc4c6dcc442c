package check

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
)

const referenceField = "spec.image.reference"

// The parts of an image reference as container runtimes read them: [registry/]name[:tag][@digest].
const (
	namePart = `[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*`
	hostPart = `[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?`
	registry = `(?:` + hostPart + `(?:\.` + hostPart + `)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?`
	tag      = `[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}`
	digest   = `sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}`
)

var (
	imageReference = regexp.MustCompile(`^((?:` + registry + `/)?` + namePart + `(?:/` + namePart + `)*)(?::` + tag + `)?(?:@(?:` + digest + `))?$`)
	imageID        = regexp.MustCompile(`^[a-f0-9]{64}$`)
)

// maxImageName is how long the name of an image may be without its registry, in bytes.
const maxImageName = 255

// checkImage reports an image reference that no container runtime can parse. The API server accepts any text, and the pod would never
// start.
func (d *Result) checkImage() {
	reference, ok, _ := unstructured.NestedString(d.Value, strings.Split(referenceField, ".")...)
	if ok && !d.explained(referenceField) {
		if why := wrongImage(reference); why != "" {
			d.AddAt(code.InvalidImage, referenceField, "%s: %s %s", referenceField, document.Quote(reference), why)
		}
	}
}

// wrongImage says what is wrong with an image reference; "" if a runtime can read it.
func wrongImage(reference string) string {
	m := imageReference.FindStringSubmatch(reference)
	switch {
	case imageID.MatchString(reference):
		return "is the ID of an image; write its name, such as registry.example/team/web:v1"
	case m == nil && imageReference.MatchString(strings.ToLower(reference)):
		return "is not an image reference: the name must be lowercase"
	case m == nil:
		return "is not an image reference, such as registry.example/team/web:v1"
	case len(withoutRegistry(m[1])) > maxImageName:
		return "is not an image reference: the name is too long"
	}
	return ""
}

// withoutRegistry returns an image's name without its registry. It decides by the rule of container runtimes
// where the registry ends.
func withoutRegistry(name string) string {
	first, rest, found := strings.Cut(name, "/")
	switch {
	case !found:
		return "library/" + name // the default registry, Docker Hub, keeps such images there
	case first == "localhost" || strings.ContainsAny(first, ".:") || strings.ToLower(first) != first:
		return rest
	}
	return name
}
