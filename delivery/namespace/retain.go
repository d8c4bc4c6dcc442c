package namespace

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/pvc"
)

// ClosedQuota is the name of the ResourceQuota that forbids new pods and claims in a namespace that is about to be deleted. Without it, a
// claim that was created after the check for data would be deleted too.
const ClosedQuota = "kubeop-closed"

// Close forbids new pods and claims in the namespace, and reports whether they were allowed until now.
func Close(ctx context.Context, c client.Client, name string, labels map[string]string) (closed bool, err error) {
	none := resource.MustParse("0")
	quota := core.ResourceQuota(ClosedQuota, name).WithLabels(labels).WithSpec(core.ResourceQuotaSpec().
		WithHard(corev1.ResourceList{corev1.ResourcePods: none, corev1.ResourcePersistentVolumeClaims: none}))
	there := &corev1.ResourceQuota{}
	err = c.Get(ctx, client.ObjectKey{Namespace: name, Name: ClosedQuota}, there)
	if err == nil {
		return false, nil
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("looking whether namespace %s is closed: %w", name, err)
	}
	if err := c.Apply(ctx, quota, client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership); err != nil {
		return false, fmt.Errorf("closing namespace %s: %w", name, err)
	}
	return true, nil
}

// Open undoes Close.
func Open(ctx context.Context, c client.Client, name string) error {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: ClosedQuota}}
	if err := c.Delete(ctx, quota); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("opening namespace %s: %w", name, err)
	}
	return nil
}

// Lock removes all access to the namespace, the deployer's too. Quota and network isolation stay.
func Lock(ctx context.Context, c client.Client, name string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: v1alpha1.Deployer}}
	if err := c.Delete(ctx, account); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("locking namespace %s: deleting %s: %w", name, account.Name, err)
	}
	return Bar(ctx, c, name)
}

// Bar deletes the role bindings in the namespace, except the named ones. A finalizer does not keep a binding out of effect: until it is
// deleted, it grants the same rights as before.
func Bar(ctx context.Context, c client.Client, name string, but ...string) error {
	bindings := &rbacv1.RoleBindingList{}
	if err := c.List(ctx, bindings, client.InNamespace(name)); err != nil {
		return fmt.Errorf("listing who may enter namespace %s: %w", name, err)
	}
	for i := range bindings.Items {
		binding := &bindings.Items[i]
		if slices.Contains(but, binding.Name) {
			continue
		}
		if len(binding.Finalizers) > 0 {
			none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			if err := c.Patch(ctx, binding, none); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("locking namespace %s: taking the finalizers off RoleBinding %s: %w", name, binding.Name, err)
			}
		}
		if err := c.Delete(ctx, binding); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("locking namespace %s: deleting RoleBinding %s: %w", name, binding.Name, err)
		}
	}
	return nil
}

// Retention is the reason why a namespace is kept.
type Retention struct {
	// Of is what was deleted, as in "Project kubeop-acme/shop".
	Of string
	// Claims hold data and stay.
	Claims []pvc.Claim
	At     time.Time
}

// Retain marks the namespace as kept because of the claims that stay, and reports whether the mark is new.
func Retain(ctx context.Context, c client.Client, ns *corev1.Namespace, r Retention) (bool, error) {
	if ns.Labels[v1alpha1.RetainedLabel] != "" {
		return false, nil
	}
	because := fmt.Sprintf("%s was deleted, but this namespace is kept, %s", r.Of, r.Because(ns.Name))
	return true, mark(ctx, c, ns, map[string]any{
		v1alpha1.RetainedAtAnnotation:      r.At.UTC().Format(time.RFC3339),
		v1alpha1.RetainedBecauseAnnotation: because,
		v1alpha1.RetainedClaimsAnnotation:  pvc.Names(r.Claims),
	}, "true")
}

// Because explains why the namespace of this name is kept, how to take it back, and how to delete it for good.
func (r Retention) Because(name string) string {
	return fmt.Sprintf("because claims in it hold data: %s. Such claims are deleted only if their policy is Delete and the deletion was confirmed. "+
		"To get the namespace back, declare %s again. To delete it with the data, "+string(command.Administrator)+" may run: kubectl delete pvc -n %s %s; "+
		"kubectl annotate namespace %s %s=%s; kubectl delete namespace %s",
		pvc.Names(r.Claims), r.Of, name, pvc.Arguments(r.Claims), name, v1alpha1.AllowDeletionAnnotation, name, name)
}

// Unmark removes from the namespace the marks that Retain wrote.
func Unmark(ctx context.Context, c client.Client, ns *corev1.Namespace) error {
	return mark(ctx, c, ns, map[string]any{
		v1alpha1.RetainedAtAnnotation: nil, v1alpha1.RetainedBecauseAnnotation: nil, v1alpha1.RetainedClaimsAnnotation: nil,
	}, nil)
}

// mark writes the marks to exactly this namespace, and not to another one of the same name that replaced it.
func mark(ctx context.Context, c client.Client, ns *corev1.Namespace, annotations map[string]any, label any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": ns.UID, "annotations": annotations, "labels": map[string]any{v1alpha1.RetainedLabel: label},
	}})
	if err != nil {
		return fmt.Errorf("marking namespace %s: %w", ns.Name, err)
	}
	target := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}
	if err := c.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager+"-retention")); err != nil {
		return fmt.Errorf("marking namespace %s: %w", ns.Name, err)
	}
	return nil
}
