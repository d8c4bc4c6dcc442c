package guards

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// specDigest is the annotation in which the chart says what the digest of a spec is.
	specDigest = "paas.kubeop.io/spec-digest"
	// compared is an annotation in the cache: whether the spec has this digest.
	compared = "paas.kubeop.io/spec-compared"
)

// Compare is for the cache, before it holds an object. It notes of an admission policy or a binding of the chart whether its spec is the one that the chart
// installed, which it cannot be without a digest, and leaves the specs of policies out, which nobody reads. A cache may call it again with what it returned.
func Compare(object any) (any, error) {
	if o, ok := object.(client.Object); !ok || o.GetAnnotations()[compared] != "" {
		return object, nil
	}
	var spec any
	switch o := object.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		spec = o.Spec.DeepCopy()
		o.Spec, o.Status = admissionregistrationv1.ValidatingAdmissionPolicySpec{}, admissionregistrationv1.ValidatingAdmissionPolicyStatus{}
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		spec = o.Spec.DeepCopy()
		o.Spec = admissionregistrationv1.MutatingAdmissionPolicySpec{}
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		spec = &o.Spec
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		spec = &o.Spec
	default:
		return object, nil
	}
	o := object.(client.Object)
	digest, err := digestOf(spec)
	if err != nil {
		return nil, fmt.Errorf("computing the digest of %s: %w", o.GetName(), err)
	}
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[compared] = strconv.FormatBool(digest == annotations[specDigest])
	o.SetAnnotations(annotations)
	return object, nil
}

// unchanged reports whether an object in the cache has the spec that the chart installed.
func unchanged(o client.Object) bool { return o.GetAnnotations()[compared] != "false" }

// digestOf returns the digest of a spec as the chart computes it: of JSON, without what the API server fills in.
func digestOf(spec any) (string, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"matchConstraints", "matchResources"} {
		match, ok := content[name].(map[string]any)
		if !ok {
			continue
		}
		withoutDefaults(match)
		if len(match) == 0 {
			delete(content, name)
		}
	}
	text, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// withoutDefaults removes from a matchConstraints or matchResources the defaults, which the chart leaves out.
func withoutDefaults(match map[string]any) {
	if match["matchPolicy"] == string(admissionregistrationv1.Equivalent) {
		delete(match, "matchPolicy")
	}
	for _, name := range []string{"namespaceSelector", "objectSelector"} {
		if selector, ok := match[name].(map[string]any); ok && len(selector) == 0 {
			delete(match, name)
		}
	}
	for _, name := range []string{"resourceRules", "excludeResourceRules"} {
		rules, _ := match[name].([]any)
		for _, r := range rules {
			if rule, ok := r.(map[string]any); ok && rule["scope"] == string(admissionregistrationv1.AllScopes) {
				delete(rule, "scope")
			}
		}
	}
}
