package repository

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// TestAPriceListNamesTheCommitThatWroteIt, and keeps it through commits that leave its file as it is. Nobody would remove a finalizer of it.
func TestAPriceListNamesTheCommitThatWroteIt(t *testing.T) {
	k := watching(t)
	of := func(price string) *tree.Tree {
		return platformTree(t, map[string][3]string{
			"prices/standard.yaml": {"PriceList", "standard", `{default: true, currency: EUR, meters: [{name: pods, unit: hour, periods: [{from: "2026-01-01", tiers: [{price: "` + price + `"}]}]}]}`},
		})
	}
	var last *tree.Tree
	for _, commit := range []struct{ price, revision, author, want string }{
		{"1", "main@sha1:1", "Ann", "main@sha1:1 by Ann"}, {"1", "main@sha1:2", "Bob", "main@sha1:1 by Ann"}, {"2", "main@sha1:3", "Bob", "main@sha1:3 by Bob"},
	} {
		s := k.ofPlatform(of(commit.price))
		s.commit.Revision, s.commit.Author = commit.revision, commit.author
		tree.Changes(last, s.found, func(r identity.Ref) { s.progress.look(r) })
		if err := k.declare(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		last = s.found
		list := &v1alpha1.PriceList{}
		if err := k.api.Get(t.Context(), client.ObjectKey{Name: "standard"}, list); err != nil || len(list.Finalizers) > 0 {
			t.Fatalf("the finalizers are %v, %v", list.Finalizers, err)
		}
		if got := list.Annotations[v1alpha1.RevisionAnnotation] + " by " + list.Annotations[v1alpha1.AuthorAnnotation]; got != commit.want || string(list.Spec.Meters[0].Periods[0].Tiers[0].Price) != commit.price {
			t.Errorf("at %s it costs %s since %s", commit.revision, list.Spec.Meters[0].Periods[0].Tiers[0].Price, got)
		}
	}
	there, err := k.declaredBy(t.Context(), "platform")
	if _, is := there[identity.Ref{PriceList: "standard"}]; !is || err != nil {
		t.Errorf("the repository declared %v, %v", there, err)
	}
	list, err := k.live(t.Context(), k.ofPlatform(last).progress, identity.Ref{PriceList: "standard"})
	if err != nil || list == nil {
		t.Fatalf("it is %v, %v", list, err)
	}
	if err := k.api.Delete(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if err := k.api.Get(t.Context(), client.ObjectKeyFromObject(list), list); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}
