package release

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Update turns a panic, which Helm would have in a goroutine of its own, into an error.
func (c *helmClient) Update(original, target kube.ResourceList, force bool) (result *kube.Result, err error) {
	defer recovered("updating the objects", &err)
	return c.Client.Update(original, target, force)
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
		names[i] = info.Mapping.GroupVersionKind.Kind + "/" + info.Name
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
