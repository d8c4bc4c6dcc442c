package apply

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/fingerprint"
)

func sealedBy(key string) digest.Seal {
	return func(digest string) string {
		h := hmac.New(sha256.New, []byte(key))
		h.Write([]byte(digest))
		return hex.EncodeToString(h.Sum(nil))
	}
}

// TestRecordedDigestsAreSealedWithoutAWrite takes over what a version recorded that did not seal digests.
func TestRecordedDigestsAreSealedWithoutAWrite(t *testing.T) {
	b := newFixture(t)
	secret := b.object("v1", "Secret", "login", map[string]any{"stringData": map[string]any{"password": "hunter2"}})
	set := func() (int64, error) { return b.apply(b.config("web", "a"), secret) }
	if _, err := set(); err != nil {
		t.Fatal(err)
	}
	plainly := b.recorded
	b.Seal = sealedBy("key")
	b.recorded = fingerprint.Sealed(plainly, b.Seal)
	if diff := cmp.Diff(b.recorded, fingerprint.Sealed(b.recorded, b.Seal)); diff != "" {
		t.Errorf("sealed twice it is another:\n%s", diff)
	}
	if writes, err := set(); err != nil || writes != 0 {
		t.Errorf("%d objects were written, %v", writes, err)
	}
	for i, e := range b.recorded {
		was := plainly[i].Digest
		if !strings.HasPrefix(e.Digest, "h") || strings.HasPrefix(e.Digest, was[:digestSize]) || e.Digest[digestSize:] != was[digestSize:] {
			t.Errorf("%s is recorded as %s, was %s", e.ID, e.Digest, was)
		}
	}
	if writes, err := b.apply(b.config("web", "b"), secret); err != nil || writes != 1 {
		t.Errorf("of one change %d objects were written, %v", writes, err)
	}
	b.Seal = sealedBy("another")
	if writes, err := b.apply(b.config("web", "b"), secret); err != nil || writes != 2 {
		t.Errorf("with another key %d objects were written, %v", writes, err)
	}
}

func TestOnlyManifestsAreSealed(t *testing.T) {
	state, manifest := strings.Repeat("1", digestSize), strings.Repeat("2", digestSize)
	seal := digest.Seal(sealedBy("key"))
	sealed := seal.Short(manifest)
	for recorded, want := range map[string]string{
		"": "", state: state, "@77": "@77", // of Helm's objects
		manifest + state: sealed + state, manifest + "@77": sealed + "@77", sealed + state: sealed + state, sealed + "@77": sealed + "@77",
	} {
		if got := fingerprint.Sealed([]v1alpha1.InventoryEntry{{ID: "a_b__C", Digest: recorded}}, seal)[0].Digest; got != want {
			t.Errorf("%q is sealed as %q, want %q", recorded, got, want)
		}
	}
	entries := []v1alpha1.InventoryEntry{{ID: "a_b__C", Digest: manifest + state}}
	if fingerprint.Sealed(entries, seal); entries[0].Digest != manifest+state {
		t.Error("what was given is changed")
	}
}

// TestALedgerTakesOverPlainDigests, whose objects it then knows as they were left.
func TestALedgerTakesOverPlainDigests(t *testing.T) {
	b := newFixture(t)
	first := NewLedger(b.Applier, b.Client, v1alpha1.Inventory{})
	if err := first.Apply(t.Context(), b.config("web", "a")); err != nil {
		t.Fatal(err)
	}
	b.Seal = sealedBy("key")
	before := b.writes.Load()
	next := NewLedger(b.Applier, b.Client, first.Inventory())
	var settled metav1.Object
	settled, err := next.Settled(t.Context(), b.config("web", "a"))
	if err == nil {
		err = next.Apply(t.Context(), b.config("web", "a"))
	}
	if err != nil || settled == nil || b.writes.Load() != before {
		t.Errorf("settled is %v, %d writes, %v", settled, b.writes.Load()-before, err)
	}
	if got := next.Inventory().Entries[0].Digest; !strings.HasPrefix(got, "h") {
		t.Errorf("it records %s", got)
	}
}

// digestSize is how many characters of a digest are recorded.
const digestSize = 16
