package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestRecordedPolicyHidesNoStricterOne: an object that was found to own claims is still of a kind that waits for confirmation.
func TestRecordedPolicyHidesNoStricterOne(t *testing.T) {
	crd := ObjectID{Name: "engines.example.com", Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	for _, recorded := range []v1alpha1.PrunePolicy{"", v1alpha1.PolicyConfirm, v1alpha1.PolicyClaims} {
		if got := PolicyOf(crd, v1alpha1.InventoryEntry{Policy: recorded}, nil); got != v1alpha1.PolicyConfirm {
			t.Errorf("recorded as %q it is protected by %q, want %q", recorded, got, v1alpha1.PolicyConfirm)
		}
	}
}

func TestAnnotationsDecideThePrunePolicy(t *testing.T) {
	const release, keep = "meta.helm.sh/release-name", "helm.sh/resource-policy"
	for name, c := range map[string]struct {
		annotations map[string]string
		want        v1alpha1.PrunePolicy
	}{
		"none":                          {nil, ""},
		"an unknown policy":             {map[string]string{v1alpha1.PruneAnnotation: "never"}, ""},
		"confirm":                       {map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneConfirm}, v1alpha1.PolicyConfirm},
		"disabled":                      {map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneDisabled}, v1alpha1.PolicyDisabled},
		"Helm keeps it":                 {map[string]string{release: "web", keep: "keep"}, v1alpha1.PolicyDisabled},
		"Helm keeps it, in other case":  {map[string]string{release: "web", keep: " Keep "}, v1alpha1.PolicyDisabled},
		"another policy of Helm":        {map[string]string{release: "web", keep: "delete"}, ""},
		"keep, but of no release":       {map[string]string{keep: "keep"}, ""},
		"confirm where Helm keeps it":   {map[string]string{release: "web", keep: "keep", v1alpha1.PruneAnnotation: v1alpha1.PruneConfirm}, v1alpha1.PolicyConfirm},
		"an object of a release, alone": {map[string]string{release: "web"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AnnotatedPolicy(&metav1.ObjectMeta{Annotations: c.annotations}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheStrictestPolicyCounts(t *testing.T) {
	confirm := &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneConfirm}}
	disabled := &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneDisabled}}
	for name, c := range map[string]struct {
		kind     string
		recorded v1alpha1.PrunePolicy
		live     metav1.Object
		want     v1alpha1.PrunePolicy
	}{
		"none":                              {"ConfigMap", "", nil, ""},
		"none of the live object either":    {"ConfigMap", "", &metav1.ObjectMeta{}, ""},
		"that of the record":                {"ConfigMap", v1alpha1.PolicyDisabled, nil, v1alpha1.PolicyDisabled},
		"the record's, over the live one's": {"ConfigMap", v1alpha1.PolicyDisabled, confirm, v1alpha1.PolicyDisabled},
		"the live one's, over the record's": {"ConfigMap", v1alpha1.PolicyConfirm, disabled, v1alpha1.PolicyDisabled},
		"that of the kind":                  {"PersistentVolumeClaim", "", &metav1.ObjectMeta{}, v1alpha1.PolicyConfirm},
		"the record's, over the kind's":     {"Namespace", v1alpha1.PolicyDisabled, nil, v1alpha1.PolicyDisabled},
		"it owned claims":                   {"ConfigMap", v1alpha1.PolicyClaims, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := PolicyOf(ObjectID{"shop", "web", "", c.kind}, v1alpha1.InventoryEntry{Policy: c.recorded}, c.live); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestPoliciesOfManifestsAreRecorded: an entry without a manifest keeps its recorded policy, because nothing else says it.
func TestPoliciesOfManifestsAreRecorded(t *testing.T) {
	manifest := func(name, policy string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		o.SetNamespace("shop")
		o.SetName(name)
		if policy != "" {
			o.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: policy})
		}
		return o
	}
	got, want := configMaps("set", "dropped", "left", "plain"), configMaps("set", "dropped", "left", "plain")
	got[1].Policy, got[2].Policy = v1alpha1.PolicyDisabled, v1alpha1.PolicyDisabled
	want[0].Policy, want[2].Policy = v1alpha1.PolicyConfirm, v1alpha1.PolicyDisabled
	RecordPolicies(got, []*unstructured.Unstructured{manifest("set", v1alpha1.PruneConfirm), manifest("dropped", ""), manifest("plain", ""), manifest("new", v1alpha1.PruneDisabled)})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
