// Package health says, from one look, whether objects do what they are there for, and names the culprit where they do
// not. It never waits.
package health

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Verdict is the health of a set of objects.
type Verdict struct {
	// Failed are the objects that failed, each with its reason; time alone does not mend them.
	Failed []string
	// Waiting are the objects that are not there yet, each with what it waits for.
	Waiting []string
}

// Healthy reports whether every object is.
func (v Verdict) Healthy() bool { return len(v.Failed) == 0 && len(v.Waiting) == 0 }

// String names the culprits, failures first, at most three.
func (v Verdict) String() string {
	all := append(slices.Clone(v.Failed), v.Waiting...)
	if len(all) > 3 {
		all = append(all[:3:3], fmt.Sprintf("and %d more", len(all)-3))
	}
	return strings.Join(all, "; ")
}

// Ref names an object to look at.
type Ref struct {
	Kind schema.GroupVersionKind
	Key  client.ObjectKey
}

// Refs names the objects that there is more to say of than that they are there.
func Refs(objects []*unstructured.Unstructured) []Ref {
	var refs []Ref
	for _, o := range objects {
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "type")
		if o.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Service") && kind != string(corev1.ServiceTypeLoadBalancer) {
			continue
		}
		if HasStatus(o.GroupVersionKind()) {
			refs = append(refs, Ref{Kind: o.GroupVersionKind(), Key: client.ObjectKeyFromObject(o)})
		}
	}
	return refs
}

// Look reads the objects and judges them.
func Look(ctx context.Context, c client.Client, refs []Ref) (Verdict, error) {
	var v Verdict
	for _, ref := range refs {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(ref.Kind)
		err := c.Get(ctx, ref.Key, o)
		if apierrors.IsNotFound(err) {
			v.Waiting = append(v.Waiting, fmt.Sprintf("%s/%s: was deleted", ref.Kind.Kind, ref.Key.Name))
			continue
		}
		if err != nil {
			return v, fmt.Errorf("reading %s/%s: %w", ref.Kind.Kind, ref.Key.Name, err)
		}
		if err := v.judge(ctx, c, o); err != nil {
			return v, err
		}
	}
	return v, nil
}

// judge adds an object that is not healthy to the verdict.
func (v *Verdict) judge(ctx context.Context, c client.Client, o *unstructured.Unstructured) error {
	result, err := status.Compute(o)
	if err != nil {
		return fmt.Errorf("judging %s/%s: %w", o.GetKind(), o.GetName(), err)
	}
	if result.Status == status.CurrentStatus {
		return nil
	}
	culprit, fatal, err := explain(ctx, c, o)
	if err != nil {
		return err
	}
	why := result.Message
	if culprit != "" {
		why = culprit
	}
	line := fmt.Sprintf("%s/%s: %s", o.GetKind(), o.GetName(), strings.TrimSpace(why))
	if fatal || result.Status == status.FailedStatus {
		v.Failed = append(v.Failed, line)
		return nil
	}
	v.Waiting = append(v.Waiting, line)
	return nil
}

// inert are kinds whose presence is all there is to their health; reading them would tell nothing.
var inert = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}: true, {Kind: "Secret"}: true, {Kind: "ServiceAccount"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: true,
	{Group: "networking.k8s.io", Kind: "Ingress"}:             true,
	{Group: "coordination.k8s.io", Kind: "Lease"}:             true,
}

// HasStatus reports whether there is more to the health of a kind than that an object is there.
func HasStatus(kind schema.GroupVersionKind) bool { return !inert[kind.GroupKind()] }
