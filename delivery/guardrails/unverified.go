package guardrails

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
)

// Unverified is an image, a chart or an artifact whose signatures kubeop has to verify.
type Unverified struct {
	// Name is the full name of its repository, and Digest is "sha256:<hex>".
	Name, Digest string
	// Signatures identifies the rules of one policy. Rules are those of them that are about the image: each has to be satisfied.
	Signatures string
	Rules      []v1alpha1.SignatureRule
	// Action of the policy.
	Action v1alpha1.PolicyAction
	Policy string
}

// Image is "<full name>@<digest>", as SignedImages have it.
func (u Unverified) Image() string { return u.Name + "@" + u.Digest }

// Verifies reports whether a policy has rules about signatures. spec is nil if no policy holds.
func Verifies(spec *v1alpha1.GuardrailsSpec) bool {
	verifies := func(p v1alpha1.AppliedPolicy) bool { return p.Images != nil && len(p.Images.Verify) > 0 }
	return spec != nil && (slices.ContainsFunc(spec.Deny, verifies) || slices.ContainsFunc(spec.Warn, verifies) || slices.ContainsFunc(spec.Audit, verifies))
}

// SignaturesIn identifies the rules about signatures that hold. spec is nil if no policy holds.
func SignaturesIn(spec *v1alpha1.GuardrailsSpec) string {
	if spec == nil {
		return ""
	}
	var all []string
	for _, applied := range slices.Concat(spec.Deny, spec.Warn, spec.Audit) {
		if applied.Signatures != "" {
			all = append(all, applied.Signatures)
		}
	}
	return strings.Join(all, " ")
}

// UnverifiedIn returns what of an object has to be verified before it is checked. Images without a digest are left out: Check refuses them.
func UnverifiedIn(object *unstructured.Unstructured, spec *v1alpha1.GuardrailsSpec) (all []Unverified) {
	for _, pulled := range imagesOf(object) {
		if digest := pinned.FindStringSubmatch(pulled.image); digest != nil {
			all = append(all, unverified(fullName(pulled.image), digest[1], spec)...)
		}
	}
	return all
}

// UnverifiedSource is UnverifiedIn for a chart or an artifact that was fetched from a registry, with the digest of its manifest. spec is nil if no policy
// holds. A source whose URL can be read in several ways breaks the rules about signatures of every policy, because they may be about it.
func UnverifiedSource(source Source, digest string, spec *v1alpha1.GuardrailsSpec) (all []Unverified, broken []Violation) {
	if source.Type != OCIRepository || spec == nil {
		return nil, nil
	}
	at, plain := placeOf(source)
	if plain {
		return unverified(strings.ToLower(at.at), digest, spec), nil
	}
	for _, action := range []v1alpha1.PolicyAction{v1alpha1.DenyAction, v1alpha1.WarnAction, v1alpha1.AuditAction} {
		for _, applied := range *listOf(spec, action) {
			if applied.Images != nil && len(applied.Images.Verify) > 0 {
				u := Unverified{Action: action, Policy: applied.Policy}
				broken = append(broken, u.Violation(fmt.Sprintf(unclear, few.Line(withoutUser(source.URL), maxQuoted))))
			}
		}
	}
	return nil, broken
}

// unverified returns the policies by which signatures of an image have to be verified, in the order of actions and policies.
func unverified(name, digest string, spec *v1alpha1.GuardrailsSpec) (all []Unverified) {
	for _, action := range []v1alpha1.PolicyAction{v1alpha1.DenyAction, v1alpha1.WarnAction, v1alpha1.AuditAction} {
		for _, applied := range *listOf(spec, action) {
			u := Unverified{name, digest, applied.Signatures, rulesAbout(name, applied.Images), action, applied.Policy}
			if len(u.Rules) > 0 && !isSigned(spec.Signed, u.Signatures, u.Image()) {
				all = append(all, u)
			}
		}
	}
	return all
}

// Violation returns the rule about signatures as one that is broken. why is as in Violation.
func (u Unverified) Violation(why string) Violation {
	return Violation{Rule: Images, Policy: u.Policy, Action: u.Action, Field: verifyField, Why: why}
}
