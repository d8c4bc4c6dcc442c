// Package handover moves objects from one App of a project to another (ownership transfer), and volumes from an App that was renamed.
//
// An object that leaves one App and appears in another is handed over in three steps. Each can be repeated, and no App waits for another:
//
//  1. The old App does not delete the object while a sibling declares it, or while a sibling has not declared its objects yet.
//  2. Once the old App no longer declares the object, the new App takes it over: it applies the object with its own label.
//  3. The old App sees the new label and removes the object from its inventory.
//
// A deletion names the version that was checked, so it cannot delete an object that was taken over meanwhile.
package handover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/app/wake"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/render/workload"
)

const (
	// siblingTime is how long objects that left an App wait for siblings that do not declare anything now, because their dependency is not
	// ready or their Flux source does not exist. The time does not run while a sibling waits for its turn. Afterwards, only a sibling's
	// last declaration and its inventory count.
	siblingTime = 5 * time.Minute
	// syncTime is how long a Repository may take to apply all Apps of a commit.
	syncTime = 30 * time.Second
)

// nextLook returns when to check again the objects that are left to others, which costs a request: after half of the time waited, from one
// second to five minutes, and at the end of the siblings' time. If a sibling declares or takes an object, the App is woken earlier.
func nextLook(waited, left time.Duration) time.Duration {
	next := min(max(waited/2, backoff.First), backoff.Last)
	if left > 0 {
		next = min(next, left)
	}
	return next
}

// Transfers record which App of a project declares which object.
type Transfers struct {
	Client client.Reader
	// Direct reads without the cache.
	Direct    client.Reader
	Inventory *record.Recorder
	Queue     *wake.Queue

	declarations declarations
	waiting      subject.Memory[waiting]
}

// Begin records the App's present input, before the pass handles the objects that left the source.
func (t *Transfers) Begin(s *subject.Subject, revision string) {
	w := t.waiting.Get(s.App)
	w.news = t.declarations.newsOf(s.App.Namespace)
	w.begin(inputOf(s.App), revision, s.Now())
}

// Declare records the result of a pass. If the declaration changed, objects were written, or the App is suspended, it wakes the siblings
// that wait for that.
func (t *Transfers) Declare(p Pass) {
	if t.declarations.note(p) || p.Wrote || p.App.Spec.Suspend {
		t.wakeWaiting(p.App)
	}
}

// Forget drops the record of an App, and wakes the siblings that wait for it.
func (t *Transfers) Forget(app *v1alpha1.App) {
	t.declarations.forget(app)
	t.waiting.Forget(app)
	t.wakeWaiting(app)
}

func (t *Transfers) wakeWaiting(app *v1alpha1.App) {
	for _, name := range t.declarations.takeWaiting(app.Namespace, app.Name) {
		t.Queue.Add(client.ObjectKey{Namespace: app.Namespace, Name: name})
	}
}

// Ceded are objects that left an App and are left to others.
type Ceded struct {
	// Count is their number. Overdue names them if the wait takes long.
	Count   int
	Overdue []string
}

// Cede waits for other Apps to declare or take the objects that are left to them, and schedules another check. The App stays ready
// meanwhile, because the others may depend on it.
func (t *Transfers) Cede(s *subject.Subject, objects []string, search *Search) Ceded {
	if len(objects) == 0 {
		t.declarations.await(s.App.Namespace, s.App.Name, false)
		return Ceded{}
	}
	waited := s.Now().Sub(t.waiting.Get(s.App).leftAt)
	s.LookAgain(nextLook(waited, search.left))
	ceded := Ceded{Count: len(objects)}
	if waited >= step.Quiet {
		ceded.Overdue = objects
	}
	return ceded
}

// AwaitOwners has declarations of the siblings wake an App whose objects belong to them. So two Apps that each want an object of the other both move
// on, although neither deletes anything before all its objects are applied. err is the error of the App's apply.
func (t *Transfers) AwaitOwners(s *subject.Subject, err error) {
	if !errors.Is(err, apply.ErrContested) {
		return
	}
	t.declarations.await(s.App.Namespace, s.App.Name, true)
	if t.declarations.newsOf(s.App.Namespace) != t.waiting.Get(s.App).news { // The owner may have given the objects up since the App asked for them.
		t.Queue.Add(client.ObjectKeyFromObject(s.App))
	}
}

// NextLook returns when an App that is being removed checks again the objects that it leaves to others.
func (t *Transfers) NextLook(s *subject.Subject) time.Duration {
	return nextLook(s.Waited("taken over"), s.App.Spec.Within()-s.Now().Sub(s.App.DeletionTimestamp.Time))
}

// Search finds the other Apps that declare an object, or may soon do so. It costs one request at the first use.
type Search struct {
	transfers *Transfers
	subject   *subject.Subject
	// revision is the revision of the App's source.
	revision string

	once   sync.Once
	others siblings
	failed error
	// left is how long siblings may still take to declare.
	left time.Duration
}

// Search returns a search for the Apps that take over the objects that left an App. sourceRevision is the revision of the App's source.
func (t *Transfers) Search(s *subject.Subject, sourceRevision string) *Search {
	return &Search{transfers: t, subject: s, revision: sourceRevision}
}

// Wanted returns which other App declares an object, or why that is not known yet; "" for none.
func (f *Search) Wanted(ctx context.Context, id inventory.ObjectID) (string, error) {
	f.once.Do(func() { f.others, f.failed = f.siblings(ctx) })
	for name, declared := range f.others.declared {
		if declared.declares(id) {
			return "app " + name, nil
		}
	}
	return f.others.late, f.failed
}

// siblings are the other Apps of a project.
type siblings struct {
	// declared holds their declarations, by name; late describes an App without a declaration yet, "" for none.
	declared map[string]declaration
	late     string
}

func (f *Search) siblings(ctx context.Context) (siblings, error) {
	t, s := f.transfers, f.subject
	t.declarations.await(s.App.Namespace, s.App.Name, true) // A declaration from now on wakes the App.
	// A Repository reports a commit after it has applied the commit's Apps, so Apps that are read after this line are those of the commit.
	found := siblings{declared: map[string]declaration{}, late: t.Syncing(ctx, s)}
	apps := &metav1.PartialObjectMetadataList{}
	apps.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AppList"))
	if err := t.Direct.List(ctx, apps, client.InNamespace(s.App.Namespace)); err != nil {
		return siblings{}, fmt.Errorf("looking for apps that take objects over: %w", err)
	}
	wakes := t.waiting.Get(s.App).wakes(s.Now())
	for i := range apps.Items {
		now := &apps.Items[i]
		if now.Name == s.App.Name || now.DeletionTimestamp != nil {
			continue
		}
		late, err := f.add(ctx, &found, now)
		if err != nil {
			return siblings{}, err
		}
		if late && wakes {
			t.Queue.Add(client.ObjectKeyFromObject(now))
		}
	}
	if leaving := s.App.DeletionTimestamp; leaving != nil && s.Now().Sub(leaving.Time) > s.App.Spec.Within() {
		found.late = "" // A removal waits only for Apps that have declared.
	}
	return found, nil
}

// add adds the declaration of one sibling, and reports whether the sibling must still declare.
func (f *Search) add(ctx context.Context, found *siblings, now *metav1.PartialObjectMetadata) (late bool, err error) {
	// The spec may come from the cache: if it is outdated, the generation differs, and the sibling counts as not having declared.
	sibling := &v1alpha1.App{}
	if err := f.transfers.Client.Get(ctx, client.ObjectKeyFromObject(now), sibling); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("looking for apps that take objects over: %w", err)
	}
	if sibling.Spec.Helm != nil {
		return false, nil
	}
	sibling.ObjectMeta = now.ObjectMeta
	made, err := f.transfers.Inventory.Recorded(ctx, sibling)
	if err != nil {
		return false, err
	}
	declared, left := f.declared(sibling, made)
	found.declared[sibling.Name] = declared
	if left <= 0 {
		return false, nil
	}
	found.late = "the app that declares it: app " + sibling.Name + " has not reported its objects yet"
	f.left = max(f.left, left)
	return true, nil
}

// declared returns the known declaration of a sibling, and how long the sibling may still take to declare its present input. Until it has
// done so, its inventory counts, too.
func (f *Search) declared(sibling *v1alpha1.App, made v1alpha1.Inventory) (last declaration, left time.Duration) {
	t, waits := f.transfers, f.transfers.waiting.Get(f.subject.App)
	last, known := t.declarations.of(sibling.Namespace, sibling.Name)
	suspended := sibling.Spec.Suspend || v1alpha1.SuspendedUntil(sibling).After(f.subject.Now())
	behind := !suspended && f.behind(sibling, last)
	if behind || !known { // A suspended App keeps its objects.
		last.objects = append(hashesOfEntries(made.Entries), last.objects...)
		slices.Sort(last.objects)
	}
	switch now := inputOf(sibling); {
	case !behind:
		return last, 0
	case t.declarations.waitsForTurn(sibling): // Its time starts with its turn.
		delete(waits.undeclared, sibling.Name)
		return last, siblingTime
	case last.input == now || f.subject.App.DeletionTimestamp != nil: // Another limit applies.
		return last, siblingTime
	default:
		return last, siblingTime - waits.undeclaredFor(sibling.Name, now, f.subject.Now())
	}
}

// behind reports whether a sibling has not processed its present input yet: its own spec or, if it is made from the same Git repository,
// the revision that this App has seen. For the revision, it has time until its next interval, and until its turn.
func (f *Search) behind(sibling *v1alpha1.App, was declaration) bool {
	if was.input != inputOf(sibling) {
		return true
	}
	source := sourceOf(f.subject.App)
	if source == "" || f.revision == "" || source != sourceOf(sibling) || was.revision == f.revision {
		return false
	}
	left := f.transfers.waiting.Get(f.subject.App).leftAt
	return f.transfers.declarations.waitsForTurn(sibling) || f.subject.Now().Sub(left) < sibling.Spec.Every()*11/10+time.Minute
}

// Syncing returns that the Repository may still be applying the Apps of its commit, or "" if not.
func (t *Transfers) Syncing(ctx context.Context, s *subject.Subject) string {
	repository := &v1alpha1.Repository{}
	name := s.App.Labels[v1alpha1.RepositoryLabel]
	if s.Now().Sub(t.declaredAt(s)) > syncTime || s.App.DeletionTimestamp != nil {
		return ""
	}
	if err := t.Client.Get(ctx, client.ObjectKey{Name: name}, repository); err != nil {
		return "" // There is none for an App without the label.
	}
	if repository.Status.LastAttemptedRevision == s.App.Annotations[v1alpha1.RevisionAnnotation] {
		return ""
	}
	return "the app that declares it: repository " + name + " is being synced"
}

// declaredAt returns the time since when the App has its present input.
func (t *Transfers) declaredAt(s *subject.Subject) time.Time { return t.waiting.Get(s.App).declaredAt }

// Yields returns a function that reports whether the App in an object's label has given the object up: that App has reconciled its present
// source, and the source does not declare the object. An object of a deleted App has no owner.
func (t *Transfers) Yields(ctx context.Context, s *subject.Subject) func(inventory.ObjectID, string) bool {
	return func(id inventory.ObjectID, owner string) bool {
		other := &v1alpha1.App{}
		err := t.Client.Get(ctx, client.ObjectKey{Namespace: s.App.Namespace, Name: owner}, other)
		switch {
		case apierrors.IsNotFound(err):
			return s.App.Spec.TakeOwnership || carriesOver(s.App, id, owner)
		case err != nil:
			return false
		}
		declared, _ := t.declarations.of(s.App.Namespace, owner) // Without one, its input is no App's.
		return other.Spec.Helm == nil && declared.input == inputOf(other) && !declared.declares(id)
	}
}

// carriesOver reports whether this App takes over a claim whose label names a deleted App: because movedFrom says so, or because the claim
// is named after this App, from which the deleted one had taken it over. So a rename can be reverted. A claim named after the deleted App
// does not belong to this App, even if this App's name begins in the same way.
func carriesOver(app *v1alpha1.App, id inventory.ObjectID, gone string) bool {
	if app.Spec.Image == nil || id.Group != "" || id.Kind != claimKind.Kind {
		return false
	}
	if app.Spec.MovedFrom == nil && strings.HasPrefix(id.Name, gone+"-") {
		return false
	}
	return slices.ContainsFunc(app.Spec.Image.Volumes, func(v v1alpha1.ImageVolume) bool {
		return v.Size != nil && workload.ClaimOf(app, v) == id.Name
	})
}
