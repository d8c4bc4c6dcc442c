package cluster

import (
	"fmt"
	"sync"

	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubeop/kubeop/delivery/quota"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// atOnce is how many objects of one kind are worked on at once.
const atOnce = 4

// Create creates the objects, one kind after the other. What is there already is adopted if it is the release's, as it is
// when an earlier attempt left it or the chart wants it kept, or if the terms say so.
func (c *Client) Create(list kube.ResourceList) (*kube.Result, error) {
	if len(list) == 0 {
		return c.Client.Create(list)
	}
	changes := make([]*change, len(list))
	seen := map[manifest.Identity]bool{}
	for i, info := range asking(list) {
		u, err := unstructuredOf(info.Object)
		if err != nil {
			return nil, err
		}
		id := c.Release.Identify(u)
		if seen[id] && u.GetName() != "" {
			return nil, fmt.Errorf("%s is in the manifest twice", nameOf(info))
		}
		seen[id] = true
		changes[i] = &change{client: c, info: info, want: u, phase: "install"}
	}
	if err := c.Faults.Note(c.carryOut(list, changes)); err != nil {
		return nil, err
	}
	return &kube.Result{Created: list}, nil
}

// Update brings the objects of the original manifest to the target, for as few requests as what is known of them allows,
// and deletes those that left the chart. It goes on after a failure, deletes nothing then, and names all that failed.
func (c *Client) Update(original, target kube.ResourceList, _ bool) (result *kube.Result, err error) {
	result = &kube.Result{}
	defer fault.Recovered("updating the objects", &err)
	before := map[manifest.Identity]*unstructured.Unstructured{}
	for _, info := range asking(original) {
		u, err := unstructuredOf(info.Object)
		if err != nil {
			return result, err
		}
		before[c.Release.Identify(u)] = u
	}
	changes := make([]*change, len(target))
	kept := map[manifest.Identity]bool{}
	for i, info := range asking(target) {
		u, err := unstructuredOf(info.Object)
		if err != nil {
			return result, err
		}
		id := c.Release.Identify(u)
		kept[id] = true
		changes[i] = &change{client: c, info: info, want: u, before: c.claimed(before[id]), phase: "upgrade"}
	}
	err = c.carryOut(target, changes)
	for _, ch := range changes {
		switch {
		case ch.created:
			result.Created = append(result.Created, ch.info)
		case ch.before != nil:
			result.Updated = append(result.Updated, ch.info)
		}
	}
	if err != nil {
		return result, c.Faults.Note(err)
	}
	for _, info := range original {
		if u, err := unstructuredOf(info.Object); err == nil && !kept[c.Release.Identify(u)] {
			result.Deleted = append(result.Deleted, info)
		}
	}
	return result, c.Faults.Note(fault.Join(each(webhooksFirst(result.Deleted), c.removeOld)...))
}

// UpdateThreeWayMerge is Update, which merges three ways whatever the kind.
func (c *Client) UpdateThreeWayMerge(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	return c.Update(original, target, force)
}

// claimed is an object of an earlier manifest as it was applied: with Helm's marks.
func (c *Client) claimed(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	u = u.DeepCopy()
	c.Release.Claim(u)
	return u
}

func (c *Client) carryOut(list kube.ResourceList, changes []*change) error {
	index := map[*resource.Info]*change{}
	for i, info := range list {
		index[info] = changes[i]
	}
	errs := each(list, func(info *resource.Info) error { return index[info].carryOut() })
	for _, ch := range changes {
		switch {
		case !ch.done:
		case c.Release.owns(ch.want):
			c.Sent[c.Release.Identify(ch.want)] = AppliedAs(ch.want, ch.live)
		case ch.created:
			c.hooked[ch.live.GetUID()] = true
		}
	}
	return fault.Join(errs...)
}

// each runs f on the infos, kind after kind, and returns an error for each that failed.
func each(list kube.ResourceList, f func(*resource.Info) error) []error {
	var errs []error
	for _, batch := range byKind(list) {
		failed := make([]error, len(batch))
		places := make(chan struct{}, atOnce)
		var all sync.WaitGroup
		for i, info := range batch {
			places <- struct{}{}
			all.Go(func() {
				defer func() { <-places }()
				failed[i] = named(info, guarded(info, f))
			})
		}
		all.Wait()
		errs = append(errs, failed...)
	}
	return errs
}

func guarded(info *resource.Info, f func(*resource.Info) error) (err error) {
	defer fault.Recovered("working on "+nameOf(info), &err)
	return f(info)
}

// byKind splits a list where the kind changes.
func byKind(list kube.ResourceList) []kube.ResourceList {
	var batches []kube.ResourceList
	for i, info := range list {
		if i == 0 || info.Mapping.GroupVersionKind.Kind != list[i-1].Mapping.GroupVersionKind.Kind {
			batches = append(batches, nil)
		}
		last := len(batches) - 1
		batches[last] = append(batches[last], info)
	}
	return batches
}

// change is what becomes of one object.
type change struct {
	client *Client
	info   *resource.Info
	// want is the object as it should be, before as the manifest before had it; nil when it had it not.
	want, before *unstructured.Unstructured
	// phase is the action's name in the app's spec, for messages.
	phase string
	// live is the API server's answer to what was sent.
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
		return ch.create()
	}
	sameVersion := ch.before.GetAPIVersion() == ch.want.GetAPIVersion()
	if unmoved := ch.client.Terms.Unmoved; sameVersion && unmoved != nil && unmoved(ch.before) {
		if sameMeaning(ch.before, ch.want) {
			return nil
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
		// Nothing says which fields of another version are which; what left the chart in the same step stays.
		return ch.merge(ch.want, live)
	}
	return ch.merge(ch.before, live)
}

func (ch *change) get() (*unstructured.Unstructured, error) {
	o, err := helper(ch.info).Get(ch.info.Namespace, ch.info.Name)
	if err != nil {
		return nil, err
	}
	return unstructuredOf(o)
}

// merge sends what differs. An object that is being deleted would take the change and be gone.
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
	err := quota.Create(func() (err error) {
		o, err = ch.helper().Create(ch.info.Namespace, true, ch.want)
		return err
	})
	if apierrors.IsAlreadyExists(err) {
		return ch.adopt(err)
	}
	if err != nil {
		return err
	}
	ch.created = true
	return ch.answered(o)
}

// answered lets Helm see the object as it is.
func (ch *change) answered(o runtime.Object) error {
	live, err := unstructuredOf(o)
	if err != nil {
		return err
	}
	ch.live = live
	return ch.info.Refresh(o, true)
}
