package release

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
)

// helmClient is Helm's client without what costs requests and gains nothing. It embeds the client itself: Helm asserts
// the client's other interfaces.
type helmClient struct {
	*kube.Client
	deleting []error
}

// IsReachable asks nothing: storage was just read.
func (c *helmClient) IsReachable() error { return nil }

// Build leaves validation to the API server; Helm would load the whole OpenAPI document for each hook.
func (c *helmClient) Build(in io.Reader, _ bool) (list kube.ResourceList, err error) {
	defer recovered("reading the manifest", &err)
	return c.Client.Build(in, false)
}

// Create creates as Helm does, one kind after the other and the objects of a kind at once, and names what failed: not all
// errors of the API server do.
func (c *helmClient) Create(list kube.ResourceList) (*kube.Result, error) {
	if len(list) == 0 {
		return c.Client.Create(list)
	}
	var failed error
	for _, batch := range byKind(list) {
		failed = listed(failed, c.createAll(batch))
	}
	if failed != nil {
		return nil, failed
	}
	return &kube.Result{Created: list}, nil
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

func (c *helmClient) createAll(batch kube.ResourceList) error {
	errs := make([]error, len(batch))
	var all sync.WaitGroup
	for i, info := range batch {
		all.Go(func() {
			defer recovered("creating "+nameOf(info), &errs[i])
			_, err := c.Client.Create(kube.ResourceList{info})
			if only := errors.Unwrap(err); only != nil {
				err = only // Helm's list of one
			}
			errs[i] = named(info, err)
		})
	}
	all.Wait()
	return listed(errs...)
}

// listed is errors.Join on one line.
func listed(errs ...error) error {
	var all error
	for _, err := range errs {
		switch {
		case all == nil:
			all = err
		case err != nil:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// named adds the object's name to an error that lacks it.
func named(info *resource.Info, err error) error {
	if err == nil || strings.Contains(err.Error(), strconv.Quote(info.Name)) {
		return err
	}
	return fmt.Errorf("%s: %w", nameOf(info), err)
}

func nameOf(info *resource.Info) string { return info.Mapping.GroupVersionKind.Kind + "/" + info.Name }

// createFailed begins Helm's error when an update could not create an object; that object is the last of the created.
const createFailed = "failed to create resource"

// Update turns a panic, which Helm would have in a goroutine of its own, into an error. It names what could not be
// created.
func (c *helmClient) Update(original, target kube.ResourceList, force bool) (result *kube.Result, err error) {
	defer recovered("updating the objects", &err)
	result, err = c.Client.Update(original, target, force)
	if err != nil && result != nil && len(result.Created) > 0 && strings.HasPrefix(err.Error(), createFailed) {
		err = named(result.Created[len(result.Created)-1], err)
	}
	return result, err
}

// DeleteWithPropagationPolicy keeps the errors: Helm's uninstall says no more than that there were some.
func (c *helmClient) DeleteWithPropagationPolicy(list kube.ResourceList, policy metav1.DeletionPropagation) (*kube.Result, []error) {
	result, errs := c.Client.DeleteWithPropagationPolicy(list, policy)
	c.deleting = errs
	return result, errs
}

// deletionFailed returns why objects could not be deleted.
func (c *helmClient) deletionFailed() error { return errors.Join(c.deleting...) }

// WatchUntilReady waits for a hook and names it in the error; Helm says only that time was up.
func (c *helmClient) WatchUntilReady(list kube.ResourceList, timeout time.Duration) error {
	err := c.Client.WatchUntilReady(list, timeout)
	if err == nil {
		return nil
	}
	names := make([]string, len(list))
	for i, info := range list {
		names[i] = nameOf(info)
	}
	return fmt.Errorf("waiting up to %s for %s: %w", timeout, strings.Join(names, ", "), err)
}

// GetPodList finds none: logs of hooks go nowhere, and Helm's client is not set up for it without IsReachable.
func (c *helmClient) GetPodList(string, metav1.ListOptions) (*corev1.PodList, error) {
	return &corev1.PodList{}, nil
}

// build reads objects of a manifest for the client.
func build(client kube.Interface, docs []document) (kube.ResourceList, error) {
	text, err := write(docs)
	if err != nil {
		return nil, err
	}
	return client.Build(bytes.NewBufferString(text), false)
}

func recovered(act string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: Helm panicked: %v", act, p)
	}
}
