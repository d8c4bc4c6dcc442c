// Package namespace creates, labels and deletes the namespaces of tenants and projects. Only for a project of the platform itself (Adopt)
// does it take over a namespace that kubeop did not create.
package namespace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
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
	// ErrTaken says that the namespace exists and kubeop does not own it.
	ErrTaken = errors.New("the namespace exists and does not belong to this object; kubeop adopts none: rename the object in Git, or ask an administrator of the cluster to remove the namespace")
	// ErrInherited says that the namespace was left behind by an earlier tenant of the same name.
	ErrInherited = errors.New("the namespace was left by an earlier tenant of this name, with what that tenant's people put there, and neither " +
		"the UID nor the identity (repository, or owners and folder) of this Tenant is that one's. If it is another tenant, give it another name in Git, or " +
		"have an administrator of the cluster delete the namespace with all that is in it; if it is the same one, an administrator hands it over with: " +
		"kubectl annotate namespace NAME " + v1alpha1.TenantUIDAnnotation + "-")
	// ErrLeaving says that the namespace is being deleted, so the caller has to wait.
	ErrLeaving = errors.New("the namespace is still being deleted")
)

// podSecurityLabels enforce a Pod Security level in a namespace (KEP-2579). Without a version it is the cluster's own, so a new release of
// Kubernetes enforces its stricter checks at once.
func podSecurityLabels(terms Terms) map[string]string {
	labels := map[string]string{}
	for mode, of := range map[string]v1alpha1.PodSecurityRules{"enforce": {}, "warn": terms.Warned, "audit": terms.Recorded} {
		if of.Level == "" {
			of = v1alpha1.PodSecurityRules{Level: terms.PodSecurity, Version: terms.PodSecurityVersion}
		}
		labels["pod-security.kubernetes.io/"+mode] = of.Level
		labels["pod-security.kubernetes.io/"+mode+"-version"] = cmp.Or(of.Version, "latest")
	}
	return labels
}

// Owner identifies the tenant or project of a namespace.
type Owner struct {
	// Labels name the tenant and, for a project's namespace, the project.
	Labels map[string]string
	// Tenant is the UID of the Tenant object. A later tenant with the same name must not get the data of an earlier one.
	Tenant types.UID
	// Identity of the tenant, which stays the same when its UID changes; "" without one.
	Identity string
}

// Object returns the namespace to apply: marked with its owner and limited by the terms.
func Object(name string, owner Owner, terms Terms) *core.NamespaceApplyConfiguration {
	marks := map[string]string{v1alpha1.TenantUIDAnnotation: string(owner.Tenant)}
	if owner.Identity != "" {
		marks[v1alpha1.TenantIdentityAnnotation] = owner.Identity
	}
	object := core.Namespace(name).WithLabels(owner.Labels).WithLabels(podSecurityLabels(terms)).
		WithAnnotations(marks).WithAnnotations(terms.Limits)
	if terms.Guardrails {
		object.WithLabels(map[string]string{v1alpha1.GuardrailsLabel: v1alpha1.GuardrailsEnforced})
	}
	if terms.Frozen {
		object.WithLabels(map[string]string{v1alpha1.FrozenLabel: "true"})
	}
	if terms.Stopped {
		object.WithLabels(map[string]string{v1alpha1.StoppedLabel: "true"})
	}
	return object
}

// Found is the result of Claim.
type Found struct {
	// Namespace is the existing namespace; nil if there is none.
	*corev1.Namespace
	// Adopted: it was created for an earlier object of the same tenant.
	Adopted bool
}

// Retained reports whether the namespace was kept after its owner's deletion because claims in it hold data.
func (f Found) Retained() bool { return f.Namespace != nil && f.Labels[v1alpha1.RetainedLabel] != "" }

// Claim checks that the namespace can be created or already belongs to this owner. The reader must see all namespaces, not only labelled
// ones. Errors: ErrTaken, ErrInherited, ErrLeaving, and the reader's.
func Claim(ctx context.Context, reader client.Reader, name string, owner Owner) (Found, error) {
	ns, err := read(ctx, reader, name)
	if ns == nil || err != nil {
		return Found{}, err
	}
	uid, marked := ns.Annotations[v1alpha1.TenantUIDAnnotation]
	switch {
	case !owns(owner.Labels, ns):
		return Found{}, fmt.Errorf("namespace %s: %w", name, ErrTaken)
	case !owner.was(ns):
		return Found{}, fmt.Errorf("namespace %s: %w", name, ErrInherited)
	case ns.DeletionTimestamp != nil:
		return Found{}, fmt.Errorf("namespace %s: %w%s", name, ErrLeaving, holds(ns))
	}
	return Found{ns, marked && uid != string(owner.Tenant)}, nil
}

// was reports whether the namespace belongs to this tenant: it was created for the same UID or the same identity, or administrators removed
// the annotation with the UID to hand it over.
func (o Owner) was(ns *corev1.Namespace) bool {
	uid, marked := ns.Annotations[v1alpha1.TenantUIDAnnotation]
	return !marked || uid == string(o.Tenant) || (o.Identity != "" && ns.Annotations[v1alpha1.TenantIdentityAnnotation] == o.Identity)
}

// Own returns the namespace if it exists and belongs to this tenant, else nil: a tenant must not delete a namespace of an earlier one with
// the same name. The reader must not read from a cache.
func Own(ctx context.Context, reader client.Reader, name string, owner Owner) (*corev1.Namespace, error) {
	ns, err := read(ctx, reader, name)
	if ns == nil || err != nil || !owns(owner.Labels, ns) || !owner.was(ns) {
		return nil, err
	}
	return ns, nil
}

// Remove deletes the namespace and all its contents, and returns a message about what still holds it.
func Remove(ctx context.Context, c client.Client, ns *corev1.Namespace) (string, error) {
	if ns.DeletionTimestamp == nil {
		uid := ns.UID
		if err := c.Delete(ctx, ns, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("deleting namespace %s: %w", ns.Name, err)
		}
	}
	return fmt.Sprintf("namespace %s is being deleted%s", ns.Name, holds(ns)), nil
}

func read(ctx context.Context, reader client.Reader, name string) (*corev1.Namespace, error) {
	ns := &corev1.Namespace{}
	err := reader.Get(ctx, client.ObjectKey{Name: name}, ns)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return ns, nil
}

// owns reports whether the namespace belongs to the owner. If someone removed a label, kubeop will restore it, so the label counts as
// present if kubeop still owns other fields. A label with another value does not count.
func owns(owner map[string]string, ns *corev1.Namespace) bool {
	for label, value := range owner {
		is, set := ns.Labels[label]
		if is != value && (set || !applied(ns)) {
			return false
		}
	}
	return true
}

// applied reports whether kubeop created the namespace: kubeop's field manager owns fields of it by an apply.
func applied(ns *corev1.Namespace) bool {
	for _, f := range ns.ManagedFields {
		if f.Manager == v1alpha1.FieldManager && f.Operation == metav1.ManagedFieldsOperationApply {
			return true
		}
	}
	return false
}

// holding are the conditions in which the namespace controller reports what a namespace still contains.
var holding = map[corev1.NamespaceConditionType]bool{
	corev1.NamespaceDeletionDiscoveryFailure: true,
	corev1.NamespaceDeletionContentFailure:   true,
	corev1.NamespaceDeletionGVParsingFailure: true,
	corev1.NamespaceContentRemaining:         true,
	corev1.NamespaceFinalizersRemaining:      true,
}

// remaining matches the resources in the condition NamespaceContentRemaining. "pods. has 1 resource instances" is of the core group.
var remaining = regexp.MustCompile(`([^ ]+) has \d+ resource instances`)

// holds says what blocks the deletion of a namespace, and which command lists the objects.
func holds(ns *corev1.Namespace) string {
	var why, left []string
	for _, c := range ns.Status.Conditions {
		if !holding[c.Type] || c.Status != corev1.ConditionTrue {
			continue
		}
		why = append(why, strings.TrimSpace(c.Message))
		for _, match := range remaining.FindAllStringSubmatch(c.Message, -1) {
			left = append(left, strings.TrimSuffix(match[1], "."))
		}
	}
	switch {
	case len(why) == 0:
		return ""
	case len(left) == 0:
		return ": " + strings.Join(why, "; ")
	}
	return fmt.Sprintf(": %s. kubectl get %s -n %s -o custom-columns=KIND:.kind,NAME:.metadata.name,FINALIZERS:.metadata.finalizers names them; "+
		"each is deleted when the controllers of its finalizers have removed them. Remove a finalizer yourself if its controller is gone",
		strings.Join(why, "; "), strings.Join(left, ","), ns.Name)
}
