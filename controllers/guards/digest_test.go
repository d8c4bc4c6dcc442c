package guards

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestDefaultsOfTheAPIServerChangeNothing: a spec as the chart has it, and as the API server returns it, have one digest. With any other change it is another one.
func TestDefaultsOfTheAPIServerChangeNothing(t *testing.T) {
	const written = `
failurePolicy: Fail
matchConstraints:
  resourceRules:
    - {apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: ["*"], scope: Namespaced}
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
validations: [{expression: "1 < 2 && '&' != ''"}]
`
	spec := func() *admissionregistrationv1.ValidatingAdmissionPolicySpec {
		spec := &admissionregistrationv1.ValidatingAdmissionPolicySpec{}
		if err := yaml.UnmarshalStrict([]byte(written), spec); err != nil {
			t.Fatal(err)
		}
		return spec
	}
	digest := func(change func(*admissionregistrationv1.ValidatingAdmissionPolicySpec)) string {
		s := spec()
		change(s)
		digest, err := digestOf(s)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	want := digest(func(*admissionregistrationv1.ValidatingAdmissionPolicySpec) {})
	defaulted := digest(func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
		s.MatchConstraints.MatchPolicy = new(admissionregistrationv1.Equivalent)
		s.MatchConstraints.NamespaceSelector, s.MatchConstraints.ObjectSelector = &metav1.LabelSelector{}, &metav1.LabelSelector{}
		s.MatchConstraints.ResourceRules[1].Scope = new(admissionregistrationv1.AllScopes)
	})
	if defaulted != want {
		t.Errorf("the digest is %s with defaults, and %s without", defaulted, want)
	}
	for name, change := range map[string]func(*admissionregistrationv1.ValidatingAdmissionPolicySpec){
		"it fails open": func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
			s.FailurePolicy = new(admissionregistrationv1.Ignore)
		},
		"another expression": func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) { s.Validations[0].Expression = "true" },
		"no expression":      func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) { s.Validations = nil },
		"fewer objects": func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
			s.MatchConstraints.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		},
		"fewer resources": func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
			s.MatchConstraints.ResourceRules = s.MatchConstraints.ResourceRules[:1]
		},
		"exact versions alone": func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
			s.MatchConstraints.MatchPolicy = new(admissionregistrationv1.Exact)
		},
	} {
		if digest(change) == want {
			t.Errorf("%s: the digest is the same", name)
		}
	}
}

// TestAnObjectIsComparedOnce: the cache may pass what Compare returned to it again, when the spec is not there any more.
func TestAnObjectIsComparedOnce(t *testing.T) {
	o := policy("kubeop-volumes")
	o.Spec.FailurePolicy = new(admissionregistrationv1.Fail)
	digest, err := digestOf(&o.Spec)
	if err != nil {
		t.Fatal(err)
	}
	o.Annotations = map[string]string{specDigest: digest}
	for range 2 {
		if _, err := Compare(o); err != nil || !unchanged(o) || o.Spec.FailurePolicy != nil {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	without := policy("kubeop-volumes")
	if _, err := Compare(without); err != nil || unchanged(without) {
		t.Errorf("somebody removed the digest: %+v, %v", without, err)
	}
}
