// Package fingerprint computes the digest of an object that the inventory records: of its manifest, and of the fields that kubeop owns.
// While both are the same, the object is neither read nor written.
package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// Of returns the fingerprint of an object after a write: the digest of the applied manifest, and the state of the live object.
func Of(manifest *unstructured.Unstructured, live metav1.Object, seal digest.Seal) string {
	return OfManifest(manifest, seal) + StateOf(inventory.IDOf(manifest), live)
}

// ByVersion are kinds of objects of which any change counts, whoever makes it: their state is the resourceVersion.
type ByVersion []schema.GroupKind

// Of is the function Of, also for objects of these kinds.
func (v ByVersion) Of(manifest *unstructured.Unstructured, live metav1.Object, seal digest.Seal) string {
	if slices.Contains(v, manifest.GroupVersionKind().GroupKind()) {
		return OfManifest(manifest, seal) + versionMark + live.GetResourceVersion()
	}
	return Of(manifest, live, seal)
}

// IsVersion reports whether the state in a fingerprint is a resourceVersion.
func IsVersion(fingerprint string) bool { return strings.Contains(fingerprint, versionMark) }

// OfManifest returns the digest of a manifest, the first part of a fingerprint. 16 characters are enough to distinguish two manifests of
// one object. It is sealed, because it may be the manifest of a Secret.
func OfManifest(manifest *unstructured.Unstructured, seal digest.Seal) string {
	h := sha256.New()
	// Encoding what was decoded from JSON or YAML cannot fail, and sorts the keys.
	_ = json.NewEncoder(h).Encode(manifest.Object)
	return seal.Short(sum(h))
}

// plain matches a fingerprint that an earlier version recorded without sealing the manifest's digest. For objects of Helm no manifest is
// recorded.
var plain = regexp.MustCompile(`^[0-9a-f]{16}([0-9a-f]{16}|@.*)$`)

// Sealed returns the recorded entries with the digests of manifests sealed, as apply.Set needs them.
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

// versionMark is the prefix of a state that is only a resourceVersion.
const versionMark = "@"

// StateOf returns the state of a live object, which is also the fingerprint of an object of a Helm release: a digest of the fields that
// kubeop owns by managedFields. For a Secret, the watch keeps no fields, so its state is the resourceVersion and any change counts.
func StateOf(id inventory.ObjectID, live metav1.Object) string {
	if id.IsSecret() {
		return versionMark + live.GetResourceVersion()
	}
	h := sha256.New()
	h.Write([]byte(fieldmanager.OwnedFields(live)))
	return sum(h)
}

// SameState reports whether a recorded state is the present one. If the watch shows an older version than was recorded, the watch has not
// received the last write yet, which counts as the same.
func SameState(recorded, now string) bool {
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
