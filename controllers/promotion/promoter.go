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
	pass := &pass{Promoter: p, project: project, before: p.stateOf(project), state: &state{uid: project.UID, keys: map[string]bool{}}}
	for _, read := range []func(context.Context) error{pass.readApps, pass.readFreeze, pass.checkSource} {
		if err := read(ctx); err != nil {
			return ctrl.Result{}, err
		}
	}
	pass.promoteApps()
	pass.keep()
	return ctrl.Result{RequeueAfter: pass.again}, nil
}

// pass is one Reconcile.
type pass struct {
	*Promoter
	*state
	project *v1alpha1.Project
	// before is the state that the last pass kept; nil before the first.
	before *state
	// from and to are the apps of the project that is promoted from, and of this one.
	from, to []v1alpha1.App
	// frozen says that administrators froze the tenant; nil if they did not.
	frozen *freeze.Hold
	again  time.Duration
}

// readApps lists the apps of both projects.
func (p *pass) readApps(ctx context.Context) (err error) {
	if p.from, err = p.apps(ctx, p.project, p.project.Spec.Promotion.From); err != nil {
		return err
	}
	p.to, err = p.apps(ctx, p.project, p.project.Name)
	return err
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

// readFreeze reads whether administrators froze the tenant.
func (p *pass) readFreeze(ctx context.Context) error {
	tenant := &v1alpha1.Tenant{}
	if err := p.Reader.Get(ctx, client.ObjectKey{Name: tenantOf(p.project)}, tenant); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the tenant of project %s: %w", client.ObjectKeyFromObject(p.project), err)
	}
	p.frozen = freeze.ByAdministrators(tenant)
	return nil
}

// thawLook is when to look again whether a tenant is still frozen.
const thawLook = time.Minute

// checkSource reports a spec that names no other project.
func (p *pass) checkSource(ctx context.Context) error {
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

// promoteApps decides about the apps that both projects have.
func (p *pass) promoteApps() {
	for i := range p.to {
		to := &p.to[i]
		if at := slices.IndexFunc(p.from, func(a v1alpha1.App) bool { return a.Name == to.Name }); at >= 0 && to.DeletionTimestamp == nil {
			p.promote(&p.from[at], to)
		}
	}
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

// keep keeps the state of the Project for its status, and drops what is not asked for any more.
func (p *pass) keep() {
	key := client.ObjectKeyFromObject(p.project)
	p.mu.Lock()
	was := p.states[key]
	if p.states == nil {
		p.states = map[types.NamespacedName]*state{}
	}
	p.states[key] = p.state
	p.mu.Unlock()
	p.drop(was, p.keys)
	note := p.note(p.project)
	last := conditions.Get(p.project, v1alpha1.PromotionPendingCondition)
	same := last == nil && note.Status == "" || last != nil && last.Reason == note.Reason && last.Message == note.Message
	if !same || !equality.Semantic.DeepEqual(p.status, p.project.Status.PromotionStatus) {
		p.Report(key)
	}
}

// drop drops what was asked for before and is not any more.
func (p *Promoter) drop(was *state, stay map[string]bool) {
	if was == nil {
		return
	}
	for key := range was.keys {
		if !stay[key] {
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
	if known := p.states[client.ObjectKeyFromObject(project)]; known != nil && known.uid == project.UID {
		return known
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
	if known := p.stateOf(project); known != nil {
		return known.note(project), *known.status.DeepCopy()
	}
	return step.Stays(note.Condition), project.Status.PromotionStatus
}
