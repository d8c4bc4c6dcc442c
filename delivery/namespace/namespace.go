// Package namespace makes, labels and removes the namespaces of tenants and projects. It never adopts one it did not
// make.
package namespace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

var (
	// ErrTaken says that the namespace exists and is not ours.
	ErrTaken = errors.New("the namespace exists and does not belong to this object; kubeop adopts none: remove or rename one of them")
	// ErrInherited says that the namespace was left behind by an earlier tenant of the same name.
	ErrInherited = errors.New("the namespace was left by an earlier tenant of this name, with what that tenant's people put there: " +
		"delete it, or to hand it over remove its annotation " + v1alpha1.TenantUIDAnnotation)
	// ErrLeaving says that the namespace is being deleted and has to be waited for.
	ErrLeaving = errors.New("the namespace is still being deleted")
)

// podSecurityLabels hold a namespace to a Pod Security level (KEP-2579). The version is the cluster's own, so that a new
// release's stricter checks come with the release.
func podSecurityLabels(level string) map[string]string {
	return map[string]string{
		"pod-security.kubernetes.io/enforce":         level,
		"pod-security.kubernetes.io/enforce-version": "latest",
		"pod-security.kubernetes.io/warn":            level,
		"pod-security.kubernetes.io/audit":           level,
	}
}

// Owner is who a namespace is made for.
type Owner struct {
	// Labels name the tenant, and of a project's namespace the project.
	Labels map[string]string
	// Tenant is the UID of the Tenant object: another tenant that is later given the same name gets nothing of the first.
	Tenant types.UID
}

// Object returns the namespace to apply: marked with its owner and held to a Pod Security level.
func Object(name string, owner Owner, podSecurity string) *core.NamespaceApplyConfiguration {
	return core.Namespace(name).WithLabels(owner.Labels).WithLabels(podSecurityLabels(podSecurity)).
		WithAnnotations(map[string]string{v1alpha1.TenantUIDAnnotation: string(owner.Tenant)})
}

// Claim checks that the namespace may be made or is ours already. The reader must see all namespaces, not only labelled
// ones. Errors: ErrTaken, ErrInherited, ErrLeaving, and the reader's.
func Claim(ctx context.Context, reader client.Reader, name string, owner Owner) error {
	ns := &corev1.Namespace{}
	err := reader.Get(ctx, client.ObjectKey{Name: name}, ns)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading namespace %s: %w", name, err)
	}
	if !owns(owner.Labels, ns) {
		return fmt.Errorf("namespace %s: %w", name, ErrTaken)
	}
	if uid, ok := ns.Annotations[v1alpha1.TenantUIDAnnotation]; ok && uid != string(owner.Tenant) {
		return fmt.Errorf("namespace %s: %w", name, ErrInherited)
	}
	if ns.DeletionTimestamp != nil {
		return fmt.Errorf("namespace %s: %w%s", name, ErrLeaving, holds(ns))
	}
	return nil
}

// Remove deletes the namespace where it is ours and returns what it waits for; "" when it is gone or not ours. The client
// must not read from a cache.
func Remove(ctx context.Context, c client.Client, name string, owner map[string]string) (string, error) {
	ns := &corev1.Namespace{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, ns)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading namespace %s: %w", name, err)
	}
	if !owns(owner, ns) {
		return "", nil
	}
	if ns.DeletionTimestamp == nil {
		uid := ns.UID
		if err := c.Delete(ctx, ns, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("deleting namespace %s: %w", name, err)
		}
	}
	return fmt.Sprintf("namespace %s is being deleted%s", name, holds(ns)), nil
}

// owns reports whether the namespace is the owner's. A label that somebody took away is put back later, so it counts as
// there where the other fields are still kubeop's; one that somebody else set does not.
func owns(owner map[string]string, ns *corev1.Namespace) bool {
	for label, value := range owner {
		is, set := ns.Labels[label]
		if is != value && (set || !applied(ns)) {
			return false
		}
	}
	return true
}

// applied reports whether kubeop made the namespace: it owns fields of it, which only an apply under its name gives.
func applied(ns *corev1.Namespace) bool {
	for _, f := range ns.ManagedFields {
		if f.Manager == v1alpha1.FieldManager && f.Operation == metav1.ManagedFieldsOperationApply {
			return true
		}
	}
	return false
}

// holding are the conditions in which the namespace controller says what a namespace still holds.
var holding = map[corev1.NamespaceConditionType]bool{
	corev1.NamespaceDeletionDiscoveryFailure: true,
	corev1.NamespaceDeletionContentFailure:   true,
	corev1.NamespaceDeletionGVParsingFailure: true,
	corev1.NamespaceContentRemaining:         true,
	corev1.NamespaceFinalizersRemaining:      true,
}

func holds(ns *corev1.Namespace) string {
	var why []string
	for _, c := range ns.Status.Conditions {
		if holding[c.Type] && c.Status == corev1.ConditionTrue {
			why = append(why, strings.TrimSpace(c.Message))
		}
	}
	if len(why) == 0 {
		return ""
	}
	return ": " + strings.Join(why, "; ")
}
