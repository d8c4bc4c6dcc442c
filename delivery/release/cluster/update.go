package cluster

import (
	"fmt"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// Create creates the objects, one kind after the other. An existing object is adopted if it belongs to the release, because an earlier
// attempt left it or the chart wants it kept, or if the terms allow it.
func (c *Client) Create(list kube.ResourceList) (*kube.Result, error) {
	if len(list) == 0 {
		return c.Client.Create(list)
	}
	changes := make([]*change, len(list))
	seen := map[manifest.Identity]bool{}
	for i, info := range withClient(list) {
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

// Update changes the objects of the original manifest to the target with as few requests as possible, and deletes those that left the
// chart. After a failure it continues, but deletes nothing, and it names all failed objects.
func (c *Client) Update(original, target kube.ResourceList, _ bool) (result *kube.Result, err error) {
	result = &kube.Result{}
	defer fault.Recovered("updating the objects", &err)
	before := map[manifest.Identity]*unstructured.Unstructured{}
	for _, info := range withClient(original) {
		u, err := unstructuredOf(info.Object)
		if err != nil {
			return result, err
		}
		before[c.Release.Identify(u)] = u
	}
	changes := make([]*change, len(target))
	kept := map[manifest.Identity]bool{}
	for i, info := range withClient(target) {
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

// UpdateThreeWayMerge is Update, which uses a three-way merge for every kind.
func (c *Client) UpdateThreeWayMerge(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	return c.Update(original, target, force)
}

// claimed returns an object of an earlier manifest as it was applied, with Helm's labels and annotations.
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
