package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// helmManager is the field manager under which delivery/release has Helm write.
const helmManager = "helm"

// digestOf returns the state an object is left in: the manifest that was applied, and the state of the live object.
func (a *Applier) digestOf(manifest *unstructured.Unstructured, live metav1.Object) string {
	return a.manifestDigest(manifest) + StateOf(inventory.IDOf(manifest), live)
}

// manifestDigest is how a digest begins. 16 characters tell two manifests of one object apart. It is sealed: a manifest may be that of a
// Secret.
func (a *Applier) manifestDigest(manifest *unstructured.Unstructured) string {
	h := sha256.New()
	// Encoding what was decoded from JSON or YAML cannot fail, and sorts the keys.
	_ = json.NewEncoder(h).Encode(manifest.Object)
	return a.Seal.Short(sum(h))
}

// plain is the digest of an object that an earlier version recorded with a manifest's digest that is not sealed. Of Helm's objects no
// manifest is recorded.
var plain = regexp.MustCompile(`^[0-9a-f]{16}([0-9a-f]{16}|@.*)$`)

// Sealed are recorded entries with all that stands for a manifest sealed, as it is to be before they are given to Apply.
func Sealed(entries []v1alpha1.InventoryEntry, seal digest.Seal) []v1alpha1.InventoryEntry {
	if seal == nil || !slices.ContainsFunc(entries, func(e v1alpha1.InventoryEntry) bool { return plain.MatchString(e.Digest) }) {
		return entries
	}
	entries = slices.Clone(entries)
	for i, e := range entries {
		if plain.MatchString(e.Digest) {
			entries[i].Digest = seal.Short(e.Digest[:digestSize]) + e.Digest[digestSize:]
		}
	}
	return entries
}

// versionMark stands before a resourceVersion that is all that is known of an object's state.
const versionMark = "@"

// StateOf returns the state of a live object, as which one of a Helm release is recorded: the fields that are ours, as managedFields lists them (KEP-555). Of a Secret
// the watch keeps no fields; there any change counts.
func StateOf(id inventory.ObjectID, live metav1.Object) string {
	if id.IsSecret() {
		return versionMark + live.GetResourceVersion()
	}
	h := sha256.New()
	h.Write([]byte(ownedFields(live)))
	return sum(h)
}

// sameState reports whether a recorded state is the present one. A watch that shows an older version than was recorded has
// not seen the last write yet.
func sameState(recorded, now string) bool {
	if recorded == now {
		return true
	}
	left, version, ok1 := strings.Cut(recorded, versionMark)
	right, seen, ok2 := strings.Cut(now, versionMark)
	if !ok1 || !ok2 || left != right {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(seen, version)
	return err == nil && order < 0
}

// digestSize is how many characters of a digest are recorded.
const digestSize = 16

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil))[:digestSize] }

// ownedFields returns the fields that kubeop or its Helm applied and that nobody took over since, those that people added
// by hand, and when each was last written: with another value, a field stays its manager's. They are sorted by their text:
// the API server sorts a list's items by their keys, so that port 80 comes before 443, but whoever decodes an object and
// encodes it again sorts them so.
func ownedFields(live metav1.Object) string {
	var fields strings.Builder
	for _, f := range live.GetManagedFields() {
		if !owns(f) && !byHand(f) {
			continue
		}
		fields.Write(alike.sorted(f.FieldsV1))
		if f.Time != nil {
			fields.WriteString(f.Time.UTC().Format(time.RFC3339))
		}
	}
	return fields.String()
}

// owns reports whether an entry of managedFields is of kubeop's own applies, or of its Helm's. What kubeop writes otherwise,
// such as finalizers and requests, is not what it applied.
func owns(f metav1.ManagedFieldsEntry) bool {
	applied := f.Manager == v1alpha1.FieldManager && f.Operation == metav1.ManagedFieldsOperationApply
	return (applied || f.Manager == helmManager) && f.Subresource == "" && f.FieldsV1 != nil
}
