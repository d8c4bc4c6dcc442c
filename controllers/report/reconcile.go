package report

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declaredby"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/host"
	gitreport "github.com/kubeop/kubeop/gitops/report"
)

const (
	// fullPause is the pause before another try when too many reports wait.
	fullPause = 30 * time.Second
	// firstRepeat and lastRepeat are the pauses between two statuses of a commit of which only the description differs. They double: GitHub
	// takes at most 1,000 statuses of one name for a commit.
	firstRepeat = time.Minute
	lastRepeat  = time.Hour
)

// Reconcile gives the queue the statuses of a Repository's commits that the Git host does not show yet. It reads caches only.
func (r *Reporter) Reconcile(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	repository := &v1alpha1.Repository{}
	err := r.Reader.Get(ctx, req.NamespacedName, repository)
	switch {
	case apierrors.IsNotFound(err), err == nil && (repository.Spec.CommitStatus == nil || !repository.DeletionTimestamp.IsZero()):
		r.forget(req.Name)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading repository %s: %w", req.Name, err)
	case repository.Status.ObservedGeneration < 0:
		return ctrl.Result{}, nil // Its status says nothing yet.
	}
	objects, err := r.objects(ctx, repository.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.recordOf(repository)
	r.adapt(rec, repository)
	var again time.Duration
	for _, s := range rec.judge(repository, objects, r.Clock.Now(), &again) {
		if !r.ask(rec, repository, s) {
			again = backoff.Sooner(again, fullPause)
		}
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// adapt drops what was sent when the spec changed, because it was sent to another place, and hurries what failed.
func (r *Reporter) adapt(rec *record, repository *v1alpha1.Repository) {
	spec := *repository.Spec.CommitStatus
	if specOf(rec.spec) == specOf(spec) {
		return
	}
	rec.spec, rec.accepted, rec.asked = spec, nil, map[string]v1alpha1.ReportedStatus{}
	r.Queue.DropAll(keyOf(rec.uid, ""))
}

// specOf makes specs comparable.
func specOf(spec v1alpha1.CommitStatus) v1alpha1.CommitStatus {
	secret := spec.SecretRef
	spec.SecretRef = nil
	if secret != nil {
		spec.Type += " " + secret.Name
	}
	return spec
}

// declarations are what a repository declares.
type declarations struct {
	// apps are the Apps by the commit that changed them last, homes the Tenants and Projects that are not healthy.
	apps  map[string][]gitreport.Object
	homes []gitreport.Object
}

// objects returns what the repository declares.
func (r *Reporter) objects(ctx context.Context, name string) (*declarations, error) {
	of := client.MatchingFields{declaredby.Index: name}
	tenants, projects, apps := &v1alpha1.TenantList{}, &v1alpha1.ProjectList{}, &v1alpha1.AppList{}
	for _, list := range []client.ObjectList{tenants, projects, apps} {
		if err := r.Reader.List(ctx, list, of, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing what repository %s declared: %w", name, err)
		}
	}
	d := &declarations{apps: map[string][]gitreport.Object{}}
	home := func(o gitreport.Object, leaving bool) {
		if !leaving && !o.Healthy() {
			d.homes = append(d.homes, o)
		}
	}
	for i := range tenants.Items {
		home(gitreport.ObjectOf(&tenants.Items[i]), tenants.Items[i].DeletionTimestamp != nil)
	}
	for i := range projects.Items {
		if projects.Items[i].Annotations[v1alpha1.BranchAnnotation] != "" {
			continue // A preview says nothing about the commits of the Repository.
		}
		home(gitreport.ObjectOf(&projects.Items[i]), projects.Items[i].DeletionTimestamp != nil)
	}
	for i := range apps.Items {
		app := &apps.Items[i]
		preview := app.Annotations[v1alpha1.BranchAnnotation] != ""
		if commit := v1alpha1.CommitOf(app.Annotations[v1alpha1.RevisionAnnotation]); commit != "" && app.DeletionTimestamp == nil && !preview {
			d.apps[commit] = append(d.apps[commit], gitreport.ObjectOf(app))
		}
	}
	return d, nil
}

// judge returns the statuses to send. It lowers again if the next look at the repository has to be sooner.
func (rec *record) judge(repository *v1alpha1.Repository, d *declarations, now time.Time, again *time.Duration) (send []v1alpha1.ReportedStatus) {
	newest, held := v1alpha1.CommitOf(repository.Status.LastAttemptedRevision), v1alpha1.CommitOf(repository.Status.HeldRevision)
	rec.keep(newest, held, now)
	add := func(commit string, v gitreport.Verdict) {
		*again = backoff.Sooner(*again, v.Again)
		s := v1alpha1.ReportedStatus{Commit: commit, State: string(v.State), Description: host.Shortened(v.Description)}
		if rec.news(s, now, again) {
			send = append(send, s)
		}
	}
	if held != "" {
		add(held, gitreport.Held(repository))
	}
	for commit, since := range rec.since {
		c := gitreport.Commit{Hash: commit, Since: since, Now: now, Apps: d.apps[commit]}
		switch {
		case rec.known(commit).State == string(host.Success) || commit == held:
		case commit == newest:
			c.Homes = d.homes
			add(commit, gitreport.Newest(repository, c))
		case rec.known(commit).State == string(host.Pending):
			add(commit, gitreport.Older(c, newest))
		}
	}
	slices.SortFunc(send, func(a, b v1alpha1.ReportedStatus) int { return strings.Compare(a.Commit, b.Commit) })
	return send
}

// keep follows the newest commits, and those before them that the Git host shows as in progress.
func (rec *record) keep(newest, held string, now time.Time) {
	follow := map[string]bool{newest: newest != "", held: held != ""}
	for _, s := range rec.accepted {
		follow[s.Commit] = follow[s.Commit] || s.State == string(host.Pending)
	}
	for commit := range follow {
		if follow[commit] && rec.since[commit].IsZero() {
			rec.since[commit], rec.repeats = now, 0
		}
	}
	maps.DeleteFunc(rec.since, func(commit string, _ time.Time) bool { return !follow[commit] })
	maps.DeleteFunc(rec.asked, func(commit string, _ v1alpha1.ReportedStatus) bool { return !follow[commit] })
	rec.accepted = slices.DeleteFunc(rec.accepted, func(s v1alpha1.ReportedStatus) bool { return !follow[s.Commit] })
}

// known is the newest status of a commit that was sent or is about to be.
func (rec *record) known(commit string) v1alpha1.ReportedStatus {
	if s, asked := rec.asked[commit]; asked {
		return s
	}
	for _, s := range rec.accepted {
		if s.Commit == commit {
			return s
		}
	}
	return v1alpha1.ReportedStatus{}
}

// news reports whether a status has to be sent to the Git host, because it differs from the last one that was sent. A commit that failed is not reported
// as in progress again. A change of the description alone is sent rarely, and never for a commit in progress.
func (rec *record) news(s v1alpha1.ReportedStatus, now time.Time, again *time.Duration) bool {
	was := rec.known(s.Commit)
	switch {
	case was == s, s.State == string(host.Pending) && was.State != "":
		return false
	case was.State != s.State:
		rec.last = now
		return true
	}
	pause := min(firstRepeat<<min(rec.repeats, 10), lastRepeat)
	if left := rec.last.Add(pause).Sub(now); left > 0 {
		*again = backoff.Sooner(*again, left)
		return false
	}
	rec.repeats++
	rec.last = now
	return true
}

// ask gives a status to the queue, and reports whether there was room. It is sent later, so nothing may change the Repository.
func (r *Reporter) ask(rec *record, repository *v1alpha1.Repository, s v1alpha1.ReportedStatus) bool {
	name, uid := repository.Name, repository.UID
	queued := r.Queue.Put(gitreport.Message{
		Key: keyOf(uid, s.Commit), Kind: gitreport.CommitStatus, Host: host.Of(repository).Host(), Tenant: budget.OfRepository(name),
		Send: func(ctx context.Context) error { return r.send(ctx, repository, s) },
		Done: func(err error) { r.done(name, uid, s, err) },
	})
	if queued {
		rec.asked[s.Commit] = s
	}
	return queued
}

// send sets one status.
func (r *Reporter) send(ctx context.Context, repository *v1alpha1.Repository, s v1alpha1.ReportedStatus) error {
	spec := repository.Spec.CommitStatus
	auth, err := r.Auth(ctx, repository)
	if err != nil {
		return err
	}
	git, err := host.Open(r.Network, host.Of(repository), auth, r.Clock.Now)
	if err != nil {
		return fmt.Errorf("spec.commitStatus: %w", err)
	}
	defer git.Close()
	name := spec.Context
	if name == "" {
		name = "kubeop/" + repository.Name
	}
	return git.SetStatus(ctx, host.Status{
		Commit: s.Commit, Context: name, State: host.State(s.State), Description: auth.Redact(s.Description),
		Link: strings.ReplaceAll(spec.TargetURL, "{commit}", s.Commit),
	})
}
