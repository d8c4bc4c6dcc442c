package kube

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// retries is the backoff for a watch that cannot be started: short at first, because a new RoleBinding is not effective at once, and
// finally twice a minute.
var retries = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 30 * time.Second}

// follow keeps rows in sync with the API server until the context ends. It passes the result of each list or watch to note (nil for
// success), and logs nothing: there is a watch for each namespace, and one cause often makes many of them fail.
func follow(ctx context.Context, objects metadata.ResourceInterface, into *rows, note func(error)) {
	lists := &toolscache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := objects.List(ctx, o) // The reflector's own context outlives the reflector.
			note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			events, err := objects.Watch(ctx, o)
			note(err)
			return events, err
		},
	}
	silent := logr.Discard()
	toolscache.NewReflectorWithOptions(lists, &metav1.PartialObjectMetadata{}, into, toolscache.ReflectorOptions{
		Name: "kubeop", Logger: &silent, Backoff: &retries,
	}).RunWithContext(klog.NewContext(ctx, silent))
}
