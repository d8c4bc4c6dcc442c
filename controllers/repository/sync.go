package repository

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/gitops/plan"
	"github.com/kubeop/kubeop/gitops/tree"
)

// sync reads the commit's tree and applies what is valid of it, project by project: one that fails does not hold up
// another. What is wrong in a file is a problem, told by judge; what is wrong with the world is an error.
func (r *Reconciler) sync(ctx context.Context, s *scope) error {
	spec := s.repository.Spec
	root, err := s.commit.Root.Sub(pathOf(spec.Path))
	if err != nil {
		return step.Stop(v1alpha1.SourceNotFoundReason, fmt.Errorf("spec.path: %w", err))
	}
	found := r.Tree.Read(root, tree.Scope{
		Repository: s.repository.Name, Tenant: spec.Tenant, Revision: s.commit.Revision, Path: spec.Path,
	})
	for _, p := range found.Problems {
		if p.Err != nil {
			return step.Fail(v1alpha1.FetchFailedReason, fmt.Errorf("reading %s: %w", p.File, p.Err))
		}
		s.problems = append(s.problems, p.String())
	}
	confirmed := s.repository.Annotations[v1alpha1.ConfirmAnnotation] == s.commit.Revision
	planned := plan.Make(found, s.inventory.Entries, confirmed)
	for _, e := range planned.Held {
		s.held = append(s.held, heldName(e))
	}
	r.tellHeld(ctx, s, found.Problems)
	r.refuse(s, found.Problems)
	return r.carryOut(ctx, s, planned)
}

// carryOut applies a plan unit by unit, then deletes. What is recorded always names everything that may be there.
func (r *Reconciler) carryOut(ctx context.Context, s *scope, planned plan.Plan) error {
	recorded := s.inventory.Entries
	if err := announce(ctx, s, planned.Apply); err != nil {
		return err
	}
	kept := slices.Concat(planned.Keep, planned.Held)
	var errs []error
	var waiting []string
	failed := failures{}
	for _, wave := range plan.Waves(planned.Apply) {
		for _, unit := range units(wave) {
			unit, held := failed.without(unit)
			ready, missing, err := r.split(ctx, unit)
			failed.add(unit, err)
			errs = append(errs, err)
			for _, o := range missing {
				waiting = append(waiting, o.GetNamespace())
			}
			for _, o := range slices.Concat(held, missing) {
				kept = append(kept, entriesOf(recorded, o)...)
			}
			entries, err := r.applyUnit(ctx, s, ready, recorded)
			failed.add(ready, err)
			kept = append(kept, entries...)
			errs = append(errs, err)
		}
	}
	s.inventory = apply.Inventory(kept, apply.Stale(recorded, kept))
	if err := errors.Join(errs...); err != nil {
		return step.Fail(v1alpha1.SyncFailedReason, err)
	}
	if err := r.delete(ctx, s, planned.Delete, kept); err != nil {
		return err
	}
	if len(waiting) > 0 {
		slices.Sort(waiting)
		return step.Wait(v1alpha1.DependencyNotReadyReason, 5*time.Second, "waits for namespace %s", strings.Join(slices.Compact(waiting), ", "))
	}
	return nil
}

// announce records what is new before any of it is applied.
func announce(ctx context.Context, s *scope, objects []client.Object) error {
	var all []v1alpha1.InventoryEntry
	for _, o := range objects {
		all = append(all, plan.Entry(o))
	}
	unrecorded := apply.Stale(all, s.inventory.Entries)
	if len(unrecorded) == 0 {
		return nil
	}
	s.inventory = apply.Inventory(s.inventory.Entries, unrecorded)
	return step.Checkpoint(ctx)
}

// delete removes what left the tree. A Project or Tenant takes its time; the repository looks again when it is gone.
func (r *Reconciler) delete(ctx context.Context, s *scope, entries, kept []v1alpha1.InventoryEntry) error {
	owner := map[string]string{v1alpha1.RepositoryLabel: s.repository.Name}
	left, err := r.Applier.Prune(ctx, r.Direct, entries, owner)
	s.inventory = apply.Inventory(kept, left)
	if err != nil {
		return step.Fail(v1alpha1.SyncFailedReason, err)
	}
	if len(left) > 0 {
		return step.Wait(v1alpha1.DeletingReason, 5*time.Second, "waits for %s to be gone", apply.Names(left))
	}
	return nil
}

// batch bounds a unit: what is applied at once is in memory at once, in a form ten times as large as in the file.
const batch = 100

// units groups objects by what succeeds or fails together: all tenants, then each project with its apps, at most a batch.
func units(objects []client.Object) [][]client.Object {
	var groups [][]client.Object
	at := map[string]int{}
	for _, o := range objects {
		key := o.GetLabels()[v1alpha1.TenantLabel] + "/" + o.GetLabels()[v1alpha1.ProjectLabel]
		if _, ok := o.(*v1alpha1.Tenant); ok {
			key = ""
		}
		if i, ok := at[key]; !ok || len(groups[i]) == batch {
			at[key] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[key]] = append(groups[at[key]], o)
	}
	return groups
}

// split tells the objects of a unit whose namespace is there from those that wait for a tenant or project to make it.
func (r *Reconciler) split(ctx context.Context, unit []client.Object) (ready, missing []client.Object, err error) {
	for _, o := range unit {
		there, err := r.housed(ctx, o)
		if err != nil {
			return nil, unit, err
		}
		if there {
			ready = append(ready, o)
		} else {
			missing = append(missing, o)
		}
	}
	return ready, missing, nil
}

// applyUnit applies the objects of one unit. One that the API server finds invalid, such as a change of an immutable
// field, is a problem of its file.
func (r *Reconciler) applyUnit(ctx context.Context, s *scope, unit []client.Object, recorded []v1alpha1.InventoryEntry) ([]v1alpha1.InventoryEntry, error) {
	set := apply.Set{Client: r.Direct, Recorded: recorded}
	for _, o := range unit {
		if err := r.keepRevision(ctx, o); err != nil {
			return nil, err
		}
		u, err := declared(o)
		if err != nil {
			return nil, err
		}
		set.Objects = append(set.Objects, u)
	}
	result, err := r.Applier.Apply(ctx, set)
	return result.Entries, r.problemsOf(s, unit, err)
}

// problemsOf moves errors that only a change of the file can mend from err to the problems.
func (r *Reconciler) problemsOf(s *scope, unit []client.Object, err error) error {
	var rest []error
	for _, each := range apply.Split(err) {
		var oe *apply.ObjectError
		if !errors.As(each, &oe) || (!apierrors.IsInvalid(each) && !apierrors.IsBadRequest(each)) {
			rest = append(rest, each)
			continue
		}
		s.problems = append(s.problems, fmt.Sprintf("%s: %s", fileOf(unit, oe.ID), oe.Err))
	}
	return errors.Join(rest...)
}
