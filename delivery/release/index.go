package release

import (
	"context"
	"fmt"

	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// index returns the release's history from the metadata of its records, corrected by what this process itself wrote a
// moment ago. It costs no request where Options.Records is set.
func (e *Engine) index(ctx context.Context, req Request) (decide.State, error) {
	read := e.opts.Records
	if read == nil {
		read = e.lister(req)
	}
	seen, err := read(ctx, req.Namespace, req.Name)
	if err != nil {
		return nil, fmt.Errorf("reading the records of release %s: %w", req.Name, err)
	}
	return decide.StateOf(req.Name, e.slot(req.key()).memory.Correct(seen, e.opts.Now())), nil
}

// lister lists metadata as the request's user.
func (e *Engine) lister(req Request) func(context.Context, string, string) ([]metav1.PartialObjectMetadata, error) {
	return func(ctx context.Context, namespace, release string) ([]metav1.PartialObjectMetadata, error) {
		client, err := metadata.NewForConfig(e.impersonated(req))
		if err != nil {
			return nil, fmt.Errorf("connecting as %s: %w", req.User, err)
		}
		selector := metav1.ListOptions{LabelSelector: "owner=helm,name=" + release}
		list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace).List(ctx, selector)
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
}

// payload reads one revision, of which nothing is remembered.
func (e *Engine) payload(ctx context.Context, conn *cluster.Connection, req Request, number int) (*helm.Release, error) {
	rel, _, err := e.records(conn, req, &records.Memo{}).Read(ctx, number)
	return rel, err
}
