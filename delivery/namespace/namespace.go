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
	core "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	// ErrTaken says that the namespace exists and is not ours.
	ErrTaken = errors.New("the namespace exists and does not belong to this object; kubeop adopts none: remove or rename one of them")
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

// Object returns the namespace to apply: labelled with its owner and held to a Pod Security level.
func Object(name string, owner map[string]string, podSecurity string) *core.NamespaceApplyConfiguration {
	return core.Namespace(name).WithLabels(owner).WithLabels(podSecurityLabels(podSecurity))
}

// Claim checks that the namespace may be made or is ours already. The reader must see all namespaces, not only labelled
// ones. Errors: ErrTaken, ErrLeaving, and the reader's.
func Claim(ctx context.Context, reader client.Reader, name string, owner map[string]string) error {
	ns := &corev1.Namespace{}
	err := reader.Get(ctx, client.ObjectKey{Name: name}, ns)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading namespace %s: %w", name, err)
	}
	if !owns(owner, ns) {
		return fmt.Errorf("namespace %s: %w", name, ErrTaken)
	}
	if ns.DeletionTimestamp != nil {
		return fmt.Errorf("namespace %s: %w%s", name, ErrLeaving, holds(ns))
	}
	return nil
}

// Remove deletes the namespace where it is ours and returns what it waits for; "" when it is gone or not ours.
func Remove(ctx context.Context, c client.Client, reader client.Reader, name string, owner map[string]string) (string, error) {
	ns := &corev1.Namespace{}
	err := reader.Get(ctx, client.ObjectKey{Name: name}, ns)
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

func owns(owner map[string]string, ns *corev1.Namespace) bool {
	for label, value := range owner {
		if ns.Labels[label] != value {
			return false
		}
	}
	return true
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
