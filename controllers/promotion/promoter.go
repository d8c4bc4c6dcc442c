// Package promotion has the versions that are healthy in one project written to the apps of another one, for Projects with spec.promotion. It reads
// only the operator's caches.
package promotion

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/writeback/update"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/freeze"
)

// Promoter promotes versions.
type Promoter struct {
	// Reader reads the manager's cache.
	Reader client.Reader
	Writes update.Writer
	Clock  clock.PassiveClock
	// Again looks at a Project again, and Report reconciles it, whose status has what was promoted.
	Again, Report func(types.NamespacedName)

	mu     sync.Mutex
	states map[types.NamespacedName]*state
}

// state is what is known of the promotions to one Project.
type state struct {
	uid    types.UID
	lines  []line
	status v1alpha1.PromotionStatus
	keys   map[string]bool
}

// Reconcile asks for what is to be promoted to one Project.
func (p *Promoter) Reconcile(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	project := &v1alpha1.Project{}
	err := p.Reader.Get(ctx, req.NamespacedName, project)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading project %s: %w", req.NamespacedName, err)
	}
	if apierrors.IsNotFound(err) || project.Spec.Promotion == nil || project.DeletionTimestamp != nil {
		p.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	from, err := p.apps(ctx, project, project.Spec.Promotion.From)
	if err != nil {
		return ctrl.Result{}, err
	}
	to, err := p.apps(ctx, project, project.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	tenant := &v1alpha1.Tenant{}
	if err := p.Reader.Get(ctx, client.ObjectKey{Name: tenantOf(project)}, tenant); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading the tenant of project %s: %w", req.NamespacedName, err)
	}
	now := &pass{Promoter: p, project: project, frozen: freeze.ByAdministrators(tenant), before: p.stateOf(project), state: &state{uid: project.UID, keys: map[string]bool{}}}
	if err := now.refuse(ctx); err != nil {
		return ctrl.Result{}, err
	}
	for i := range to {
		if at := slices.IndexFunc(from, func(a v1alpha1.App) bool { return a.Name == to[i].Name }); at >= 0 && to[i].DeletionTimestamp == nil {
			now.promote(&from[at], &to[i])
		}
	}
	p.keep(project, now.state)
	return ctrl.Result{RequeueAfter: now.again}, nil
}

// apps lists the apps of a project of the same tenant.
func (p *Promoter) apps(ctx context.Context, of *v1alpha1.Project, name string) ([]v1alpha1.App, error) {
	apps := &v1alpha1.AppList{}
	namespace := v1alpha1.ProjectNamespace(tenantOf(of), name)
	if err := p.Reader.List(ctx, apps, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the apps of project %s: %w", name, err)
	}
	return apps.Items, nil
}

// pass is one Reconcile.
type pass struct {
	*Promoter
	*state
	project *v1alpha1.Project
	// before is the state that the last pass kept; nil before the first.
	before *state
	// frozen says that administrators froze the tenant; nil if they did not.
	frozen *freeze.Hold
	again  time.Duration
}

// thawLook is when to look again whether a tenant is still frozen.
const thawLook = time.Minute

// refuse reports a spec that names no other project.
func (p *pass) refuse(ctx context.Context) error {
	key := client.ObjectKey{Namespace: p.project.Namespace, Name: p.project.Spec.Promotion.From}
	err := p.Reader.Get(ctx, key, &v1alpha1.Project{})
	switch {
	case apierrors.IsNotFound(err):
		p.add(v1alpha1.PromotionRefusedReason, "the tenant has no project %s: name another one as spec.promotion.from in project.yaml", key.Name)
	case err != nil:
		return fmt.Errorf("reading project %s: %w", key, err)
	case key.Name == p.project.Name:
		p.add(v1alpha1.PromotionRefusedReason, "spec.promotion.from is this project itself: name another one in project.yaml")
	}
	return nil
}

// promote decides about one app.
func (p *pass) promote(from, to *v1alpha1.App) {
	spec := p.project.Spec.Promotion
	last := p.last(to.Name)
	if last != nil {
		p.status.Promoted = append(p.status.Promoted, *last)
	}
	decided, err := decide(spec, from, to, p.Clock.Now())
	switch {
	case err != nil:
		p.add(v1alpha1.PromotionRefusedReason, "%s: %s", to.Name, err)
		return
	case len(decided.Changes) == 0:
		if u, written := p.Writes.Last(keyOf(p.project.UID, to.Name)); written != nil { // The commit arrived before this pass.
			p.record(to.Name, u, written)
		}
		return
	case last != nil && last.Version == decided.Version && (last.PullRequest != "") == (spec.Write == v1alpha1.WritePullRequest):
		if last.PullRequest != "" {
			p.add(v1alpha1.PullRequestOpenReason, "%s: waits for %s", to.Name, last.PullRequest)
		}
		return // If a person has changed the file since, it stays.
	case decided.Waits != "":
		p.add(v1alpha1.ProgressingReason, "%s: %s: %s", to.Name, described(decided.Changes), decided.Waits)
		p.again = backoff.Sooner(p.again, decided.Again)
		return
	case p.frozen != nil:
		p.add(v1alpha1.ProgressingReason, "%s: %s: the tenant is frozen %s", to.Name, described(decided.Changes), p.frozen)
		p.again = backoff.Sooner(p.again, thawLook)
		return
	case spec.Approval == v1alpha1.ApprovalAnnotation && !slices.Contains(p.project.ConfirmedPromotions(), decided.Version):
		p.hold(v1alpha1.HeldPromotion{App: to.Name, Token: decided.Version, Changes: described(decided.Changes)})
		return
	}
	p.ask(to, decided)
}

// ask asks for the change of an app's file.
func (p *pass) ask(to *v1alpha1.App, v verdict) {
	spec, key := p.project.Spec.Promotion, types.NamespacedName{Namespace: p.project.Namespace, Name: p.project.Name}
	what, again := described(v.Changes), p.Again
	u := update.Update{
		Key: keyOf(p.project.UID, to.Name), Version: v.Version, App: to, Changes: v.Changes, Mode: spec.Write, What: what,
		Title:  fmt.Sprintf("Promote %s from %s to %s", to.Name, spec.From, p.project.Name),
		Body:   fmt.Sprintf("It is healthy in %s.\n\n%s", spec.From, what),
		Branch: strings.Join([]string{"promote", p.project.Name, to.Name, v.Version}, "-"),
		Done:   func() { again(key) },
	}
	p.keys[u.Key] = true
	written := p.Writes.Ask(u)
	if written == nil {
		note := p.Writes.Note(u.Key, v1alpha1.PromotionPendingCondition)
		if note.Message == "" {
			note.Reason, note.Message = v1alpha1.ProgressingReason, "writing "+what
		}
		p.add(note.Reason, "%s: %s", to.Name, note.Message)
		return
	}
	p.record(to.Name, u, written)
}

// record records what was promoted to an app.
func (p *pass) record(app string, u update.Update, written *update.Written) {
	p.status.Promoted = slices.DeleteFunc(p.status.Promoted, func(o v1alpha1.Promoted) bool { return o.App == app })
	p.status.Promoted = append(p.status.Promoted, v1alpha1.Promoted{App: app, Version: u.Version, Changes: u.What, Commit: written.Commit, PullRequest: written.PullRequest})
}

// last returns what was last promoted to an app; the status may not have it yet.
func (p *pass) last(app string) *v1alpha1.Promoted {
	promoted := p.project.Status.Promoted
	if p.before != nil {
		promoted = p.before.status.Promoted
	}
	at := slices.IndexFunc(promoted, func(o v1alpha1.Promoted) bool { return o.App == app })
	if at < 0 {
		return nil
	}
	return &promoted[at]
}

// described says what changes.
func described(changes []update.Change) string {
	texts := make([]string, len(changes))
	for i, c := range changes {
		texts[i] = shownChange(c)
	}
	return step.Few(texts)
}

func keyOf(project types.UID, app string) string { return "promotion " + string(project) + " " + app }

// keep keeps the state of a Project for its status, and drops what is not asked for any more.
func (p *Promoter) keep(project *v1alpha1.Project, now *state) {
	key := client.ObjectKeyFromObject(project)
	p.mu.Lock()
	was := p.states[key]
	if p.states == nil {
		p.states = map[types.NamespacedName]*state{}
	}
	p.states[key] = now
	p.mu.Unlock()
	p.drop(was, now.keys)
	note := now.note(project)
	last := conditions.Get(project, v1alpha1.PromotionPendingCondition)
	same := last == nil && note.Status == "" || last != nil && last.Reason == note.Reason && last.Message == note.Message
	if !same || !equality.Semantic.DeepEqual(now.status, project.Status.PromotionStatus) {
		p.Report(key)
	}
}

// drop drops what was asked for before and is not any more.
func (p *Promoter) drop(was *state, now map[string]bool) {
	if was == nil {
		return
	}
	for key := range was.keys {
		if !now[key] {
			p.Writes.Drop(key)
		}
	}
}

// forget drops the state of a Project that promotes nothing any more.
func (p *Promoter) forget(key types.NamespacedName) {
	p.mu.Lock()
	was := p.states[key]
	delete(p.states, key)
	p.mu.Unlock()
	p.drop(was, nil)
}

// stateOf returns what is known of a Project; nil before the first pass.
func (p *Promoter) stateOf(project *v1alpha1.Project) *state {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.states[client.ObjectKeyFromObject(project)]; now != nil && now.uid == project.UID {
		return now
	}
	return nil
}

// StatusOf returns the condition PromotionPending of a Project, and what was promoted or is held, for its status. Until it is known, they stay as
// they are.
func (p *Promoter) StatusOf(project *v1alpha1.Project) (step.Note, v1alpha1.PromotionStatus) {
	note := step.Note{Condition: v1alpha1.PromotionPendingCondition}
	if project.Spec.Promotion == nil {
		return note, v1alpha1.PromotionStatus{}
	}
	if now := p.stateOf(project); now != nil {
		return now.note(project), *now.status.DeepCopy()
	}
	return step.Stays(note.Condition), project.Status.PromotionStatus
}
