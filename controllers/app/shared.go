package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/release"
)

// isClusterScoped reports whether an entry names an object without a namespace.
func isClusterScoped(e v1alpha1.InventoryEntry) bool { return strings.HasPrefix(e.ID, "_") }

func clusterScoped(entries []v1alpha1.InventoryEntry) []v1alpha1.InventoryEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e v1alpha1.InventoryEntry) bool { return !isClusterScoped(e) })
}

// namespaced are the entries of a release that are judged and compared. Its cluster-scoped objects are recorded only so that
// they are deleted in the end: mostly no watch shows them, and each look would be a request.
func namespaced(entries []v1alpha1.InventoryEntry) []v1alpha1.InventoryEntry {
	if !slices.ContainsFunc(entries, isClusterScoped) {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), isClusterScoped)
}

// sharedEntries are the cluster-scoped objects of the deployed revision and those recorded before, which are stale then. Of a
// revision that a person deployed it is not known what it holds.
func sharedEntries(recorded []v1alpha1.InventoryEntry, outcome release.Outcome) []v1alpha1.InventoryEntry {
	was := clusterScoped(recorded)
	if outcome.Content == "" {
		return was
	}
	var now []v1alpha1.InventoryEntry
	for _, o := range outcome.Shared {
		e := v1alpha1.InventoryEntry{ID: idOf(o.Ref).String(), Version: o.Version}
		if o.Kept {
			e.Policy = v1alpha1.PolicyDisabled
		}
		now = append(now, e)
	}
	stale := inventory.Without(was, now)
	for i := range stale {
		stale[i].Stale = true
	}
	return append(now, stale...)
}

// pruneShared deletes the cluster-scoped objects that left the chart and that the upgrade left: those that the project may not
// delete any more, and definitions, which wait for confirmation. It is the last step, so that nothing else waits for them.
func (r *Reconciler) pruneShared(ctx context.Context, s *scope) error {
	s.hold(nil, false)
	var stale []v1alpha1.InventoryEntry
	for _, e := range clusterScoped(s.inventory.Entries) {
		if e.Stale {
			stale = append(stale, e)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	removed, err := r.removeConfirmed(ctx, s, apply.Removal{
		Client: r.sees(s), Entries: stale, Owner: ownerLabels(s.owner), Guarded: true, Wanted: r.wanted(s),
	})
	s.recordShared(stale, removed.Left)
	r.tellKept(ctx, s.app, removed.Kept, "are protected from deletion")
	if err != nil {
		return step.Fail(v1alpha1.PruneFailedReason, fmt.Errorf("deleting what left the chart: %w", forbidden(err, "")))
	}
	return r.leaving(s, v1alpha1.ProgressingReason, removed.Leaving)
}

// recordShared has of the stale entries only those recorded that are left.
func (s *scope) recordShared(stale, left []v1alpha1.InventoryEntry) {
	rest := inventory.Without(s.inventory.Entries, stale)
	s.inventory = inventory.Join(rest, left)
	if s.memory.revision != 0 && s.memory.release == releaseName(s.app) {
		s.memory.entries = s.inventory.Entries
	}
}

// sees is the deployer's client, with which the operator looks at cluster-scoped objects that the deployer may not look at any
// more: that one is gone, or somebody else's by now, ends the matter.
func (r *Reconciler) sees(s *scope) client.Client { return seeing{s.client, r.Direct} }

type seeing struct {
	client.Client
	operator client.Reader
}

// Get implements client.Reader.
func (c seeing) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, into, opts...)
	if key.Namespace != "" || !apierrors.IsForbidden(err) {
		return err
	}
	if seen := c.operator.Get(ctx, key, into, opts...); !apierrors.IsForbidden(seen) {
		return seen
	}
	return err
}

// forbidden says what helps where an object may not be deleted; further is one more way out.
func forbidden(err error, further string) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w; ask the administrators to delete it, or to let the project do so: what is cluster-scoped by spec.clusterKinds of the Tenant%s", err, further)
}
