package cluster

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"golang.org/x/sync/errgroup"
	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubeop/kubeop/delivery/release/fault"
)

// atOnce is how many objects of one kind are handled at once.
const atOnce = 4

// each runs f on the infos, one kind after the other, and returns an error for each info that failed.
func each(list kube.ResourceList, f func(*resource.Info) error) []error {
	var errs []error
	for _, batch := range byKind(list) {
		failed := make([]error, len(batch))
		var workers errgroup.Group
		workers.SetLimit(atOnce)
		for i, info := range batch {
			workers.Go(func() error {
				failed[i] = named(info, guarded(info, f))
				return nil // Continue with the other objects.
			})
		}
		_ = workers.Wait()
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

// webhooksFirst orders admission webhooks before the Services that they call, because without the Service nothing could be written. Helm's
// own order does not know these kinds. Other objects keep their order.
func webhooksFirst(list kube.ResourceList) kube.ResourceList {
	rank := func(info *resource.Info) int {
		if info.Mapping.GroupVersionKind.Group == admissionregistrationv1.GroupName {
			return 0
		}
		return 1
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b *resource.Info) int { return rank(a) - rank(b) })
	return sorted
}
