package signed

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestOnlyListsOfRulesThatHoldStay, and what is in a list already changes nothing.
func TestOnlyListsOfRulesThatHoldStay(t *testing.T) {
	spec := &v1alpha1.GuardrailsSpec{
		Deny:   []v1alpha1.AppliedPolicy{{Policy: "a", Signatures: "1"}, {Policy: "b"}, {Policy: "c", Signatures: "1"}},
		Warn:   []v1alpha1.AppliedPolicy{{Policy: "d", Signatures: "2"}},
		Signed: []v1alpha1.SignedImages{{Signatures: "0", Images: []string{"gone"}}, {Signatures: "1", Images: []string{"x"}}},
	}
	lists, changed, err := with(spec, []Verified{{"1", "x"}, {"0", "gone"}}, nil)
	if diff := cmp.Diff([]v1alpha1.SignedImages{{Signatures: "1", Images: []string{"x"}}}, lists); diff != "" || changed || err != nil {
		t.Errorf("changed %t, %v; -want +got:\n%s", changed, err, diff)
	}
	lists, changed, err = with(spec, []Verified{{"1", "y"}, {"2", "x"}}, nil)
	if diff := cmp.Diff([]v1alpha1.SignedImages{{Signatures: "1", Images: []string{"x", "y"}}, {Signatures: "2", Images: []string{"x"}}}, lists); diff != "" || !changed || err != nil {
		t.Errorf("changed %t, %v; -want +got:\n%s", changed, err, diff)
	}
	if diff := cmp.Diff([]string{"x"}, spec.Signed[1].Images); diff != "" {
		t.Errorf("the cache was changed:\n%s", diff)
	}
}

// TestAFullListDropsTheOldestThatNoAppAsksFor, and none that an app asks for: two apps would take turns, for ever.
func TestAFullListDropsTheOldestThatNoAppAsksFor(t *testing.T) {
	images := &Images{}
	images.Ask(types.NamespacedName{Namespace: "shop", Name: "web"}, []string{"0", "2"})
	images.Ask(types.NamespacedName{Namespace: "shop", Name: "gone"}, []string{"1"})
	images.Ask(types.NamespacedName{Namespace: "other", Name: "web"}, []string{"3"})
	images.Forget(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gone"}})
	var full []string
	for i := range v1alpha1.MaxSignedImages + 2 {
		full = append(full, fmt.Sprint(i))
	}
	left, err := bounded(full, images.wanted("shop"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0", "2", "4"}, left[:3]); diff != "" || len(left) != v1alpha1.MaxSignedImages {
		t.Errorf("%d are left; -want +got:\n%s", len(left), diff)
	}
	all := map[string]bool{}
	for _, image := range left {
		all[image] = true
	}
	all["new"] = true
	if left, err := bounded(append(left, "new"), all); !errors.Is(err, ErrFull) || left != nil {
		t.Errorf("a list without room: %d images, %v", len(left), err)
	}
	spec := &v1alpha1.GuardrailsSpec{Deny: []v1alpha1.AppliedPolicy{{Policy: "a", Signatures: "1"}}, Signed: []v1alpha1.SignedImages{{Signatures: "1", Images: left}}}
	if _, changed, err := with(spec, []Verified{{"1", "new"}}, all); !errors.Is(err, ErrFull) || changed {
		t.Errorf("a list without room: changed %t, %v", changed, err)
	}
}
