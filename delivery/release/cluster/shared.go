package cluster

import (
	"fmt"

	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/crd"
	"github.com/kubeop/kubeop/delivery/metadata"
)

// Shared is an object of a revision that is cluster-scoped or, in a release of the platform itself, in another namespace.
type Shared struct {
	Applied
	// Kept: the object's manifest has a policy that keeps it after an uninstall.
	Kept bool
}

// AsApplied describes the objects of a revision, which OfRevision returned, with the API server's answers to the writes of by; by is nil if
// another action made the revision.
func AsApplied(own, shared []*unstructured.Unstructured, by *Client) (applied []Applied, outside []Shared) {
	describe := func(u *unstructured.Unstructured) Applied {
		a := AppliedAs(u, nil)
		if by != nil {
			a.Live = by.Sent[by.Release.Identify(u)].Live
		}
		return a
	}
	for _, u := range own {
		applied = append(applied, describe(u))
	}
	for _, u := range shared {
		_, policy := u.GetAnnotations()[kube.ResourcePolicyAnno]
		outside = append(outside, Shared{describe(u), policy})
	}
	return applied, outside
}

// liveShared returns a live shared object; nil if it does not exist, or this release may not delete it.
func (o Objects) liveShared(info *resource.Info) (*resource.Info, error) {
	if isDefinition(info) {
		return nil, nil
	}
	live, err := o.Client.lookShared(info)
	if live == nil || !o.ownsShared(live) {
		return nil, err
	}
	info.Object = live
	return info, nil
}

// deleteShared deletes a shared object of the release in exactly the version that was checked, because administrators may replace
// it, or remove its labels, at any time. A CustomResourceDefinition is kept, because all objects of the kind would be deleted with it; the
// reader of Outcome.Shared deletes it once that is confirmed.
func (c *Client) deleteShared(info *resource.Info, policy metav1.DeletionPropagation, spare func(any) bool) error {
	if isDefinition(info) {
		c.Log("%s stays: every object of the kind would go with it", nameOf(info))
		return nil
	}
	for range maxMoves {
		live, err := c.lookShared(info)
		if live == nil || spare(live) {
			return err
		}
		if !c.Release.ownsShared(live) && !c.hooked[live.GetUID()] {
			c.Log("%s stays: it does not belong to this release", nameOf(info))
			return nil
		}
		if err := c.takesClaims(live, policy); err != nil {
			return err
		}
		uid, version := live.GetUID(), live.GetResourceVersion()
		options := &metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
		_, err = helper(info).DeleteWithOptions(info.Namespace, info.Name, options)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case apierrors.IsForbidden(err):
			return &untouchable{info, err}
		case !apierrors.IsConflict(err):
			return err
		}
	}
	return metadata.Changing("deleted")
}

// lookShared returns a shared object; nil if it does not exist. If the user lost the right to read it, the operator reads it: if it is
// gone, or belongs to someone else, there is nothing left to do.
func (c *Client) lookShared(info *resource.Info) (*unstructured.Unstructured, error) {
	live, err := Live(info)
	if !apierrors.IsForbidden(err) || c.operator == nil {
		return live, err
	}
	own, failed := c.operator()
	if failed != nil {
		return nil, failed
	}
	client, failed := own.of(info.Mapping.GroupVersionKind.GroupVersion())
	if failed != nil {
		return nil, failed
	}
	seen, failed := Live(&resource.Info{Client: client, Mapping: info.Mapping, Namespace: info.Namespace, Name: info.Name})
	if apierrors.IsForbidden(failed) {
		return nil, &untouchable{info, err}
	}
	return seen, failed
}

// untouchable is the error for a cluster-scoped object that the user may not delete any more.
type untouchable struct {
	info *resource.Info
	err  error
}

func (e *untouchable) Error() string {
	kind := command.Resource(e.info.Mapping.GroupVersionKind.GroupKind())
	return fmt.Sprintf("%s is cluster-scoped and this project may not delete it: %v; add its kind to %s, or %s", nameOf(e.info), e.err,
		command.OfTenant("spec.clusterKinds"), command.Delete(command.Administrator, kind, &metav1.ObjectMeta{Name: e.info.Name}))
}
func (e *untouchable) Unwrap() error { return e.err }

func isDefinition(info *resource.Info) bool {
	return info.Mapping.GroupVersionKind.GroupKind() == crd.Kind.GroupKind()
}
