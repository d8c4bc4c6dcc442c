package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// helmManager is the field manager under which delivery/release has Helm write.
const helmManager = "helm"

// digestOf returns the state an object is left in: the manifest that was applied and the fields that are ours on the live
// object, as managedFields lists them (KEP-555). 16 characters tell two states of one object apart.
func digestOf(manifest *unstructured.Unstructured, live metav1.Object) string {
	h := sha256.New()
	// Encoding what was decoded from JSON or YAML cannot fail, and sorts the keys.
	_ = json.NewEncoder(h).Encode(manifest.Object)
	h.Write([]byte(ownedFields(live)))
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// ownedFields returns the fields that kubeop or its Helm applied and that nobody took over since, and those that people
// added by hand.
func ownedFields(live metav1.Object) string {
	var fields strings.Builder
	for _, f := range live.GetManagedFields() {
		if owns(f) || byHand(f) {
			fields.Write(f.FieldsV1.GetRawBytes())
		}
	}
	return fields.String()
}

// owns reports whether an entry of managedFields is of kubeop's own applies, or of its Helm's.
func owns(f metav1.ManagedFieldsEntry) bool {
	return (f.Manager == v1alpha1.FieldManager || f.Manager == helmManager) && f.Subresource == "" && f.FieldsV1 != nil
}
