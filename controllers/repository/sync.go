package repository

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declared"
	"github.com/kubeop/kubeop/controllers/declaredby"
	"github.com/kubeop/kubeop/controllers/repository/upstream"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/files"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

const (
	// batch bounds how many objects are applied, and held in memory, at once. In memory, an object takes ten times the size of its file.
	batch = 100
	// turn is how long one pass works before the status reports the progress.
	turn = 2 * time.Second
	// ahead is how many objects may wait for a namespace before others are started. So a first sync completes one project after another,
	// instead of starting all tenants first. Objects that have waited longer than stuck do not count.
	ahead = 48
	stuck = 15 * time.Second
)

// sync reads the changes of the commit and applies them. An object that fails holds up only those that depend on it. An invalid file is a
// problem, reported by checkProblems; a failure of the API server or the network is an error.
func (r *Reconciler) sync(ctx context.Context, s *scope) error {
	root, err := s.commit.Root.Sub(upstream.Folder(s.repository.Spec.Path))
	if err != nil {
		return pathError(fmt.Errorf("spec.path: %w", err))
	}
	s.progress = r.records.begin(s.repository.UID, s.repository.Name)
	if err := r.read(ctx, s, files.Of(root)); err != nil {
		return err
	}
	if !s.found.Usable() {
		return nil // The objects that were refused before are still refused.
	}
	defer r.reportRefusals(s) // The report includes the objects that the API server refused.
	if err := r.look(ctx, s); err != nil {
		return err
	}
	var failed error
	if !s.progress.foreign || s.samePlace() {
		failed = r.declare(ctx, s)
	}
	if s.unfinished {
		return failed
	}
	collected := r.collect(ctx, s) // Objects that left Git are deleted even if others could not be applied.
	s.synced = failed == nil && collected == nil
	if s.synced && s.previewsLeft() {
		s.again = retrySync
	}
	if s.synced {
		return nil
	}
	// Report what waits for people beside what waits for the cluster.
	s.again = retrySync
	return step.GoOn(joined(failed, collected))
}

// pathError ends the step for a path without a folder. Only a change of the path or a new commit helps, unless the store cannot be read.
func pathError(err error) error {
	reason, final := verdict.Of(err)
	if final || errors.Is(err, folder.ErrSymlink) || errors.Is(err, folder.ErrSubmodule) {
		return step.Stop(v1alpha1.SourceNotFoundReason, err)
	}
	return step.Fail(reason, err)
}

// retrySync is the pause before a failed sync is retried while Ready reports another problem, which only people can solve.
const retrySync = 10 * time.Second

// joined joins the errors of a sync's two parts. A wait is left out if the other part failed.
func joined(failed, collected error) error {
	switch {
	case failed == nil:
		return collected
	case collected == nil || step.Waits(collected):
		return failed
	}
	return step.Fail(v1alpha1.SyncFailedReason, errors.Join(failed, collected))
}

// read reads the tree. A commit is read once, however many passes it takes to apply it.
func (r *Reconciler) read(ctx context.Context, s *scope, root tree.Files) error {
	spec, p := s.repository.Spec, s.progress
	as := tree.Scope{Repository: s.repository.Name, Tenant: spec.Tenant, Path: spec.Path}
	reader, err := r.reader(ctx, spec.Tenant)
	if err != nil {
		return err
	}
	if own := reader.Placement.Cluster; own != nil {
		s.cluster = *own
	}
	if p.tree != nil && p.tree.Scope == as && p.revision == s.commit.Revision && reader.Made(p.tree) {
		return r.addPreviews(ctx, s, p.tree)
	}
	if err := s.announce(); err != nil {
		return err
	}
	before := p.tree
	if before == nil || before.Scope != as {
		there, err := r.declaredBy(ctx, s.repository.Name)
		if err != nil {
			return err
		}
		before = tree.Accepted(as, there)
	}
	now := reader.Read(root, as, before)
	if file, err := now.Unread(); err != nil {
		return step.Fail(v1alpha1.FetchFailedReason, fmt.Errorf("reading %s: %w", file, err))
	}
	return r.addPreviews(ctx, s, now)
}

// announce reports in the status that a commit is being read, before the first reading of all tenants' files. With very many files, that
// takes minutes: up to a millisecond for each. Later readings read only changes.
func (s *scope) announce() error {
	p, revision := s.progress, s.commit.Revision
	if s.repository.Spec.Tenant != "" || p.tree != nil || p.announced == revision || s.repository.Status.LastAttemptedRevision == revision {
		return nil
	}
	p.announced = revision
	return step.Wait(v1alpha1.ProgressingReason, time.Millisecond, "reading the files of %s", revision)
}

// look records, for a new tree, which objects to compare and which have left: those that differ from the previous tree or, the first time,
// all objects. It records all objects that left at once, so that the deletions of a commit are decided together.
func (r *Reconciler) look(ctx context.Context, s *scope) error {
	p, now := s.progress, s.found
	if p.tree == now {
		return nil
	}
	if p.Gone.Len() == 0 {
		p.formerApps = nil
	}
	note := func(ref identity.Ref) {
		if _, there := now.Find(ref); there {
			p.look(ref)
			return
		}
		p.left(ref)
	}
	first := p.tree == nil || p.tree.Scope != now.Scope
	if first || p.foreign || !now.Shares(p.tree) {
		there, err := r.declaredBy(ctx, s.repository.Name)
		if err != nil {
			return err
		}
		p.foreign = s.foreign(there)
		p.reported = r.Steps.Clock.Now().Add(firstReport - reportEvery)
		for ref := range there {
			note(ref)
		}
	}
	tree.Changes(p.tree, now, note)
	if p.Gone.Len() > 0 && p.formerApps == nil {
		var err error
		if p.formerApps, err = r.appsBefore(ctx, s, first); err != nil {
			return err
		}
	}
	p.tree, p.revision = now, s.commit.Revision
	return nil
}

// appsBefore counts the apps of each tenant before the commit: those of the tree before it or, without one, the live ones that the commit cannot
// have created.
func (r *Reconciler) appsBefore(ctx context.Context, s *scope, first bool) (map[string]int, error) {
	before := map[string]int{}
	if !first {
		s.progress.tree.Walk(func(n tree.Node) bool {
			if ref := n.Ref(); ref.App != "" {
				before[ref.Tenant]++
			}
			return true
		})
		return before, nil
	}
	apps := &v1alpha1.AppList{}
	if err := r.Client.List(ctx, apps, client.MatchingFields{declaredby.Index: s.repository.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("counting the apps of repository %s: %w", s.repository.Name, err)
	}
	for i := range apps.Items {
		app := &apps.Items[i]
		if app.Generation > 1 || app.Annotations[v1alpha1.RevisionAnnotation] != s.commit.Revision {
			before[v1alpha1.TenantOf(app.Namespace)]++
		}
	}
	return before, nil
}

// declare applies pending objects, for at most one turn.
func (r *Reconciler) declare(ctx context.Context, s *scope) error {
	began := r.Steps.Clock.Now()
	failed := failures{}
	if err := r.lookAgain(ctx, s); err != nil {
		return err
	}
	defer s.settle()
	for {
		todo, err := r.next(ctx, s, failed)
		if err != nil {
			return err
		}
		if len(todo) == 0 {
			break
		}
		if err := r.applyBatch(ctx, s, todo, failed); err != nil {
			return err
		}
		if r.Steps.Clock.Now().Sub(began) > turn {
			s.unfinished = true
			return step.Wait(v1alpha1.ProgressingReason, time.Millisecond, "%s", s.reached())
		}
	}
	s.unapplied = maps.Clone(failed)
	maps.DeleteFunc(s.unapplied, func(ref identity.Ref, _ error) bool { return s.own(ref) })
	maps.DeleteFunc(failed, func(ref identity.Ref, _ error) bool { return !s.own(ref) })
	if err := failed.join(); err != nil {
		return step.Fail(v1alpha1.SyncFailedReason, err)
	}
	return nil
}

// failures are the objects that could not be applied in a pass, with the errors.
type failures map[identity.Ref]error

func (f failures) join() error {
	var all []error
	for _, err := range f {
		all = append(all, err)
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(all...)
}

// next returns the pending objects to apply now, at most a batch: projects whose quota grows at the expense of others come after all else.
func (r *Reconciler) next(ctx context.Context, s *scope, failed failures) ([]client.Object, error) {
	todo, later, err := r.nextOf(ctx, s, failed, atOnce)
	if len(todo) == 0 && later && err == nil {
		todo, _, err = r.nextOf(ctx, s, failed, afterShrinks)
	}
	return todo, err
}

// nextOf returns the pending objects whose turn it is, and whether others come later: policies, registries and price lists before tenants,
// which refer to them. Objects that need no write are marked as done.
func (r *Reconciler) nextOf(ctx context.Context, s *scope, failed failures, now turnOf) (todo []client.Object, later bool, err error) {
	p, held := s.progress, 0
	for _, ref := range p.pending.All() {
		if held == ahead || full(todo, ref) {
			break
		}
		node, there := p.tree.Find(ref)
		switch {
		case !there:
			p.left(ref)
			continue
		case !node.Declared(): // An object with an invalid folder is not changed.
			p.done(ref)
			continue
		}
		turn, err := r.turnOf(ctx, s, ref, failed)
		if err != nil {
			return nil, false, err
		}
		later = later || turn > now
		if turn != now || failed[ref] != nil || p.before(node) {
			continue
		}
		o, waits, err := r.take(ctx, s, node)
		if err != nil {
			return nil, false, err
		}
		if waits {
			held++
		}
		if o != nil {
			todo = append(todo, o)
		}
	}
	return todo, later, nil
}

// take returns a pending object to apply; nil for none. waits reports whether it waits for its namespace, and not for too long.
func (r *Reconciler) take(ctx context.Context, s *scope, node tree.Node) (o client.Object, waits bool, err error) {
	p, ref, now := s.progress, node.Ref(), r.Steps.Clock.Now()
	o, state, err := r.compare(ctx, s, node)
	switch {
	case err != nil:
		return nil, false, err
	case state == same:
		p.done(ref)
	case state == blocked && p.over.Has(ref.Parent()):
		p.holdOver(ref)
	case state == blocked:
		p.wait(ref, now)
		return nil, now.Sub(p.waiting[ref]) < stuck, nil
	default:
		delete(p.waiting, ref)
		if admitted, err := r.admit(ctx, s, o); admitted || err != nil {
			return o, false, err
		}
	}
	return nil, false, nil
}

// full reports whether an object does not fit into a batch: the batch has its maximum size, or it has policies, registries or price lists, which come first, and
// the object is none of them.
func full(todo []client.Object, ref identity.Ref) bool {
	if len(todo) == 0 || len(todo) == batch || ref.OneFile() {
		return len(todo) == batch
	}
	first, _ := identity.Of(todo[0])
	return first.OneFile()
}

// before reports whether an app depends on another that this commit changes and that is not applied yet. Apply dependencies first, so no App
// reads the old readiness of a dependency that this commit changes.
func (p *progress) before(n tree.Node) bool {
	app, ok := n.(*tree.App)
	return ok && slices.ContainsFunc(app.DependsOn, func(on identity.Ref) bool {
		other, there := p.tree.Find(on)
		return there && other.Declared() && p.pending.Has(on)
	})
}

// applyBatch applies objects. If the API server rejects one as invalid, for example because an immutable field changed, that is a problem
// of its file.
func (r *Reconciler) applyBatch(ctx context.Context, s *scope, objects []client.Object, failed failures) error {
	set := apply.Set{Client: r.Direct}
	refs := map[inventory.ObjectID]identity.Ref{}
	for _, o := range objects {
		u, err := declared.Manifest(o)
		if err != nil {
			return err
		}
		recorded, err := r.recorded(ctx, o)
		if err != nil {
			return err
		}
		set.Objects, set.Recorded = append(set.Objects, u), append(set.Recorded, recorded...)
		refs[inventory.IDOf(o)], _ = identity.Of(o)
	}
	result, err := r.Applier.Apply(ctx, set)
	for id, ref := range refs {
		s.progress.Wrote(ref, result.Written[id.String()])
	}
	wrong := map[identity.Ref]bool{}
	for _, each := range inventory.Split(err) {
		var oe *inventory.ObjectError
		if !errors.As(each, &oe) {
			return step.Fail(v1alpha1.SyncFailedReason, each)
		}
		ref := refs[oe.ID]
		wrong[ref] = true
		if step.Unacceptable(each) {
			s.progress.refuse(ref, code.WriteRefused, oe.Err)
			delete(s.allotments, ref.Tenant) // It gives nothing back.
			continue
		}
		failed[ref] = each
	}
	for _, ref := range refs {
		if !wrong[ref] {
			s.made(ref, r.Steps.Clock.Now())
			s.progress.done(ref)
		}
	}
	return nil
}
