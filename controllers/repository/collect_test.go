package repository

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// has reports whether the API server still has an object.
func (c *cluster) has(o client.Object) bool {
	c.t.Helper()
	err := c.api.Get(c.t.Context(), client.ObjectKeyFromObject(o), o)
	if client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
	return err == nil
}

// TestAnAppThatLeftTheCommitIsDeleted, and the step waits until it is gone. Another repository's app of the same project stays.
func TestAnAppThatLeftTheCommitIsDeleted(t *testing.T) {
	web, api := app("kubeop-acme-shop", "web"), app("kubeop-acme-shop", "api")
	objects := func() []client.Object {
		theirs := fromAcme(api.DeepCopy())
		theirs.Labels["paas.kubeop.io/repository"] = "platform"
		return []client.Object{fromAcme(web.DeepCopy()), theirs, fromAcme(project("kubeop-acme", "shop"))}
	}
	k := watching(t, objects()...)
	s := k.scope(declaring(t, "shop"), "acme/shop/web", "acme/shop/api")
	if got := steptest.Outcome(t, k.collect(t.Context(), s)); got != "waits Deleting: waits for App kubeop-acme-shop/web to be gone, after 5s" {
		t.Errorf("got %q", got)
	}
	if k.has(web) || !k.has(api) || !s.weighed || len(s.verdict.Held) > 0 {
		t.Errorf("the app that left exists: %t, that of another repository: %t; the verdict is %+v", k.has(web), k.has(api), s.verdict)
	}
	if got := steptest.Outcome(t, k.collect(t.Context(), s)); got != "done" || len(s.progress.Gone) != 0 {
		t.Errorf("when it is gone: %q, and looked at again is %v", got, s.progress.Gone)
	}

	k = watching(t, objects()...)
	k.Direct = interceptor.NewClient(k.api, interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return errAway },
	})
	s = k.scope(declaring(t, "shop"), "acme/shop/web")
	if got := steptest.Outcome(t, k.collect(t.Context(), s)); !strings.HasPrefix(got, "failed SyncFailed: ") || !k.has(web) || len(s.progress.Gone) != 1 {
		t.Errorf("an app that cannot be deleted: %q, and looked at again is %v", got, s.progress.Gone)
	}
}

// TestAnAppThatTheCacheDoesNotShowYetIsDeleted: the commit before declared it a moment ago.
func TestAnAppThatTheCacheDoesNotShowYetIsDeleted(t *testing.T) {
	web := app("kubeop-acme-shop", "web")
	k := watching(t, fromAcme(web.DeepCopy()), fromAcme(project("kubeop-acme", "shop")))
	k.Client = interceptor.NewClient(k.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, is := o.(*v1alpha1.App); is {
				return apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.Group, Resource: "apps"}, key.Name)
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	s := k.scope(declaring(t, "shop"), "acme/shop/web")
	if got := steptest.Outcome(t, k.collect(t.Context(), s)); k.has(web) || got != "waits Deleting: waits for App kubeop-acme-shop/web to be gone, after 5s" {
		t.Errorf("the app exists: %t, got %q", k.has(web), got)
	}
	if got := steptest.Outcome(t, k.collect(t.Context(), s)); got != "done" || len(s.progress.Gone) != 0 {
		t.Errorf("when it is gone: %q, and looked at again is %v", got, s.progress.Gone)
	}
}

// TestTheAPIServerIsAskedOnlyAboutWhatTheCacheMayNotShowYet: a commit may remove hundreds of apps.
func TestTheAPIServerIsAskedOnlyAboutWhatTheCacheMayNotShowYet(t *testing.T) {
	web, path, without := app("kubeop-acme-shop", "web"), ref("acme/shop/web"), declaring(t, "shop")
	k := watching(t, fromAcme(web.DeepCopy()), fromAcme(project("kubeop-acme", "shop")), acme(), namespace("kubeop-acme"), namespace("kubeop-acme-shop"))
	asked, late := 0, false
	apps := func(before func() error) interceptor.Funcs {
		return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, is := o.(*v1alpha1.App); is {
				if err := before(); err != nil {
					return err
				}
			}
			return c.Get(ctx, key, o, options...)
		}}
	}
	k.Client = interceptor.NewClient(k.api, apps(func() error {
		if late {
			return apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.Group, Resource: "apps"}, "web")
		}
		return nil
	}))
	k.Direct = interceptor.NewClient(k.api, apps(func() error { asked++; return nil }))
	s := k.scope(without, "acme/shop/web")
	collected := func(want string, asks int) {
		t.Helper()
		if got := steptest.Outcome(t, k.collect(t.Context(), s)); got != want || asked != asks {
			t.Errorf("got %q, want %q; the API server was asked %d times, want %d", got, want, asked, asks)
		}
		if k.has(web) && web.DeletionTimestamp == nil {
			t.Error("it is not deleted")
		}
	}
	const waits = "waits Deleting: waits for App kubeop-acme-shop/web to be gone, after 5s"
	collected(waits, 0)
	collected("done", 0)

	s.progress.changed(path) // The event of the deletion.
	if todo, err := k.next(t.Context(), s, nil); len(todo) != 0 || err != nil || !s.progress.Gone.Has(path) {
		t.Errorf("applied are %v, %v; gone are %v", todo, err, s.progress.Gone)
	}
	collected("done", 0)
	if len(s.progress.Gone)+len(s.progress.Shown) != 0 {
		t.Errorf("kept are %v and %v", s.progress.Gone, s.progress.Shown)
	}

	s.progress.changed(path)
	s, _ = k.pass(s, declaring(t, "shop/web"), "main@sha1:3")
	if k.wantApplied("web"); !k.has(web) {
		t.Fatal("it is not made again")
	}
	s.progress.left(path)
	s.progress.tree, s.found, late = without, without, true
	s.progress.changed(path) // An event of the object that was there before.
	collected(waits, 1)
}

// TestAnAppThatWasMadeAgainIsDeletedThoughTheCacheShowedTheOneBefore: someone deletes an app by hand, the operator applies it again, the next commit removes it,
// and that deletion is held while the cache still shows the app that was deleted by hand.
func TestAnAppThatWasMadeAgainIsDeletedThoughTheCacheShowedTheOneBefore(t *testing.T) {
	web, without := app("kubeop-acme-shop", "web"), declaring(t, "shop/api")
	former := fromAcme(web.DeepCopy())
	former.ResourceVersion = "999"
	k := watching(t, fromAcme(project("kubeop-acme", "shop")), acme(), namespace("kubeop-acme"), namespace("kubeop-acme-shop"))
	k.Direct = interceptor.NewClient(k.api, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			defer o.SetResourceVersion("1000") // A real API server counts the versions of all objects of a kind together.
			return c.Patch(ctx, o, patch, options...)
		},
	})
	s, got := k.pass(nil, declaring(t, "shop/web", "shop/api"), "main@sha1:2")
	if got != "done" || !k.has(web) {
		t.Fatalf("got %q; it is made again: %t", got, k.has(web))
	}
	shown := former // By the cache; afterwards it shows none.
	k.Client = interceptor.NewClient(k.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			live, isApp := o.(*v1alpha1.App)
			switch {
			case !isApp || key.Name != "web":
				return c.Get(ctx, key, o, options...)
			case shown == nil:
				return apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.Group, Resource: "apps"}, key.Name)
			}
			shown.DeepCopyInto(live)
			return nil
		},
	})
	s.progress.left(ref("acme/shop/web"))
	s.progress.tree, s.found, s.progress.foreign = without, without, true
	if err := k.collect(t.Context(), s); err != nil || len(s.verdict.Held) != 1 {
		t.Fatalf("the deletion is not held: %v, %+v", err, s.verdict)
	}
	shown, s.progress.foreign = nil, false
	if got := steptest.Outcome(t, k.collect(t.Context(), s)); got != "waits Deleting: waits for App kubeop-acme-shop/web to be gone, after 5s" {
		t.Errorf("got %q", got)
	}
	if k.has(web) && web.DeletionTimestamp == nil {
		t.Error("the app that was made again runs on")
	}
}

// TestAConfirmationHoldsForWhatAFailedDeletionLeft, of the same commit, and for nothing else.
func TestAConfirmationHoldsForWhatAFailedDeletionLeft(t *testing.T) {
	web, api, late := app("kubeop-acme-shop", "web"), app("kubeop-acme-shop", "api"), app("kubeop-acme-shop", "late")
	for i, o := range []*v1alpha1.App{web, api, late} {
		o.UID = types.UID(fmt.Sprint("uid-", i))
	}
	k := watching(t, fromAcme(web.DeepCopy()), fromAcme(api.DeepCopy()), fromAcme(project("kubeop-acme", "shop")))
	deletions := 0
	k.Direct = interceptor.NewClient(k.api, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if deletions++; deletions == 2 {
				return errAway
			}
			return c.Delete(ctx, o, options...)
		},
	})
	s := k.scope(declaring(t, "shop"), "acme/shop/web", "acme/shop/api")
	s.progress.foreign = true
	collected := func(confirmation string) string {
		t.Helper()
		s.repository.Annotations = map[string]string{v1alpha1.ConfirmAnnotation: confirmation}
		if confirmation == "" {
			s.repository.Annotations = nil
		}
		return steptest.Outcome(t, k.collect(t.Context(), s))
	}
	if collected(""); len(s.verdict.Held) != 2 || !k.has(web) || !k.has(api) {
		t.Fatalf("nothing is held: %+v", s.verdict)
	}
	if got := collected(s.verdict.Token); !strings.HasPrefix(got, "failed SyncFailed: ") || k.has(web) == k.has(api) {
		t.Fatalf("got %q; web exists: %t, api: %t", got, k.has(web), k.has(api))
	}
	if err := k.api.Create(t.Context(), fromAcme(late.DeepCopy())); err != nil {
		t.Fatal(err)
	}
	s.progress.Gone.Insert(ref("acme/shop/late"))
	if collected(""); len(s.verdict.Held) != 2 || !k.has(late) {
		t.Errorf("what was not confirmed is deleted with what was: %+v", s.verdict)
	}
	s.progress.Gone.Delete(ref("acme/shop/late"))
	if got := collected(""); k.has(web) || k.has(api) || !strings.HasPrefix(got, "waits Deleting: ") {
		t.Errorf("got %q; web exists: %t, api: %t", got, k.has(web), k.has(api))
	}
}

// TestNothingIsDeletedThatTheCommitMayStillDeclare, because a folder of it could not be read; it is looked at again.
func TestNothingIsDeletedThatTheCommitMayStillDeclare(t *testing.T) {
	web := app("kubeop-acme-shop", "web")
	k := watching(t, fromAcme(web.DeepCopy()))
	s := k.scope(declaring(t, "shop"), "acme/shop/web")
	s.progress.tree.Tenants[0].Projects[0].Unknown = true
	if got := steptest.Outcome(t, k.collect(t.Context(), s)); got != "done" || !k.has(web) || len(s.progress.Gone) != 1 {
		t.Errorf("got %q; the app exists: %t, and looked at again is %v", got, k.has(web), s.progress.Gone)
	}
}

// TestNothingIsDeletedWhileTheClusterCannotBeRead.
func TestNothingIsDeletedWhileTheClusterCannotBeRead(t *testing.T) {
	web := app("kubeop-acme-shop", "web")
	for _, kind := range []string{".App", ".AppList", ".ProjectList", ".PersistentVolumeClaimList"} {
		k := watching(t, fromAcme(web.DeepCopy()), fromAcme(project("kubeop-acme", "shop")))
		k.fails = kind
		s := k.scope(declaring(t, "blog"), "acme/shop", "acme/shop/web")
		err := k.collect(t.Context(), s)
		k.fails = ""
		if err == nil && len(s.verdict.Held) == 0 || !k.has(web) || len(s.progress.Gone) != 2 {
			t.Errorf("%s cannot be read: %v; the app exists: %t, and looked at again is %v", kind, err, k.has(web), s.progress.Gone)
		}
	}
}
