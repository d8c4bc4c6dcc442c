package plan

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/gitops/identity"
)

// place finds where an App is delivered.
func (k *cluster) place(ctx context.Context, of *comparison, d *delivery) error {
	ref, _ := identity.Of(d.app)
	d.at.Owner = own.Owner{Tenant: ref.Tenant, Project: ref.Project, App: ref.App, Namespace: d.app.Namespace}
	d.at.Namespace = &metav1.ObjectMeta{Name: d.app.Namespace}
	tenant, err := declaredOr(ctx, of, ref.Parent().Parent(), &v1alpha1.Tenant{})
	if err != nil {
		return err
	}
	project, err := declaredOr(ctx, of, ref.Parent(), &v1alpha1.Project{})
	if err != nil {
		return err
	}
	d.at.Tenant, d.homeless = tenant, project.UID == ""
	if ref.Tenant == v1alpha1.PlatformTenant {
		namespace := &corev1.Namespace{}
		if err := k.direct.Get(ctx, client.ObjectKey{Name: d.app.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading namespace %s: %w", d.app.Namespace, err)
		}
		d.at.Namespace, d.homeless = namespace, namespace.UID == ""
	}
	d.at.Client, err = k.Clients.As(d.app.Namespace)
	return err
}

// declaredOr returns a Tenant or Project as the commit declares it, with the UID of the live one, or the live one if the commit does not declare
// it; an empty one if there is none.
func declaredOr[T client.Object](ctx context.Context, of *comparison, ref identity.Ref, empty T) (T, error) {
	if err := of.client.Get(ctx, ref.Key(), empty); client.IgnoreNotFound(err) != nil {
		return empty, fmt.Errorf("reading %s: %w", ref, err)
	}
	n, there := of.tree.Find(ref)
	if !there || !n.Declared() || of.repository.Spec.Tenant != "" && ref.Project == "" {
		return empty, nil
	}
	want, err := of.reader.Default(of.tree.Object(n, of.commit.Revision))
	if err != nil {
		return empty, err
	}
	want.SetUID(empty.GetUID())
	typed, ok := want.(T)
	if !ok {
		return empty, fmt.Errorf("%s is a %T", ref, want)
	}
	return typed, nil
}
