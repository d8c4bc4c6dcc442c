package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// pollInterval is short because every step of `up` waits for the one before it.
const pollInterval = 50 * time.Millisecond

// Client returns a client for a kubeconfig, with rate limits that do not delay the setup of the cluster.
func Client(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client from %s: %w", kubeconfig, err)
	}
	return client, nil
}

// WaitForAPI waits until the API server is ready.
func WaitForAPI(ctx context.Context, client kubernetes.Interface) error {
	return poll(ctx, "the API server", func(ctx context.Context) error {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
}

// WaitForControllers waits until the controllers work, which the objects show that they create in every namespace.
func WaitForControllers(ctx context.Context, client kubernetes.Interface) error {
	return poll(ctx, "the controllers", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// WaitForNode waits until the node is Ready and accepts pods.
func WaitForNode(ctx context.Context, client kubernetes.Interface, name string) error {
	return poll(ctx, "node "+name, func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return NodeReady(node)
	})
}

// NodeReady returns nil if the node is Ready and accepts pods, and otherwise the reason why not.
func NodeReady(node *corev1.Node) error {
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("it still has the taint %s", node.Spec.Taints[0].Key)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
		if condition.Type == corev1.NodeReady {
			return fmt.Errorf("it is not ready: %s", condition.Message)
		}
	}
	return errors.New("it has not reported whether it is ready")
}

// poll calls check until it succeeds. If the context ends first, it returns the last error of check.
func poll(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		if err := check(ctx); err != nil {
			if ctx.Err() == nil {
				last = err
			}
			return false, nil
		}
		return true, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("waiting for %s: %w", what, last)
	}
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
