package guardrails

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
)

// verifyField is where rules about signatures are in the spec of a Policy.
const verifyField = "images.verify"

// pinned matches an image that is named by a digest of which cosign signs.
var pinned = regexp.MustCompile(`@(sha256:[0-9a-f]{64})$`)

// signaturesOf identifies rules about signatures: what was verified by other rules does not count.
func signaturesOf(rules *v1alpha1.ImageRules) string {
	if rules == nil || len(rules.Verify) == 0 {
		return ""
	}
	text, err := json.Marshal(rules.Verify)
	if err != nil {
		panic("encoding texts: " + err.Error()) // They hold only texts.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// rulesAbout returns the rules about signatures that are about an image.
func rulesAbout(name string, rules *v1alpha1.ImageRules) (about []v1alpha1.SignatureRule) {
	if rules == nil {
		return nil
	}
	for _, rule := range rules.Verify {
		if matchesAny(rule.Images, name) {
			about = append(about, rule)
		}
	}
	return about
}

// isSigned reports whether a list has an image.
func isSigned(signed []v1alpha1.SignedImages, signatures, image string) bool {
	return slices.ContainsFunc(signed, func(s v1alpha1.SignedImages) bool {
		return s.Signatures == signatures && slices.Contains(s.Images, image)
	})
}

// unsigned is a rule about signatures that an object breaks. image is as in Violation.
type unsigned struct{ image, why string }

// signatures: pods may run only images whose signatures kubeop verified.
func signatures(object *unstructured.Unstructured, applied *v1alpha1.AppliedPolicy, signed []v1alpha1.SignedImages) (broken []unsigned) {
	if applied.Images == nil || len(applied.Images.Verify) == 0 {
		return nil
	}
	for _, pulled := range imagesOf(object) {
		name := fullName(pulled.image)
		if len(rulesAbout(name, applied.Images)) == 0 {
			continue
		}
		quoted, digest := few.Line(pulled.image, maxQuoted), pinned.FindStringSubmatch(pulled.image)
		switch {
		case digest == nil:
			broken = append(broken, unsigned{"", fmt.Sprintf("has the image %s, which has to be signed, without a digest: write it in Git as %s@sha256:<digest>", quoted, quoted)})
		case !isSigned(signed, applied.Signatures, name+"@"+digest[1]):
			broken = append(broken, unsigned{name + "@" + digest[1], fmt.Sprintf("has the image %s, which has to be signed, and kubeop has verified no signature of it", quoted)})
		}
	}
	return broken
}
