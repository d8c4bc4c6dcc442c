// Package pvc decides which PersistentVolumeClaims hold data, and which of them a deletion may delete.
package pvc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Claim is a PersistentVolumeClaim.
type Claim = corev1.PersistentVolumeClaim

// List returns all claims of a namespace, including those that kubeop did not make, sorted by name. The reader must not read from a cache,
// because a claim that it does not show may be deleted.
func List(ctx context.Context, reader client.Reader, namespace string) ([]Claim, error) {
	list := &corev1.PersistentVolumeClaimList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the claims of namespace %s: %w", namespace, err)
	}
	slices.SortFunc(list.Items, func(a, b Claim) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// HoldsData reports whether the claim is or was bound to a volume. A restored claim names its volume before it is bound again.
func HoldsData(c *Claim) bool {
	return c.Status.Phase == corev1.ClaimBound || c.Status.Phase == corev1.ClaimLost || c.Spec.VolumeName != ""
}

// Terms decide which claims a deletion may delete.
type Terms struct {
	// Policies are the policies of the Project and the Tenant, in this order. The App's policy is on the claim.
	Policies []v1alpha1.ClaimDeletionPolicy
	// Confirmed are the UIDs of claims for which a person has confirmed the deletion.
	Confirmed map[types.UID]bool
	// Of are labels without which a claim stays; nil for none.
	Of labels.Set
}

// TermsOf returns the terms for the claims of a project, before any confirmation. In a namespace that the project adopted only the claims
// of its apps may be deleted: others were there before, or are those of other people.
func TermsOf(project *v1alpha1.Project, tenant *v1alpha1.Tenant) Terms {
	t := Terms{Policies: []v1alpha1.ClaimDeletionPolicy{project.Spec.ClaimDeletionPolicy, tenant.Spec.ClaimDeletionPolicy}}
	if place := project.Spec.Namespace; place != nil && place.Adopt {
		t.Of = labels.Set{v1alpha1.TenantLabel: v1alpha1.PlatformTenant, v1alpha1.ProjectLabel: project.Name}
	}
	return t
}

// Take reports whether a claim may be deleted: it holds no data, or its policy is Delete and a confirmation named it.
func (t Terms) Take(c *Claim) bool {
	if len(t.Of) > 0 && !t.Of.AsSelector().Matches(labels.Set(c.Labels)) {
		return false
	}
	return !HoldsData(c) || (t.policy(c) == v1alpha1.ClaimDelete && t.Confirmed[c.UID])
}

func (t Terms) policy(c *Claim) v1alpha1.ClaimDeletionPolicy {
	own := v1alpha1.ClaimDeletionPolicy(c.Annotations[v1alpha1.ClaimPolicyAnnotation])
	return cmp.Or(own, cmp.Or(t.Policies...), v1alpha1.ClaimRetain)
}

// Divide returns the claims to delete and the claims to keep. A claim that is already being deleted is in neither: a person did that.
func (t Terms) Divide(all []Claim) (leave, stay []Claim) {
	for _, c := range all {
		switch {
		case c.DeletionTimestamp != nil:
		case t.Take(&c):
			leave = append(leave, c)
		default:
			stay = append(stay, c)
		}
	}
	return leave, stay
}

// fresh is the maximum time between a confirmation and the deletion that uses it. It allows for a wrong clock and a repeated request.
const fresh = 5 * time.Minute

// Confirm returns the value of ConfirmedClaimsAnnotation: the time at which a confirmed deletion is carried out, and the UIDs of the claims
// that the confirmation named.
func Confirm(now time.Time, uids []string) string {
	return now.UTC().Format(time.RFC3339) + " " + strings.Join(uids, ",")
}

// Confirmed returns the UIDs that objects being deleted list in ConfirmedClaimsAnnotation. A confirmation for a deletion that did not
// happen then is not valid for a later one.
func Confirmed(objects ...client.Object) map[types.UID]bool {
	listed := map[types.UID]bool{}
	for _, o := range objects {
		when, uids, _ := strings.Cut(o.GetAnnotations()[v1alpha1.ConfirmedClaimsAnnotation], " ")
		at, err := time.Parse(time.RFC3339, when)
		if deleted := o.GetDeletionTimestamp(); err != nil || deleted == nil || deleted.Sub(at).Abs() > fresh {
			continue
		}
		for uid := range strings.SplitSeq(uids, ",") {
			listed[types.UID(uid)] = true
		}
	}
	return listed
}

// Delete deletes claims, each in the state that was read: a claim that was bound meanwhile is not deleted, and must be checked again.
func Delete(ctx context.Context, c client.Client, doomed []Claim) error {
	for i := range doomed {
		claim := &doomed[i]
		uid, version := claim.UID, claim.ResourceVersion
		if err := c.Delete(ctx, claim, client.Preconditions{UID: &uid, ResourceVersion: &version}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting claim %s: %w", claim.Name, err)
		}
	}
	return nil
}

// maxNamed is how many claims a message names.
const maxNamed = 10

// Names lists claims for a message, with their sizes, such as "data (10Gi), cache (1Gi)".
func Names(all []Claim) string {
	return named(all, func(c *Claim) string { return fmt.Sprintf("%s (%s)", c.Name, Size(c)) }, ", ")
}

// Arguments lists claims for a command line, such as "data cache".
func Arguments(all []Claim) string {
	if len(all) > maxNamed {
		return "--all"
	}
	return named(all, func(c *Claim) string { return c.Name }, " ")
}

func named(all []Claim, name func(*Claim) string, between string) string {
	var names []string
	for i := range all {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		names = append(names, name(&all[i]))
	}
	return strings.Join(names, between)
}

// Size returns the size that the claim has or, before it is bound, requests.
func Size(c *Claim) string {
	size, ok := c.Status.Capacity[corev1.ResourceStorage]
	if !ok {
		size = c.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	return size.String()
}
