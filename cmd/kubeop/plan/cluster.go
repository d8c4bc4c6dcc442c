package plan

import (
	"context"
	"fmt"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/preview"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
)

// cluster renders Apps and compares them with what is there, over connections that write nothing.
type cluster struct {
	*preview.Renderer
	client client.Client
	// itself: the person may impersonate the projects' deployers.
	itself bool
}

// connect returns a cluster. folders returns a folder of the commit, and scratch is an empty folder.
func connect(ctx context.Context, config *rest.Config, c client.Client, folders func(*v1alpha1.App) (*folder.Folder, error), scratch string) (*cluster, error) {
	itself, err := mayImpersonate(ctx, c)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	as := config.Impersonate
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return dryRun{next, as, itself} })
	config.QPS = -1
	renderer, err := preview.New(ctx, preview.Options{Config: config, Client: c, Folder: folders, Scratch: scratch})
	return &cluster{renderer, c, itself}, err
}

// mayImpersonate reports whether the person may act as the deployers of projects, as administrators may.
func mayImpersonate(ctx context.Context, c client.Client) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "serviceaccounts", Name: v1alpha1.Deployer},
	}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking what you may do: %w", err)
	}
	return review.Status.Allowed, nil
}
