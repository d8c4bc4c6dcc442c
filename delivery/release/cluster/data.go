package cluster

import (
	"context"
	"fmt"

	"helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/pvc"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// deleteLive deletes exactly this object if its UID is known, otherwise the object with its name. Every deletion of an action in a
// namespace uses it. It keeps a claim with data, whoever created the claim, because its deletion is not confirmed here. For an owner of
// such claims, it returns *ClaimsInTheWay.
func (c *Client) deleteLive(info *resource.Info, live *unstructured.Unstructured, policy metav1.DeletionPropagation) (err error) {
	if live.GetUID() == "" && (isClaim(live) || garbage.MayOwnClaims(live.GroupVersionKind().GroupKind())) {
		if live, err = Live(info); live == nil {
			return err
		}
	}
	if holdsData(live) {
		c.Log("%s stays: it holds data", nameOf(info))
		return nil
	}
	if err := c.takesClaims(live, policy); err != nil {
		return err
	}
	options := &metav1.DeleteOptions{PropagationPolicy: &policy}
	if uid := live.GetUID(); uid != "" {
		options.Preconditions = metav1.NewUIDPreconditions(string(uid))
		if version := live.GetResourceVersion(); isClaim(live) {
			options.Preconditions.ResourceVersion = &version // A claim that was bound meanwhile is checked again by the next try.
		}
	}
	if _, err = helper(info).DeleteWithOptions(info.Namespace, info.Name, options); apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Live returns the live object; nil if it does not exist or cannot be read.
func Live(info *resource.Info) (*unstructured.Unstructured, error) {
	o, err := helper(withClient(kube.ResourceList{info})[0]).Get(info.Namespace, info.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	return unstructuredOf(o)
}

// takesClaims returns an error if claims with data would be deleted with an object.
func (c *Client) takesClaims(live *unstructured.Unstructured, policy metav1.DeletionPropagation) error {
	if policy == metav1.DeletePropagationOrphan || !garbage.MayOwnClaims(live.GroupVersionKind().GroupKind()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), reasonTime)
	defer cancel()
	owned, err := c.owned(ctx)
	if err != nil {
		return fmt.Errorf("looking for claims that would go with it: %w", err)
	}
	return ownsData(live, owned)
}

func ownsData(live *unstructured.Unstructured, owned map[types.UID][]string) error {
	if claims := owned[live.GetUID()]; len(claims) > 0 {
		return &fault.ClaimsInTheWay{Object: live.GetKind() + "/" + live.GetName(), Claims: claims, Remedy: command.Disown(live.GetNamespace(), claims)}
	}
	return nil
}

// holdsData reports whether a live object is a claim that holds data. A claim that cannot be decoded counts as one.
func holdsData(live *unstructured.Unstructured) bool {
	if !isClaim(live) {
		return false
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, claim)
	return err != nil || pvc.HoldsData(claim)
}

// stays reports whether an object is a claim with data that is kept, and that nobody has deleted.
func stays(object runtime.Object) bool {
	live, err := unstructuredOf(object)
	return err == nil && holdsData(live) && !terminating(live)
}
