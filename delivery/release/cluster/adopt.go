package cluster

import (
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// adopt changes an object that is there already. What it has beyond the manifest stays: nothing says that this release
// put it there.
func (ch *change) adopt(exists error) error {
	own := ch.client.Release
	if !own.owns(ch.want) {
		if isClaim(ch.want) {
			return ch.reuse(exists)
		}
		return fmt.Errorf("%s exists: an earlier run left this hook, and its helm.sh/hook-delete-policy keeps it: %w", nameOf(ch.info), exists)
	}
	live, err := ch.get()
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	if ch.client.hookLeft(live) {
		return ch.remake(live)
	}
	if !ch.client.mayTake(live) {
		return ch.foreign(live, exists)
	}
	return ch.merge(ch.want, live)
}

// reuse has a hook that is a claim go on with the one that an earlier run left: no hook-delete-policy deletes what holds data. One that
// is not this app's, such as a person's, is not the hook's to use.
func (ch *change) reuse(exists error) error {
	live, err := ch.get()
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	if !holdsData(live) || live.GetLabels()[decide.AppLabel] != ch.client.Terms.App || ch.client.anotherApp(live) != "" {
		return fmt.Errorf("%s exists, and no hook deletes it: give the hook another name, or delete the claim: %w", nameOf(ch.info), exists)
	}
	return ch.answered(live)
}

// mayTake is whether this action may change an object that is there. What the whole cluster shares is another tenant's or the
// administrators', so takeOwnership does not take it over.
func (c *Client) mayTake(live *unstructured.Unstructured) bool {
	if c.anotherApp(live) != "" {
		return false
	}
	return c.Release.owns(live) || c.Terms.TakeOwnership && live.GetNamespace() != ""
}

// anotherApp names the app that kubeop has marked an object as, if it is not this one. Only kubeop sets that mark; no
// takeOwnership and no hook's deletion goes past it. Of what is in no namespace an app of the same name may be another
// project's.
func (c *Client) anotherApp(live *unstructured.Unstructured) string {
	labels := live.GetLabels()
	home := v1alpha1.ProjectNamespace(labels[v1alpha1.TenantLabel], labels[v1alpha1.ProjectLabel])
	if labels[decide.AppLabel] == c.Terms.App && (live.GetNamespace() != "" || home == c.Release.Release.Namespace) {
		return ""
	}
	return labels[decide.AppLabel]
}

// hookLeft is whether an object is what a hook of an earlier revision left: Helm does not mark it, but kubeop labels it.
func (c *Client) hookLeft(live *unstructured.Unstructured) bool {
	unmarked := live.GetAnnotations()[NameAnnotation] == ""
	return unmarked && c.Terms.Ran[c.Release.Identify(live)] && live.GetLabels()[decide.AppLabel] == c.Terms.App && c.anotherApp(live) == ""
}

// remake deletes an object and creates what is wanted in its place; of a claim that holds data it makes what is wanted.
func (ch *change) remake(live *unstructured.Unstructured) error {
	if holdsData(live) {
		return ch.merge(ch.want, live)
	}
	if err := ch.client.deleteAndWait(ch.info, live); err != nil {
		return err
	}
	return ch.create()
}

// foreign is an object that exists and is not the release's, or another app's.
type foreign struct {
	object, phase, app string
	// shared: it is in no namespace.
	shared bool
	err    error
}

func (ch *change) foreign(live *unstructured.Unstructured, err error) error {
	return &foreign{object: nameOf(ch.info), phase: ch.phase, app: ch.client.anotherApp(live), shared: live.GetNamespace() == "", err: err}
}

// notTaken is what there is to say of a cluster-scoped object that this release did not make.
const notTaken = "it is cluster-scoped and so the administrators', and takeOwnership does not take it over: ask them to remove it, or to annotate it as this release's"

func (e *foreign) Error() string {
	if e.app != "" {
		return fmt.Sprintf("%s exists and belongs to app %s; delete it, or take the label %s off if there is no such app", e.object, e.app, decide.AppLabel)
	}
	if e.shared {
		return fmt.Sprintf("%s exists and does not belong to this release; %s", e.object, notTaken)
	}
	return fmt.Sprintf("%s exists and does not belong to this release; delete it, or set %s.takeOwnership", e.object, e.phase)
}
func (e *foreign) Unwrap() error { return e.err }

// replace deletes an object that refuses a change and makes it anew. An object that the API server would refuse anew is
// left: asked to create it, without doing so, the server names what is wrong with it before it finds that it exists. A
// definition is left too: every object of its kind would go with it, be it whose it may. So is a claim: its volume would.
func (ch *change) replace(refused error) error {
	if isClaim(ch.want) {
		return fmt.Errorf("%w; force does not delete a PersistentVolumeClaim, because its volume goes with it: make a claim of another name and copy the data", refused)
	}
	if isKind(ch.want, apiextensionsv1.GroupName, "CustomResourceDefinition") {
		return fmt.Errorf("%w; force does not delete a CustomResourceDefinition, because every object of the kind goes with it: add a version to the definition, or define another kind", refused)
	}
	_, err := ch.helper().DryRun(true).Create(ch.info.Namespace, true, ch.want.DeepCopy())
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return refused
	}
	live, err := ch.get()
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading: %w", err)
	}
	if err == nil && ch.client.Release.owns(ch.want) && !ch.client.mayTake(live) {
		return refused
	}
	if err == nil {
		err = ch.client.deleteAndWait(ch.info, live)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("replacing, because it refuses the change (%w): %w", refused, err)
	}
	return ch.create()
}

// deleteAndWait deletes exactly this object and waits until it is gone.
func (c *Client) deleteAndWait(info *resource.Info, live *unstructured.Unstructured) error {
	if err := c.deleteLive(info, live, metav1.DeletePropagationBackground); err != nil {
		return err
	}
	err := c.await(c.patience(), nil, func() (bool, error) {
		now, err := helper(info).Get(info.Namespace, info.Name)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		u, err := unstructuredOf(now)
		return err == nil && u.GetUID() != live.GetUID(), err
	})
	if errors.Is(err, errTimeUp) {
		return &fault.Terminating{Objects: []string{nameOf(info)}}
	}
	return err
}
