package declared

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/pvc"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/plan"
)

// fewNamespaces is up to how many namespaces are read one by one; for more, one request reads all namespaces.
const fewNamespaces = 10

// Losses counts the contents of the objects that left the tree. direct reads claims and pods without a cache, so that they include a claim that
// was created just now. Apps counts the apps of each tenant concerned.
func Losses(ctx context.Context, reader, direct client.Reader, lost map[identity.Ref]client.Object) (losses []plan.Loss, apps map[string]int, err error) {
	b := below{reader: reader, direct: direct, claims: map[string][]corev1.PersistentVolumeClaim{}, pods: map[string]int{}}
	apps = map[string]int{}
	for ref, o := range lost {
		loss := plan.Loss{Ref: ref, UID: string(o.GetUID()), Preview: o.GetAnnotations()[v1alpha1.PreviewOfAnnotation] != ""}
		if lost[ref.Parent()] == nil && lost[ref.Parent().Parent()] == nil { // Otherwise its parent's check includes it.
			if loss.Namespaces, err = b.namespaces(ctx, ref); err != nil {
				return nil, nil, err
			}
			b.wanted = append(b.wanted, loss.Namespaces...)
		}
		losses = append(losses, loss)
		if ref.Tenant != "" {
			apps[ref.Tenant] = 0
		}
	}
	if err := b.look(ctx); err != nil {
		return nil, nil, err
	}
	for i := range losses {
		if err := b.fill(ctx, &losses[i]); err != nil {
			return nil, nil, err
		}
	}
	for tenant := range apps {
		if apps[tenant], err = b.appsOf(ctx, tenant); err != nil {
			return nil, nil, err
		}
	}
	return losses, apps, nil
}

// below has the contents of objects: their claims and pods, by namespace.
type below struct {
	reader, direct client.Reader
	wanted         []string
	claims         map[string][]corev1.PersistentVolumeClaim
	pods           map[string]int
}

// namespaces returns the project namespaces of an object.
func (b *below) namespaces(ctx context.Context, ref identity.Ref) ([]string, error) {
	switch {
	case ref.App != "", ref.OneFile():
		return nil, nil
	case ref.Project != "":
		return []string{v1alpha1.ProjectNamespace(ref.Tenant, ref.Project)}, nil
	}
	projects := &v1alpha1.ProjectList{}
	if err := b.reader.List(ctx, projects, client.InNamespace(v1alpha1.HomeNamespace(ref.Tenant)), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the projects of %s: %w", ref.Tenant, err)
	}
	var names []string
	for i := range projects.Items {
		names = append(names, v1alpha1.ProjectNamespace(ref.Tenant, projects.Items[i].Name))
	}
	return names, nil
}

// look reads the claims and counts the pods in the wanted namespaces.
func (b *below) look(ctx context.Context) error {
	places := b.wanted
	if len(places) > fewNamespaces {
		places = []string{metav1.NamespaceAll}
	}
	for _, place := range places {
		claims, err := pvc.List(ctx, b.direct, place)
		if err != nil {
			return err
		}
		for _, claim := range claims {
			if pvc.HoldsData(&claim) {
				b.claims[claim.Namespace] = append(b.claims[claim.Namespace], claim)
			}
		}
		pods := &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		if err := b.direct.List(ctx, pods, client.InNamespace(place)); err != nil {
			return fmt.Errorf("counting the pods that would go: %w", err)
		}
		for i := range pods.Items {
			b.pods[pods.Items[i].Namespace]++
		}
	}
	return nil
}

// fill adds the contents to a loss.
func (b *below) fill(ctx context.Context, loss *plan.Loss) error {
	for _, namespace := range loss.Namespaces {
		apps := &v1alpha1.AppList{}
		if err := b.reader.List(ctx, apps, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing the apps of %s: %w", namespace, err)
		}
		loss.Apps += len(apps.Items)
		loss.Pods += b.pods[namespace]
		if len(b.claims[namespace]) == 0 {
			continue
		}
		terms, err := b.terms(ctx, loss.Ref.Tenant, namespace)
		if err != nil {
			return err
		}
		for i := range b.claims[namespace] {
			claim := &b.claims[namespace][i]
			terms.Confirmed = map[types.UID]bool{claim.UID: true} // Check whether the claim would be deleted if it was confirmed.
			loss.Claims = append(loss.Claims, plan.Claim{
				Namespace: namespace, Name: claim.Name, UID: string(claim.UID), Size: claim.Status.Capacity.Storage().String(), Goes: terms.Take(claim),
			})
		}
	}
	return nil
}

// terms returns the terms by which claims in a project's namespace are deleted.
func (b *below) terms(ctx context.Context, tenant, namespace string) (pvc.Terms, error) {
	project, owner := &v1alpha1.Project{}, &v1alpha1.Tenant{}
	name := strings.TrimPrefix(namespace, v1alpha1.ProjectNamespace(tenant, ""))
	for ref, o := range map[identity.Ref]client.Object{{Tenant: tenant, Project: name}: project, {Tenant: tenant}: owner} {
		if err := b.reader.Get(ctx, ref.Key(), o); client.IgnoreNotFound(err) != nil {
			return pvc.Terms{}, fmt.Errorf("reading %s: %w", ref, err)
		}
	}
	return pvc.TermsOf(project, owner), nil
}

// appsOf counts the apps of a tenant.
func (b *below) appsOf(ctx context.Context, tenant string) (int, error) {
	projects, err := b.namespaces(ctx, identity.Ref{Tenant: tenant})
	n := 0
	for _, namespace := range projects {
		apps := &v1alpha1.AppList{}
		if err := b.reader.List(ctx, apps, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return 0, fmt.Errorf("listing the apps of %s: %w", namespace, err)
		}
		n += len(apps.Items)
	}
	return n, err
}
