package cluster

import (
	"fmt"
	"slices"

	"github.com/kubeop/kubeop/delivery/garbage"

	"helm.sh/helm/v3/pkg/kube"
	helm "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubeop/kubeop/delivery/finalizer"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// RemoveLeftovers deletes the objects of the revisions that are in no manifest of keep.
func (o Objects) RemoveLeftovers(revisions []*helm.Release, keep []string) error {
	goes, err := o.without(revisions, keep)
	if err != nil {
		return err
	}
	for _, u := range goes {
		if err := o.Remove(u); err != nil {
			return fmt.Errorf("removing %s/%s, which a failed attempt left: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

// without returns the objects of the revisions that are in no manifest of keep.
func (o Objects) without(revisions []*helm.Release, keep []string) ([]*unstructured.Unstructured, error) {
	seen := map[manifest.Identity]bool{}
	for _, text := range keep {
		docs, err := manifest.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("reading what the release keeps: %w", err)
		}
		for _, u := range manifest.Objects(docs) {
			seen[o.Identify(u)] = true
		}
	}
	all, err := o.of(revisions)
	return slices.DeleteFunc(all, func(u *unstructured.Unstructured) bool { return seen[o.Identify(u)] }), err
}

// Remove deletes an object of the release, unless the chart has it kept, it holds data, or it belongs to someone else.
func (o Objects) Remove(u *unstructured.Unstructured) error {
	info, err := o.live(u)
	if info == nil || err != nil || kept(info.Object) {
		return err
	}
	if o.shares(info.Namespace) {
		return o.Client.deleteShared(info, metav1.DeletePropagationBackground, kept)
	}
	live, err := unstructuredOf(info.Object)
	if err != nil {
		return err
	}
	return o.Client.deleteLive(info, live, metav1.DeletePropagationBackground)
}

// Remaining returns the objects that still exist, and what holds each. It leaves out objects with a resource policy, and claims that hold
// data, which no action deletes.
func (o Objects) Remaining(all []*unstructured.Unstructured) (left []*unstructured.Unstructured, holds []finalizer.Terminating, err error) {
	for _, u := range all {
		info, err := o.live(u)
		if err != nil {
			return nil, nil, fmt.Errorf("looking for %s/%s: %w", u.GetKind(), u.GetName(), err)
		}
		// Helm's uninstall keeps an object with any policy in its manifest, even with an unknown one.
		_, policy := u.GetAnnotations()[kube.ResourcePolicyAnno]
		if info != nil && !kept(info.Object) && !policy && !stays(info.Object) {
			live, err := meta.Accessor(info.Object)
			if err != nil {
				return nil, nil, fmt.Errorf("looking for %s/%s: %w", u.GetKind(), u.GetName(), err)
			}
			left, holds = append(left, u), append(holds, finalizer.Of(u.GetKind(), live))
		}
	}
	return left, holds, nil
}

// of returns the objects of the revisions, each once, as in the newest revision.
func (o Objects) of(revisions []*helm.Release) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	seen := map[manifest.Identity]bool{}
	for i := len(revisions) - 1; i >= 0; i-- {
		docs, err := manifest.Parse(revisions[i].Manifest)
		if err != nil {
			return nil, fmt.Errorf("reading revision %d: %w", revisions[i].Version, err)
		}
		for _, u := range manifest.Objects(docs) {
			if id := o.Identify(u); !seen[id] {
				seen[id] = true
				out = append(out, u)
			}
		}
	}
	return out, nil
}

// live returns the live object; nil if it does not exist, does not belong to the release, is in another namespace, or its kind is gone.
func (o Objects) live(u *unstructured.Unstructured) (*resource.Info, error) {
	list, err := build(o.Client, []manifest.Document{{Objects: []*unstructured.Unstructured{u}}})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	info := list[0]
	if o.shares(info.Namespace) {
		return o.liveShared(info)
	}
	if info.Namespace != o.Release.Namespace {
		return nil, nil
	}
	// The info's own Get would also request the namespace if the object is gone.
	info.Object, err = resource.NewHelper(info.Client, info.Mapping).Get(info.Namespace, info.Name)
	if apierrors.IsNotFound(err) || err == nil && !o.owns(info.Object) {
		return nil, nil
	}
	return info, err
}

// GuardData returns an error if an object of the revisions that will be deleted, because the new manifest lacks it, owns claims with data.
// It is called before anything else, also before hooks, because deleteLive would stop half-way. owned is called only if there is such an
// object.
func (o Objects) GuardData(revisions []*helm.Release, text string, owned func() (map[types.UID][]string, error)) error {
	goes, err := o.without(revisions, []string{text})
	if err != nil {
		return err
	}
	goes = slices.DeleteFunc(goes, func(u *unstructured.Unstructured) bool {
		return kept(u) || !garbage.MayOwnClaims(u.GroupVersionKind().GroupKind())
	})
	if len(goes) == 0 {
		return nil
	}
	claims, err := owned()
	if err != nil {
		return fmt.Errorf("looking for claims that would go with objects of the release: %w", err)
	}
	for _, u := range goes {
		if len(claims) > 0 && err == nil {
			err = o.inTheWay(u, claims)
		}
	}
	return err
}

// inTheWay returns an error if the live object owns claims.
func (o Objects) inTheWay(u *unstructured.Unstructured, owned map[types.UID][]string) error {
	info, err := o.live(u)
	if info == nil || err != nil {
		return err
	}
	live, err := unstructuredOf(info.Object)
	if err != nil || kept(live) {
		return err
	}
	return ownsData(live, owned)
}
