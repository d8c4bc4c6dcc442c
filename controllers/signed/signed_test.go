package signed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

// TestAnImageIsListedWhenTheCacheHasIt. Another app may change the list first: that is no failure, and the next pass adds the image to the newest list.
func TestAnImageIsListedWhenTheCacheHasIt(t *testing.T) {
	kind := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "guardrails"}
	for name, c := range map[string]struct {
		image         string
		answer        error
		done, applied bool
		fails         string
	}{
		"one that the list has":     {"x", nil, true, false, ""},
		"a new one":                 {"y", nil, false, true, ""},
		"another app was faster":    {"y", apierrors.NewConflict(kind, "kubeop", errors.New("changed")), false, true, ""},
		"the list cannot be stored": {"y", apierrors.NewForbidden(kind, "kubeop", errors.New("no")), false, true, "listing signed images in the guardrails of namespace shop: "},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			there := &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: v1alpha1.GuardrailsName, ResourceVersion: "7"}}
			there.Spec.Deny = []v1alpha1.AppliedPolicy{{Policy: "a", Signatures: "1"}}
			there.Spec.Signed = []v1alpha1.SignedImages{{Signatures: "1", Images: []string{"x"}}}
			var sent []byte
			images := &Images{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(there).WithInterceptorFuncs(interceptor.Funcs{
				Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) (err error) {
					sent, err = json.Marshal(o)
					return errors.Join(err, c.answer)
				},
			}).Build()}
			done, err := images.Add(t.Context(), "shop", []Verified{{"1", c.image}})
			if done != c.done || (err != nil) != (c.fails != "") || err != nil && !strings.HasPrefix(err.Error(), c.fails) {
				t.Errorf("done %t, %v", done, err)
			}
			if (sent != nil) != c.applied {
				t.Errorf("sent %s", sent)
			}
			if want := `"images":["x","y"]`; c.applied && (!strings.Contains(string(sent), want) || !strings.Contains(string(sent), `"resourceVersion":"7"`)) {
				t.Errorf("sent %s, want %s on the version that was read", sent, want)
			}
		})
	}
}

// TestGuardrailsThatAreMissingAreAFailure: the controller of projects has not written them yet, so there is no list to add to.
func TestGuardrailsThatAreMissingAreAFailure(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	images := &Images{Client: fake.NewClientBuilder().WithScheme(scheme).Build()}
	if done, err := images.Add(t.Context(), "shop", []Verified{{"1", "x"}}); done || !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "namespace shop") {
		t.Errorf("done %t, %v", done, err)
	}
}
