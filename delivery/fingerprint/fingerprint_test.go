package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// sealed is a seal under a key.
func sealed(key string) digest.Seal {
	return func(digest string) string {
		sum := sha256.Sum256([]byte(key + digest))
		return hex.EncodeToString(sum[:])
	}
}

func manifest(kind, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "web", "namespace": "shop"}, "data": map[string]any{"a": value, "b": "c"},
	}}
}

// live is an object of which kubeop owns fields.
func live(version, fields string) metav1.Object {
	return &metav1.ObjectMeta{ResourceVersion: version, ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)},
	}}
}

// TestFingerprintChangesWithTheManifestAndTheStateOnly compares each fingerprint to that of the first row.
func TestFingerprintChangesWithTheManifestAndTheStateOnly(t *testing.T) {
	seal := sealed("a key")
	for kind, rows := range map[string][]struct {
		name                   string
		value, version, fields string
		same                   bool
	}{
		"ConfigMap": {
			{"the same", "x", "1", `{"f:data":{}}`, true},
			{"another version", "x", "2", `{"f:data":{}}`, true},
			{"another manifest", "y", "1", `{"f:data":{}}`, false},
			{"other fields", "x", "1", `{"f:metadata":{}}`, false},
		},
		"Secret": {
			{"the same", "x", "1", `{"f:data":{}}`, true},
			{"another version", "x", "2", `{"f:data":{}}`, false},
			{"another manifest", "y", "1", `{"f:data":{}}`, false},
			{"other fields, which no watch has", "x", "1", `{"f:metadata":{}}`, true},
		},
	} {
		first := Of(manifest(kind, "x"), live("1", `{"f:data":{}}`), seal)
		for _, row := range rows {
			if got := Of(manifest(kind, row.value), live(row.version, row.fields), seal); (got == first) != row.same {
				t.Errorf("%s, %s: %q and %q", kind, row.name, first, got)
			}
		}
		if other := Of(manifest(kind, "x"), live("1", `{"f:data":{}}`), sealed("another")); other == first {
			t.Errorf("%s: the fingerprint of the manifest is not sealed: %q", kind, other)
		}
	}
	if got := StateOf(inventory.ObjectID{Kind: "Secret"}, live("7", "{}")); got != "@7" {
		t.Errorf("the state of a Secret is %q", got)
	}
	if got := StateOf(inventory.ObjectID{Kind: "ConfigMap"}, live("7", "{}")); len(got) != digestSize {
		t.Errorf("the state of a ConfigMap is %q", got)
	}
}

// TestRecordedDigestsAreSealed: an entry that was recorded before sealing matches the sealed manifest, and the recorded list is not changed.
func TestRecordedDigestsAreSealed(t *testing.T) {
	seal := sealed("a key")
	unsealed, wanted := OfManifest(manifest("ConfigMap", "x"), nil), OfManifest(manifest("ConfigMap", "x"), seal)
	state := strings.Repeat("0a", digestSize/2)
	entries := func(digests ...string) (all []v1alpha1.InventoryEntry) {
		for _, d := range digests {
			all = append(all, v1alpha1.InventoryEntry{ID: d, Digest: d})
		}
		return all
	}
	recorded := entries(unsealed+state, unsealed+"@7", wanted+state, state, "")
	got := Sealed(recorded, seal)
	want := entries(unsealed+state, unsealed+"@7", wanted+state, state, "")
	want[0].Digest, want[1].Digest = wanted+state, wanted+"@7"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if recorded[0].Digest != unsealed+state {
		t.Error("the recorded entries were changed")
	}
	if diff := cmp.Diff(recorded, Sealed(recorded, nil)); diff != "" {
		t.Errorf("without a seal (-want +got):\n%s", diff)
	}
	if rest := recorded[2:]; &Sealed(rest, seal)[0] != &rest[0] {
		t.Error("entries that need no seal are copied")
	}
}

// TestSlimKeepsWhatAllowsDeletion, also besides what protects the object, and changes no other object.
func TestSlimKeepsWhatAllowsDeletion(t *testing.T) {
	for name, c := range map[string]struct{ annotations, want map[string]string }{
		"one of them": {map[string]string{"a": "b", v1alpha1.AllowDeletionAnnotation: "yes"}, map[string]string{v1alpha1.AllowDeletionAnnotation: "yes"}},
		"both of them": {
			map[string]string{v1alpha1.AllowDeletionAnnotation: "yes", v1alpha1.VolumesRetainedAnnotation: ""},
			map[string]string{v1alpha1.AllowDeletionAnnotation: "yes", v1alpha1.VolumesRetainedAnnotation: ""},
		},
		"and a policy": {
			map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneConfirm, v1alpha1.VolumesRetainedAnnotation: "yes"},
			map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneConfirm, v1alpha1.VolumesRetainedAnnotation: "yes"},
		},
		"a policy": {map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneConfirm}, map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneConfirm}},
		"neither":  {map[string]string{"a": "b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}
			if _, err := Slim(o); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, o.Annotations); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if len(confirmed) != 1 || len(disabled) != 1 {
		t.Errorf("the shared annotations were changed: %v, %v", confirmed, disabled)
	}
	if got, err := Slim("no object"); got != "no object" || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}
