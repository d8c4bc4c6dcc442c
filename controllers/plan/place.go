package plan

import (
	"context"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/classes"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
	"github.com/kubeop/kubeop/gitops/tree"
)

// place finds where an App is delivered.
func (k *cluster) place(ctx context.Context, of *comparison, d *delivery) error {
	ref, _ := identity.Of(d.app)
	d.file, d.files = path.Join(d.app.Annotations[v1alpha1.FolderAnnotation], layout.AppFile), of.commit.Root
	d.at.Owner = own.Owner{Tenant: ref.Tenant, Project: ref.Project, App: ref.App, Namespace: d.app.Namespace}
	d.at.Namespace = &metav1.ObjectMeta{Name: d.app.Namespace}
	tenant, err := tenantOf(ctx, of, ref.Tenant)
	if err != nil {
		return err
	}
	owner := &v1alpha1.Project{}
	if err := of.client.Get(ctx, ref.Parent().Key(), owner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s: %w", ref.Parent(), err)
	}
	d.at.Tenant, d.homeless, d.at.PullSecrets = tenant, owner.UID == "", owner.Status.PullSecrets
	if ref.Tenant == v1alpha1.PlatformTenant {
		namespace := &corev1.Namespace{}
		if err := k.direct.Get(ctx, client.ObjectKey{Name: d.app.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading namespace %s: %w", d.app.Namespace, err)
		}
		d.at.Namespace, d.homeless = namespace, namespace.UID == ""
	}
	d.at.Guardrails, err = rulesFor(ctx, of, tenant, d.app.Namespace)
	if d.unruled = apierrors.IsForbidden(err); err != nil && !d.unruled {
		return err
	}
	d.at.Guardrails = Opening(of.tree, ref.Parent(), d.at.Guardrails)
	if d.at.Usual, err = classes.Find(ctx, of.client); err != nil {
		return err
	}
	d.at.Client, err = k.Clients.As(d.app.Namespace)
	return err
}

// rulesFor returns the rules of the policies that will hold in a namespace; nil if there are none yet, as in a project that does not exist yet. Only the
// platform repository declares policies.
func rulesFor(ctx context.Context, of *comparison, tenant *v1alpha1.Tenant, namespace string) (*v1alpha1.GuardrailsSpec, error) {
	if of.repository.Spec.Tenant == "" {
		under, _ := guardrails.Select(tenant, of.tree.DeclaredPolicies())
		rules := guardrails.For(tenant, under)
		return &rules, nil
	}
	live := &v1alpha1.Guardrails{}
	err := of.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.GuardrailsName}, live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) { // An older operator has no policies.
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the guardrails of namespace %s: %w", namespace, err)
	}
	return &live.Spec, nil
}

// Opening returns the rules with the defaults of containers and the NetworkPolicies that apps may have by a project of the tree of a commit. What they may open is known only if the project
// had such before; package guardrails does not judge it otherwise.
func Opening(of *tree.Tree, ref identity.Ref, rules *v1alpha1.GuardrailsSpec) *v1alpha1.GuardrailsSpec {
	project, declared := of.Declared(ref).(*v1alpha1.Project)
	if !declared {
		return rules
	}
	if rules != nil && len(rules.Limits) > 0 {
		rules = rules.DeepCopy()
		guardrails.InProject(rules, project.Spec.Limits)
	}
	policies := project.Spec.Network.Policies
	if policies != v1alpha1.OwnNetworkPolicies && (rules == nil || rules.Network == nil) {
		return rules
	}
	opened := &v1alpha1.GuardrailsSpec{}
	if rules != nil {
		opened = rules.DeepCopy()
	}
	if opened.Network == nil {
		opened.Network = &v1alpha1.AllowedNetwork{}
	}
	opened.Network.Policies = policies
	return opened
}

// tenantOf returns a Tenant as the commit declares it or, if it does not, the live one; an empty one if there is none.
func tenantOf(ctx context.Context, of *comparison, name string) (*v1alpha1.Tenant, error) {
	ref, live := identity.Ref{Tenant: name}, &v1alpha1.Tenant{}
	if err := of.client.Get(ctx, ref.Key(), live); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading %s: %w", ref, err)
	}
	n, there := of.tree.Find(ref)
	if !there || !n.Declared() {
		return live, nil
	}
	want, err := of.reader.Default(of.tree.Object(n, of.commit.Revision))
	if err != nil {
		return nil, err
	}
	tenant, ok := want.(*v1alpha1.Tenant)
	if !ok {
		return nil, fmt.Errorf("%s is a %T", ref, want)
	}
	return tenant, nil
}
