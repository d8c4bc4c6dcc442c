package cluster

import (
	"errors"
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// removeOld deletes an object that left the chart, unless the chart has it kept.
func (c *Client) removeOld(info *resource.Info) error {
	if kept(info.Object) {
		return nil
	}
	err := c.deleteOwn(info, metav1.DeletePropagationBackground, kept)
	if c.Release.shares(info.Namespace) && apierrors.IsForbidden(err) {
		// The upgrade itself succeeded. The object is missing in Outcome.Shared, so the caller deletes it or reports it.
		c.Log("%s stays: %v", nameOf(info), err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting what left the chart: %w", err)
	}
	return nil
}

// deleteOwn deletes an object of a manifest if the live object belongs to this release. The manifest alone does not prove that: an install
// that was refused because the object belongs to someone else leaves such a manifest, and another release may have adopted the object.
// Objects for which spare returns true are kept, too.
func (c *Client) deleteOwn(info *resource.Info, policy metav1.DeletionPropagation, spare func(any) bool) error {
	if c.Release.shares(info.Namespace) {
		return c.deleteShared(info, policy, spare)
	}
	old, err := unstructuredOf(info.Object)
	if err != nil {
		return err
	}
	if unmoved := c.Terms.Unmoved; unmoved != nil && unmoved(old) {
		// The object is unchanged since this release wrote it, so it was not replaced, although its UID is unknown here.
		return c.deleteLive(info, old, policy)
	}
	if info.Namespace != c.Release.Release.Namespace {
		c.Log("%s stays: it is not of this namespace", nameOf(info))
		return nil
	}
	live, err := Live(info)
	if live == nil || spare(live) {
		return err
	}
	if !c.Release.owns(live) && !c.hooked[live.GetUID()] || c.anotherApp(live) != "" {
		c.Log("%s stays: it does not belong to this release", nameOf(info))
		return nil
	}
	return c.deleteLive(info, live, policy)
}

// Delete deletes hooks by their name, unless the object belongs to another app, or is shared and has no owner. It also deletes
// objects that the action itself created.
func (c *Client) Delete(list kube.ResourceList) (*kube.Result, []error) {
	return c.delete(list, func(info *resource.Info) error {
		if info.Name == "" {
			return errors.New("a hook with generateName has no name to be deleted by; its helm.sh/hook-delete-policy can only be hook-failed")
		}
		live, err := Live(info)
		if live == nil {
			return err
		}
		if app := c.anotherApp(live); app != "" {
			return &foreign{live: live, app: app}
		}
		if c.Release.shares(live.GetNamespace()) && live.GetLabels()[decide.AppLabel] != c.Terms.App && !c.Release.owns(live) && !c.hooked[live.GetUID()] {
			return &foreign{live: live, release: c.Release.Release, shared: true}
		}
		return c.deleteLive(info, live, metav1.DeletePropagationBackground)
	})
}

// DeleteWithPropagationPolicy deletes the objects of a release that is being uninstalled.
func (c *Client) DeleteWithPropagationPolicy(list kube.ResourceList, policy metav1.DeletionPropagation) (*kube.Result, []error) {
	return c.delete(list, func(info *resource.Info) error {
		return c.deleteOwn(info, policy, func(any) bool { return false })
	})
}

// delete records the errors, because Helm's uninstall reports only that there were some.
func (c *Client) delete(list kube.ResourceList, remove func(*resource.Info) error) (*kube.Result, []error) {
	errs := each(webhooksFirst(withClient(list)), func(info *resource.Info) error {
		if err := remove(info); err != nil {
			return fmt.Errorf("deleting: %w", err)
		}
		return nil
	})
	if err := c.Faults.Note(fault.Join(errs...)); err != nil {
		c.deleting = append(c.deleting, err)
		return nil, []error{err}
	}
	return &kube.Result{Deleted: list}, nil
}

// DeletionFailed returns why objects could not be deleted.
func (c *Client) DeletionFailed() error { return fault.Join(c.deleting...) }

// WaitForDelete waits until the objects are gone, except claims that are kept. Helm calls it for hooks that it deleted, most of which are
// gone at once.
func (c *Client) WaitForDelete(list kube.ResourceList, timeout time.Duration) error {
	left := withClient(list)
	err := c.await(timeout, nil, func() (bool, error) {
		for len(left) > 0 {
			o, err := helper(left[0]).Get(left[0].Namespace, left[0].Name)
			if !apierrors.IsNotFound(err) && !stays(o) {
				return false, named(left[0], err)
			}
			left = left[1:]
		}
		return true, nil
	})
	if errors.Is(err, errTimeUp) {
		return fmt.Errorf("waiting up to %s for %s to be gone: %w", timeout, nameOf(left[0]), err)
	}
	return c.Faults.Note(err)
}
