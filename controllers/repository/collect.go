package repository

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declared"
	"github.com/kubeop/kubeop/controllers/declaredby"
	"github.com/kubeop/kubeop/controllers/repository/upstream"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/pvc"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/plan"
)

// collect deletes the objects that left the tree, except those that need a confirmation, and waits until they are gone. It deletes only
// objects that carry this repository's label and came from Git.
func (r *Reconciler) collect(ctx context.Context, s *scope) error {
	p := s.progress
	lost, leaving, err := r.lost(ctx, s)
	if err != nil {
		return err
	}
	deleted, err := r.weigh(ctx, s, lost, len(leaving) > 0)
	if err != nil {
		return err
	}
	leaving = append(leaving, deleted...)
	switch {
	case len(leaving) > 0:
		return step.Wait(v1alpha1.DeletingReason, 5*time.Second, "waits for %s to be gone", listed(leaving))
	case p.foreign && len(lost) == 0 && !s.samePlace():
		p.foreign = false // Nothing is left that conflicts with the declared objects.
		return step.Soon(time.Millisecond)
	case len(s.missing()) > 0:
		return r.await(s)
	}
	return nil
}

const (
	// firstReport is how long a commit waits for namespaces before the status reports it: most commits finish earlier.
	firstReport = 2 * time.Second
	// reportEvery is the pause between two reports of the progress, because each is a write of the status.
	reportEvery = 5 * time.Second
)

// await waits for the namespaces of the declared objects, and reports that from time to time.
func (r *Reconciler) await(s *scope) error {
	now := r.Steps.Clock.Now()
	if pause := s.progress.reported.Add(reportEvery).Sub(now); pause > 0 && pause <= reportEvery {
		s.unfinished = true
		return step.Soon(pause)
	}
	s.progress.reported = now
	return step.Wait(v1alpha1.DependencyNotReadyReason, 5*time.Second, "%s; waits for namespace %s", s.reached(), listed(s.missing()))
}

// missing returns the namespaces that objects of the commit itself wait for.
func (s *scope) missing() []string {
	namespaces := sets.New[string]()
	for ref := range s.progress.waiting {
		if s.own(ref) {
			namespaces.Insert(ref.Key().Namespace)
		}
	}
	return sets.List(namespaces)
}

// lost returns the objects that left the tree and still exist in the cluster, and the names of those that are being deleted already.
func (r *Reconciler) lost(ctx context.Context, s *scope) (lost map[identity.Ref]client.Object, leaving []string, err error) {
	lost = map[identity.Ref]client.Object{}
	for ref := range s.progress.Gone {
		live, err := r.live(ctx, s.progress, ref)
		if err != nil {
			return nil, nil, err
		}
		_, there := s.progress.tree.Find(ref)
		switch {
		case live == nil || there || live.GetLabels()[v1alpha1.RepositoryLabel] != s.repository.Name || !declared.FromGit(live) || !s.mayDeclare(ref):
			s.progress.Forget(ref)
		case live.GetDeletionTimestamp() != nil:
			leaving = append(leaving, ref.String())
		case !s.progress.tree.Covers(ref) || s.previews.Keep(live): // What could not be read may still declare it.
		default:
			lost[ref] = live
		}
	}
	slices.Sort(leaving)
	return lost, leaving, nil
}

// mayDeclare reports whether the repository may declare the object: a tenant's repository may declare only objects of that tenant.
func (s *scope) mayDeclare(ref identity.Ref) bool {
	tenant := s.repository.Spec.Tenant
	return tenant == "" || ref.Tenant == tenant && ref.Project != ""
}

// live returns an object that left the tree, nil if there is none. The cache may not show yet what an earlier commit made, so the API server is asked about
// what the cache has not shown since.
func (r *Reconciler) live(ctx context.Context, p *progress, ref identity.Ref) (client.Object, error) {
	live := declared.Empty(ref)
	err := r.Client.Get(ctx, ref.Key(), live)
	switch {
	case err == nil:
		p.Show(ref, live)
	case apierrors.IsNotFound(err) && !p.Shown.Has(ref):
		err = r.Direct.Get(ctx, ref.Key(), live)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ref, err)
	}
	return live, nil
}

// inCache returns an object as the cache has it, nil if there is none.
func (r *Reconciler) inCache(ctx context.Context, ref identity.Ref) (client.Object, error) {
	live := declared.Empty(ref)
	err := r.Client.Get(ctx, ref.Key(), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ref, err)
	}
	return live, nil
}

// weighed is a verdict that deletes nothing. It is reused for a while if the question is the same, because a verdict reads the contents of
// the held objects from the API server, without a cache.
type weighed struct {
	question string
	verdict  plan.Verdict
	at       time.Time
}

// recount is the maximum age of a reused verdict. A confirmation is always checked against a new one.
const recount = 30 * time.Second

// weigh deletes the objects whose turn it is and that need no confirmation, and reports the held ones. It returns the names of the deleted ones. leaving: others
// are being deleted.
func (r *Reconciler) weigh(ctx context.Context, s *scope, lost map[identity.Ref]client.Object, leaving bool) ([]string, error) {
	p, now := s.progress, r.Steps.Clock.Now()
	confirmation := s.repository.Annotations[v1alpha1.ConfirmAnnotation]
	question := s.question(lost, leaving)
	if confirmation == "" && p.weighed.question == question && now.Sub(p.weighed.at) < recount {
		s.weighed, s.verdict = true, p.weighed.verdict
		return nil, nil
	}
	var err error
	if s.verdict, err = r.verdict(ctx, s, lost, confirmation); err != nil {
		return nil, err
	}
	s.weighed = true
	p.weighed, p.confirmed = weighed{}, s.verdict.Confirmed
	next := s.verdict.Next(leaving)
	if len(next) == 0 {
		p.weighed = weighed{question, s.verdict, now}
	}
	names, err := r.deleteLosses(ctx, s, lost, next)
	if err != nil {
		return nil, err
	}
	// Used or not, the confirmation is valid only for this commit and this list.
	return names, step.Withdraw(ctx, r.Client, s.repository, v1alpha1.ConfirmAnnotation)
}

// question identifies the input of a verdict, and of what is deleted next.
func (s *scope) question(lost map[identity.Ref]client.Object, leaving bool) string {
	var uids []string
	for _, o := range lost {
		uids = append(uids, string(o.GetUID()))
	}
	slices.Sort(uids)
	return fmt.Sprint(s.commit.Revision, s.progress.foreign, leaving, uids)
}

// verdict decides which of the objects that left the tree are deleted.
func (r *Reconciler) verdict(ctx context.Context, s *scope, lost map[identity.Ref]client.Object, confirmation string) (plan.Verdict, error) {
	if len(lost) == 0 {
		return plan.Verdict{}, nil
	}
	losses, apps, err := declared.Losses(ctx, r.Client, r.Direct, lost)
	if err == nil {
		err = declared.CountUsers(ctx, r.Direct, losses, lost, s.found)
	}
	if err != nil {
		return plan.Verdict{}, err
	}
	for tenant := range apps {
		if s.progress.formerApps != nil {
			apps[tenant] = min(apps[tenant], s.progress.formerApps[tenant])
		}
	}
	commit := plan.Commit{
		Revision: s.commit.Revision, Losses: losses, Apps: apps,
		Emptied: s.found.Empty(), Foreign: s.progress.foreign, Misplaced: s.found.Misplaced(), Confirmed: s.progress.confirmed,
	}
	return commit.Weigh(confirmation), nil
}

// deleteLosses deletes objects that the verdict allows to delete, and returns their names.
func (r *Reconciler) deleteLosses(ctx context.Context, s *scope, lost map[identity.Ref]client.Object, next []plan.Loss) ([]string, error) {
	var entries []v1alpha1.InventoryEntry
	var names []string
	for _, loss := range next {
		if err := r.markClaims(ctx, lost[loss.Ref], loss); err != nil {
			return nil, err
		}
		id := inventory.ObjectID{Namespace: loss.Ref.Key().Namespace, Name: loss.Ref.Key().Name, Group: v1alpha1.GroupVersion.Group, Kind: loss.Ref.Kind()}
		entries = append(entries, v1alpha1.InventoryEntry{ID: id.String(), Version: v1alpha1.GroupVersion.Version})
		names = append(names, loss.Ref.String())
	}
	if len(entries) == 0 {
		return nil, nil
	}
	if _, err := garbage.Delete(ctx, r.Direct, r.Applier.Live, entries, map[string]string{v1alpha1.RepositoryLabel: s.repository.Name}); err != nil {
		return nil, step.Fail(v1alpha1.SyncFailedReason, err)
	}
	return names, nil
}

// markClaims annotates a Tenant or Project with the claims that the confirmation of its deletion named.
func (r *Reconciler) markClaims(ctx context.Context, live client.Object, loss plan.Loss) error {
	var uids []string
	for _, claim := range loss.Claims {
		if claim.Goes {
			uids = append(uids, claim.UID)
		}
	}
	if len(uids) == 0 {
		return nil
	}
	before := live.DeepCopyObject().(client.Object)
	annotations := live.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.ConfirmedClaimsAnnotation] = pvc.Confirm(r.Steps.Clock.Now(), uids)
	live.SetAnnotations(annotations)
	if err := r.Direct.Patch(ctx, live, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return step.Fail(v1alpha1.SyncFailedReason, fmt.Errorf("noting on %s which claims may go: %w", loss.Ref, err))
	}
	return nil
}

// fewApps is how many apps, in one project, may be replaced by a commit that declares none of the existing objects. Renaming a small
// repository's project makes such a commit.
const fewApps = 5

// foreign reports whether the tree declares none of the existing objects. It then belongs to another repository, unless only few objects
// are replaced and URL and path are the same.
func (s *scope) foreign(there map[identity.Ref]string) bool {
	apps, others := 0, 0
	for ref := range there {
		if _, declared := s.found.Find(ref); declared || s.found.Elsewhere(ref) != "" {
			return false
		}
		if ref.App != "" {
			apps++
			continue
		}
		others++
	}
	small := others <= 1 && apps <= fewApps && s.samePlace()
	return len(there) > 0 && !small
}

// samePlace reports whether the last applied commit came from the same URL and path.
func (s *scope) samePlace() bool {
	return s.repository.Status.AppliedSource == upstream.Place(s.repository)
}

// declaredBy returns the objects of a repository that are not being deleted, with the digests of their folders: objects that carry the
// repository's label and came from Git.
func (r *Reconciler) declaredBy(ctx context.Context, name string) (map[identity.Ref]string, error) {
	there := map[identity.Ref]string{}
	add := func(o client.Object) {
		ref, ours := identity.Of(o)
		if ours && o.GetDeletionTimestamp() == nil && declared.FromGit(o) {
			there[ref] = o.GetAnnotations()[v1alpha1.TreeAnnotation]
		}
	}
	of := client.MatchingFields{declaredby.Index: name}
	lists := []client.ObjectList{&v1alpha1.PolicyList{}, &v1alpha1.RegistryList{}, &v1alpha1.PriceListList{}, &v1alpha1.ClusterList{}, &v1alpha1.TenantList{}, &v1alpha1.ProjectList{}, &v1alpha1.AppList{}}
	for _, list := range lists {
		if err := r.Client.List(ctx, list, of, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing what repository %s declared: %w", name, err)
		}
		// The items of these lists are always objects, so the function returns no error.
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			o, _ := item.(client.Object)
			add(o)
			return nil
		})
	}
	return there, nil
}
