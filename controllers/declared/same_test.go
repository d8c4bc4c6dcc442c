package declared

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// live is what applying a declared app leaves in the cluster.
func live(change func(*v1alpha1.App)) *v1alpha1.App {
	o := app("acme", "shop", "web")
	o.Finalizers, o.ResourceVersion = []string{v1alpha1.Finalizer}, "7"
	o.Spec.Type = v1alpha1.AppRaw
	o.Annotations = map[string]string{v1alpha1.TreeAnnotation: "tree"}
	o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1("{}")}}
	o.Status.LastAppliedRevision = "1"
	if change != nil {
		change(o)
	}
	return o
}

// TestAnObjectIsWrittenUnlessItIsTheSame: what a person changed or deleted, and what kubeop did not apply, is written again.
func TestAnObjectIsWrittenUnlessItIsTheSame(t *testing.T) {
	declared := app("acme", "shop", "web")
	declared.Spec.Type = v1alpha1.AppRaw
	declared.Annotations = map[string]string{v1alpha1.TreeAnnotation: "tree"}
	declared.Status.LastAppliedRevision = "2" // A declared object has no status of its own.
	for name, tc := range map[string]struct {
		live client.Object
		same bool
	}{
		"the same":               {live(nil), true},
		"with defaults":          {live(func(a *v1alpha1.App) { a.Spec.DeletionPolicy = "Delete" }), true},
		"not there":              {nil, false},
		"being deleted":          {live(func(a *v1alpha1.App) { a.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }), false},
		"applied by nobody":      {live(func(a *v1alpha1.App) { a.ManagedFields = nil }), false},
		"another digest":         {live(func(a *v1alpha1.App) { a.Annotations[v1alpha1.TreeAnnotation] = "other" }), false},
		"another field":          {live(func(a *v1alpha1.App) { a.Spec.Type = v1alpha1.AppGit }), false},
		"without the finalizer":  {live(func(a *v1alpha1.App) { a.Finalizers = nil }), false},
		"changed with kubectl":   {live(func(a *v1alpha1.App) { a.ManagedFields = append(a.ManagedFields, byHand) }), false},
		"its status was written": {live(func(a *v1alpha1.App) { a.ManagedFields = append(a.ManagedFields, ofStatus) }), true},
	} {
		if same, err := Same(declared, tc.live); err != nil || same != tc.same {
			t.Errorf("%s: got %t, %v; want %t", name, same, err, tc.same)
		}
	}
}

var (
	byHand   = metav1.ManagedFieldsEntry{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:type":{}}}`)}
	ofStatus = metav1.ManagedFieldsEntry{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status"}
)

func TestTheManifestHasOnlyWhatTheFileHas(t *testing.T) {
	o := app("acme", "shop", "web")
	o.Status.LastAppliedRevision = "1"
	u, err := Manifest(o)
	if err != nil {
		t.Fatal(err)
	}
	metadata := u.Object["metadata"].(map[string]any)
	if _, has := metadata["creationTimestamp"]; has || u.Object["status"] != nil || len(u.GetFinalizers()) != 1 || u.GetFinalizers()[0] != v1alpha1.Finalizer {
		t.Errorf("got %v", u.Object)
	}
}

// TestAnUnchangedFolderKeepsItsRevision with the author of that revision, so that the commit is not written to the app.
func TestAnUnchangedFolderKeepsItsRevision(t *testing.T) {
	of := func(revision, tree, author string) *v1alpha1.App {
		o := app("acme", "shop", "web")
		o.Annotations = map[string]string{}
		for key, value := range map[string]string{v1alpha1.RevisionAnnotation: revision, v1alpha1.TreeAnnotation: tree, v1alpha1.AuthorAnnotation: author} {
			if value != "" {
				o.Annotations[key] = value
			}
		}
		return o
	}
	for name, tc := range map[string]struct{ declared, live, want *v1alpha1.App }{
		"the same folder":                    {of("2", "t", "Bob"), of("1", "t", "Ann"), of("1", "t", "Ann")},
		"the same folder, of nobody":         {of("2", "t", "Bob"), of("1", "t", ""), of("1", "t", "")},
		"another folder":                     {of("2", "t", "Bob"), of("1", "s", "Ann"), of("2", "t", "Bob")},
		"a live object without a revision":   {of("2", "t", "Bob"), of("", "t", "Ann"), of("2", "t", "Bob")},
		"a declared one without a revision":  {of("", "t", ""), of("1", "t", "Ann"), of("", "t", "")},
		"an author, but no revision of this": {of("", "t", "Bob"), of("", "t", "Ann"), of("", "t", "Bob")},
	} {
		KeepRevision(tc.declared, tc.live)
		if diff := cmp.Diff(tc.want.Annotations, tc.declared.Annotations); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	o := of("", "t", "Bob")
	if NameAuthor(o, "Ann"); o.Annotations[v1alpha1.AuthorAnnotation] != "" {
		t.Error("an object without a revision has an author")
	}
}

// TestAChangeWakesTheObjectAfterThePause: the object waits for the pause, which collects its other changes.
func TestAChangeWakesTheObjectAfterThePause(t *testing.T) {
	before, after := app("acme", "shop", "web"), app("acme", "blog", "web")
	wake := Later(time.Second, func(_ context.Context, o client.Object) []types.NamespacedName {
		return []types.NamespacedName{{Name: o.GetNamespace()}}
	})
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	for name, change := range map[string]func(queue){
		"created": func(q queue) { wake.Create(t.Context(), event.CreateEvent{Object: after}, q) },
		"updated": func(q queue) { wake.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q) },
		"deleted": func(q queue) { wake.Delete(t.Context(), event.DeleteEvent{Object: after}, q) },
	} {
		synctest.Test(t, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			change(q)
			change(q)
			time.Sleep(time.Second - time.Millisecond)
			synctest.Wait()
			early := q.Len()
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if early != 0 || q.Len() != 1 {
				t.Fatalf("%s: %d in the queue before the pause ends, and %d afterwards", name, early, q.Len())
			}
			if got, _ := q.Get(); got.Name != after.Namespace {
				t.Errorf("%s: %s is reconciled", name, got.Name)
			}
		})
	}
}
