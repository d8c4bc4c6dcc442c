package tenant

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// applyRepository applies the tenant's Repository, or deletes it if the spec has none any more. The objects that the repository declared stay, because
// they belong to the tenant.
func (r *Reconciler) applyRepository(ctx context.Context, s *scope) error {
	s.projects = len(s.declared.Items)
	if s.tenant.Spec.Repository == nil {
		s.unfollowed = declaredBy(s.tenant.Name, s.declared.Items)
	} else {
		repository, err := repositoryOf(s)
		if err != nil {
			return err
		}
		if err := s.made.Apply(ctx, repository); err != nil {
			return err
		}
	}
	return s.made.Prune(ctx, s.labels())
}

// declaredBy counts the projects that a repository declared.
func declaredBy(repository string, projects []v1alpha1.Project) int {
	n := 0
	for i := range projects {
		if projects[i].Labels[v1alpha1.RepositoryLabel] == repository {
			n++
		}
	}
	return n
}

// repositoryOf returns the Repository for spec.repository of the tenant.
func repositoryOf(s *scope) (*unstructured.Unstructured, error) {
	bound := s.tenant.Spec.Repository
	repository := &v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{
		URL: bound.URL, Ref: bound.Ref, Path: bound.Path, Tenant: s.tenant.Name,
		SecretRef: bound.SecretRef, HookSecretRef: bound.HookSecretRef, History: bound.History, Verify: bound.Verify,
		CommitStatus: bound.CommitStatus, Previews: bound.Previews,
		Polling: v1alpha1.Polling{Interval: bound.Interval},
	}}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&repository.Spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the repository of %s: %w", s.tenant.Name, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RepositoryKind))
	u.SetName(s.tenant.Name)
	labels := s.labels()
	if s.tenant.Spec.Frozen {
		labels[v1alpha1.FrozenLabel] = "true"
	}
	u.SetLabels(labels)
	// Otherwise its controller would need another request to add it.
	u.SetFinalizers([]string{v1alpha1.Finalizer})
	return u, nil
}

// removeRepository deletes the Repository first, so that it does not declare the projects again while they are being deleted.
func (r *Reconciler) removeRepository(ctx context.Context, s *scope) error {
	repository := &v1alpha1.Repository{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: s.tenant.Name}, repository)
	if apierrors.IsNotFound(err) || (err == nil && repository.Spec.Tenant != s.tenant.Name) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading repository %s: %w", s.tenant.Name, err)
	}
	if err := r.Client.Delete(ctx, repository); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting repository %s: %w", s.tenant.Name, err)
	}
	return step.Wait(v1alpha1.DeletingReason, time.Second, "repository %s is being deleted", s.tenant.Name)
}
