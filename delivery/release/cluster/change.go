package cluster

import (
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/quota"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// change is the change of one object.
type change struct {
	client *Client
	info   *resource.Info
	// want is the wanted object. before is the object in the previous manifest; nil if that manifest does not have it.
	want, before *unstructured.Unstructured
	// phase is the action's name in the app's spec, for messages.
	phase string
	// live is the API server's answer to the write.
	live          *unstructured.Unstructured
	done, created bool
}

func (ch *change) carryOut() error {
	err := ch.update()
	ch.done = err == nil
	return err
}

func (ch *change) update() error {
	if ch.before == nil {
		return ch.add()
	}
	sameVersion := ch.before.GetAPIVersion() == ch.want.GetAPIVersion()
	if unmoved := ch.client.Terms.Unmoved; sameVersion && unmoved != nil && unmoved(ch.before) {
		if reflect.DeepEqual(ch.before.Object, ch.want.Object) {
			return nil // Not every object can be compared with itself, such as one with imagePullSecrets: [{}].
		}
		return ch.merge(ch.before, ch.before)
	}
	live, err := ch.get()
	if apierrors.IsNotFound(err) {
		return ch.create()
	}
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	switch {
	case ch.client.hookLeft(live):
		return ch.remake(live)
	case ch.client.Terms.Wary && !ch.client.mayTake(live), ch.client.anotherApp(live) != "":
		kind := ch.info.Mapping.Resource.GroupResource()
		return ch.foreign(live, apierrors.NewAlreadyExists(kind, ch.info.Name))
	}
	if !sameVersion {
		// The fields of different versions cannot be compared, so a field that left the chart in the same step stays.
		return ch.merge(ch.want, live)
	}
	return ch.merge(ch.before, live)
}

// add creates an object that the previous manifest does not have, or adopts the one that exists. A creation that the API server refuses
// because the object exists is charged to the namespace's quota all the same, until the quota is counted again, which takes minutes. So an
// object that probably exists is read first.
func (ch *change) add() error {
	if !ch.client.Terms.ReadFirst || ch.want.GetName() == "" || !ch.client.Release.owns(ch.want) {
		return ch.create()
	}
	live, err := ch.get()
	switch {
	case apierrors.IsNotFound(err):
		return ch.create()
	case err != nil:
		return fmt.Errorf("reading: %w", err)
	}
	return ch.adopt(live, apierrors.NewAlreadyExists(ch.info.Mapping.Resource.GroupResource(), ch.info.Name))
}

func (ch *change) get() (*unstructured.Unstructured, error) {
	o, err := helper(ch.info).Get(ch.info.Namespace, ch.info.Name)
	if err != nil {
		return nil, err
	}
	return unstructuredOf(o)
}

// merge sends the difference. An object that is being deleted is refused, because the change would be lost with it.
func (ch *change) merge(before, live *unstructured.Unstructured) error {
	if terminating(live) {
		return &fault.Terminating{Objects: []string{nameOf(ch.info)}}
	}
	p, err := threeWay(before, leaveScaled(before, ch.want, live), live)
	if err != nil {
		return fmt.Errorf("comparing: %w", err)
	}
	if p.empty() {
		return nil
	}
	o, err := ch.helper().Patch(ch.info.Namespace, ch.info.Name, p.kind, p.data, nil)
	switch {
	case apierrors.IsNotFound(err):
		return ch.create()
	case apierrors.IsInvalid(err) && ch.client.Terms.Force:
		return ch.replace(err)
	case err != nil:
		return err
	}
	return ch.answered(o)
}

func (ch *change) helper() *resource.Helper {
	if ch.client.Terms.Lenient {
		return helper(ch.info).WithFieldValidation(metav1.FieldValidationIgnore)
	}
	return helper(ch.info).WithFieldValidation(metav1.FieldValidationWarn)
}

func (ch *change) create() error {
	var o runtime.Object
	err := quota.Retry(func() (err error) {
		o, err = ch.helper().Create(ch.info.Namespace, true, ch.want)
		return err
	})
	if apierrors.IsAlreadyExists(err) {
		return ch.meet(err)
	}
	if err != nil {
		return err
	}
	ch.created = true
	return ch.answered(o)
}

// answered gives Helm the object from the API server's answer.
func (ch *change) answered(o runtime.Object) error {
	live, err := unstructuredOf(o)
	if err != nil {
		return err
	}
	ch.live = live
	return ch.info.Refresh(o, true)
}

// meet goes on with an object that exists although it was to be created.
func (ch *change) meet(exists error) error {
	owned := ch.client.Release.owns(ch.want)
	if !owned && !isClaim(ch.want) {
		return fmt.Errorf("%s exists: an earlier run left this hook, and its helm.sh/hook-delete-policy keeps it: %w", nameOf(ch.info), exists)
	}
	live, err := ch.get()
	switch {
	case err != nil:
		return fmt.Errorf("reading: %w", err)
	case !owned:
		return ch.reuse(live, exists)
	}
	return ch.adopt(live, exists)
}

// adopt changes an existing object. Fields that are not in the manifest stay, because this release may not have set them.
func (ch *change) adopt(live *unstructured.Unstructured, exists error) error {
	switch {
	case ch.client.hookLeft(live):
		return ch.remake(live)
	case !ch.client.mayTake(live):
		return ch.foreign(live, exists)
	}
	return ch.merge(ch.want, live)
}

// reuse lets a hook that is a claim use that of an earlier run, because no hook-delete-policy deletes data; not a person's or another app's.
func (ch *change) reuse(live *unstructured.Unstructured, exists error) error {
	if !holdsData(live) || live.GetLabels()[decide.AppLabel] != ch.client.Terms.App || ch.client.anotherApp(live) != "" {
		return fmt.Errorf("%s exists, and no hook deletes it: give the hook another name in Git; or %s: %w", nameOf(ch.info), command.DeleteClaim(live), exists)
	}
	return ch.answered(live)
}

// remake deletes an object and creates the wanted one in its place. A claim that holds data is changed instead.
func (ch *change) remake(live *unstructured.Unstructured) error {
	if holdsData(live) {
		return ch.merge(ch.want, live)
	}
	if err := ch.client.deleteAndWait(ch.info, live); err != nil {
		return err
	}
	return ch.create()
}

func (ch *change) foreign(live *unstructured.Unstructured, err error) error {
	return &foreign{live: live, phase: ch.phase, app: ch.client.anotherApp(live), release: ch.client.Release.Release, shared: live.GetNamespace() == "" && !ch.client.Release.Platform, err: err}
}

// replace deletes and recreates an object that refuses a change, if garbage.Recreatable allows it. deleteLive refuses if claims with data
// would be deleted with the object.
func (ch *change) replace(refused error) error {
	_, err := ch.helper().DryRun(true).Create(ch.info.Namespace, true, ch.want.DeepCopy())
	switch immutable, loss := garbage.Recreatable(ch.want.GroupVersionKind().GroupKind(), err); {
	case !immutable:
		return refused
	case loss != "":
		return fmt.Errorf("%w; force does not delete a %s, because %s", refused, ch.want.GetKind(), loss)
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
	err := c.await(c.waitTimeout(), nil, func() (bool, error) {
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
