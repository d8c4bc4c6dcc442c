package records

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Lister returns a function that lists the metadata of the records of a release.
func Lister(config *rest.Config) func(ctx context.Context, namespace, release string) ([]metav1.PartialObjectMetadata, error) {
	return func(ctx context.Context, namespace, release string) ([]metav1.PartialObjectMetadata, error) {
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("connecting as %s: %w", config.Impersonate.UserName, err)
		}
		selector := metav1.ListOptions{LabelSelector: "owner=helm,name=" + release}
		list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace).List(ctx, selector)
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
}
