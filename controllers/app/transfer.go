package app

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// An object that leaves one app of a project and appears in another is handed over, in three steps that each app takes for
// itself and may take again: the one leaves it alone while a sibling declares it or has yet to say what it declares; the
// other takes it over once the first no longer declares it, which writes the other's label; and with that label the first
// lets go of it. Deletions are of the version that was looked at, so that none hits what was taken over meanwhile.

// siblingPatience is how long what left an app waits for siblings that do not say what they declare now, because their
// dependency does not come or their Flux source is not there; while they wait for their turn it does not pass. Afterwards
// only what they declared last, and what is recorded of them, is left for them.
const siblingPatience = 5 * time.Minute

// nextWord is when to look again at what is left for others, which costs a request: after half of the time waited, from one
// second to five minutes, and when their time is up. What they say or take wakes the app before.
func nextWord(waited, left time.Duration) time.Duration {
	next := min(max(waited/2, backoff.First), backoff.Last)
	if left > 0 {
		next = min(next, left)
	}
	return next
}

// said takes down what a pass found the app to declare. Where that is news, or objects were written, and when the app is
// suspended, it wakes the siblings that wait for that.
func (r *Reconciler) said(s *scope) {
	if r.claims.note(s) || s.wrote || s.app.Spec.Suspend {
		r.wakeWaiting(s.app)
	}
}

func (r *Reconciler) wakeWaiting(app *v1alpha1.App) {
	for _, name := range r.claims.awaiting(app.Namespace, app.Name) {
		r.Wake(client.ObjectKey{Namespace: app.Namespace, Name: name})
	}
}

// syncPatience is how long a commit that changed an app may take until all that it declares is there.
const syncPatience = 30 * backoff.First

// wanted returns a function that says which other app declares an object, or may be about to. It costs one request, if it
// is called at all.
func (r *Reconciler) wanted(s *scope) func(context.Context, inventory.ObjectID) (string, error) {
	var once sync.Once
	var others siblings
	var failed error
	return func(ctx context.Context, id inventory.ObjectID) (string, error) {
		once.Do(func() { others, failed = r.siblings(ctx, s) })
		for name, was := range others.said {
			if was.declares(id) {
				return "app " + name, nil
			}
		}
		return others.late, failed
	}
}

// siblings are the other apps of a project.
type siblings struct {
	// said is what they declare, by name; late says whose word is missing, "" for nobody's.
	said map[string]claim
	late string
}

func (r *Reconciler) siblings(ctx context.Context, s *scope) (siblings, error) {
	r.claims.await(s.app.Namespace, s.app.Name, true) // What is said from now on is news.
	// What a commit declares is there before its repository says so: whoever is read afterwards is as the commit has it.
	found := siblings{said: map[string]claim{}, late: r.syncing(ctx, s)}
	apps := &metav1.PartialObjectMetadataList{}
	apps.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AppList"))
	if err := r.Direct.List(ctx, apps, client.InNamespace(s.app.Namespace)); err != nil {
		return found, fmt.Errorf("looking for apps that take objects over: %w", err)
	}
	wakes := s.memory.wakes(r.Clock.Now())
	for i := range apps.Items {
		now := &apps.Items[i]
		if now.Name == s.app.Name || now.DeletionTimestamp != nil {
			continue
		}
		// What it is made from is as good in the cache: a new one is another generation, which has said nothing.
		sibling := &v1alpha1.App{}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(now), sibling); client.IgnoreNotFound(err) != nil {
			return found, fmt.Errorf("looking for apps that take objects over: %w", err)
		}
		if sibling.Spec.Helm != nil {
			continue
		}
		sibling.ObjectMeta = now.ObjectMeta
		made, err := r.recorded(ctx, sibling)
		if err != nil {
			return found, err
		}
		said, late := r.heard(s, sibling, made)
		found.said[sibling.Name] = said
		if late > 0 {
			found.late = "whoever declares it: app " + sibling.Name + " has yet to say what it does"
			s.hears = max(s.hears, late)
		}
		if late > 0 && wakes {
			r.Wake(client.ObjectKeyFromObject(sibling))
		}
	}
	if leaving := s.app.DeletionTimestamp; leaving != nil && r.Clock.Now().Sub(leaving.Time) > s.app.Spec.Within() {
		found.late = "" // A removal waits only for those who said so.
	}
	return found, nil
}

// heard returns what a sibling declares as far as is known, and how long it may still take to say what it declares now. Until
// it has, what it is recorded to have made counts too.
func (r *Reconciler) heard(s *scope, sibling *v1alpha1.App, made v1alpha1.Inventory) (said claim, late time.Duration) {
	said, known := r.claims.of(sibling.Namespace, sibling.Name)
	behind := !sibling.Spec.Suspend && r.behind(s, sibling, said)
	if behind || !known { // A suspended app keeps what it has.
		said.objects = append(hashesOf(&scope{inventory: made}, false), said.objects...)
		slices.Sort(said.objects)
	}
	switch now := aboutOf(sibling); {
	case !behind:
		return said, 0
	case waitsForTurn(sibling): // Its time begins when it has its turn.
		delete(s.memory.silent, sibling.Name)
		return said, siblingPatience
	case said.about == now || s.app.DeletionTimestamp != nil: // There is another limit.
		return said, siblingPatience
	default:
		return said, siblingPatience - s.memory.silence(sibling.Name, now, r.Clock.Now())
	}
}

// waitsForTurn reports whether it is kubeop that keeps an app from its source.
func waitsForTurn(app *v1alpha1.App) bool {
	return conditions.GetReason(app, v1alpha1.SourceReadyCondition) == v1alpha1.WaitingForTurnReason ||
		conditions.GetReason(app, v1alpha1.RenderedCondition) == v1alpha1.WaitingForTurnReason
}

// syncing says that the repository may not have declared yet all that its commit does, or "".
func (r *Reconciler) syncing(ctx context.Context, s *scope) string {
	repository := &v1alpha1.Repository{}
	name := s.app.Labels[v1alpha1.RepositoryLabel]
	if name == "" || r.Clock.Now().Sub(s.memory.declaredAt) > syncPatience || s.app.DeletionTimestamp != nil {
		return ""
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, repository); err != nil {
		return ""
	}
	if repository.Status.LastAttemptedRevision == s.app.Annotations[v1alpha1.RevisionAnnotation] {
		return ""
	}
	return "whoever declares it: repository " + name + " is being synced"
}

// behind reports whether a sibling has yet to look at what it is made from now: at its own spec or, where it is made from
// the same Git repository, at the revision that this app has seen. It has until its next look for that, and until its turn.
func (r *Reconciler) behind(s *scope, sibling *v1alpha1.App, was claim) bool {
	if was.about != aboutOf(sibling) {
		return true
	}
	source := sourceOf(s.app)
	if source == "" || s.source.revision == "" || source != sourceOf(sibling) || was.revision == s.source.revision {
		return false
	}
	return waitsForTurn(sibling) || r.Clock.Now().Sub(s.memory.staleSince) < sibling.Spec.Every()*11/10+time.Minute
}

// yields returns a function that says whether the app whose label an object carries has given it up: it looked at what it
// is made from now, and that does not declare the object. What belongs to an app that is gone belongs to nobody.
func (r *Reconciler) yields(ctx context.Context, s *scope) func(inventory.ObjectID, string) bool {
	return func(id inventory.ObjectID, owner string) bool {
		other := &v1alpha1.App{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.app.Namespace, Name: owner}, other)
		if apierrors.IsNotFound(err) {
			return s.app.Spec.TakeOwnership || s.carriesOver(id, owner)
		}
		was, ok := r.claims.of(s.app.Namespace, owner)
		return err == nil && ok && other.Spec.Helm == nil && was.about == aboutOf(other) && !was.declares(id)
	}
}
