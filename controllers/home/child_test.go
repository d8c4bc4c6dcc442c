package home

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func app(change ...func(*v1alpha1.App)) *v1alpha1.App {
	a := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "web", Finalizers: []string{v1alpha1.Finalizer}}}
	for _, c := range change {
		c(a)
	}
	return a
}

func deletedApp(a *v1alpha1.App) { a.DeletionTimestamp = &metav1.Time{Time: deletedAt} }

func TestAChildIsDeletedOnceWithThePolicyOfItsOwner(t *testing.T) {
	for name, c := range map[string]struct {
		forced, orphan bool
		child          *v1alpha1.App
		deletions      int
		policy         v1alpha1.AppDeletionPolicy
		force          string
	}{
		"not deleted yet":                        {child: app(), deletions: 1},
		"already being deleted":                  {child: app(deletedApp)},
		"with another policy":                    {child: app(), orphan: true, deletions: 1, policy: v1alpha1.AppDeletionOrphan},
		"being deleted, with another policy":     {child: app(deletedApp), orphan: true, policy: v1alpha1.AppDeletionOrphan},
		"not deleted yet, the owner forced":      {child: app(), forced: true, deletions: 1},
		"being deleted, the owner forced":        {child: app(deletedApp), forced: true, force: "web"},
		"being deleted, forced, another policy":  {child: app(deletedApp), forced: true, orphan: true, force: "web", policy: v1alpha1.AppDeletionOrphan},
		"the annotation names something else":    {child: app(deletedApp, func(a *v1alpha1.App) { a.Annotations = map[string]string{v1alpha1.ForceRemovalAnnotation: "x"} }), forced: true, force: "web"},
		"another annotation of the child's stay": {child: app(deletedApp, func(a *v1alpha1.App) { a.Annotations = map[string]string{"example.com/x": "y"} }), forced: true, force: "web"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, c.child)
			if c.forced {
				b.Of.SetAnnotations(map[string]string{v1alpha1.ForceRemovalAnnotation: b.Of.GetName()})
			}
			deletions := 0
			api := interceptor.NewClient(b.api, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				deletions++
				return c.Delete(ctx, o, opts...)
			}})
			child := &v1alpha1.App{}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(c.child), child); err != nil {
				t.Fatal(err)
			}
			err := DeleteChild(t.Context(), api, b.Of, child, func() bool {
				if c.orphan {
					child.Spec.DeletionPolicy = v1alpha1.AppDeletionOrphan
				}
				return c.orphan
			})
			if err != nil || deletions != c.deletions {
				t.Errorf("%d deletions, want %d (%v)", deletions, c.deletions, err)
			}
			live := &v1alpha1.App{}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(c.child), live); err != nil {
				t.Fatal(err)
			}
			if live.Spec.DeletionPolicy != c.policy || live.Annotations[v1alpha1.ForceRemovalAnnotation] != c.force || live.DeletionTimestamp == nil {
				t.Errorf("policy %q, forced by %q, deleted at %v", live.Spec.DeletionPolicy, live.Annotations[v1alpha1.ForceRemovalAnnotation], live.DeletionTimestamp)
			}
			if live.Annotations["example.com/x"] != c.child.Annotations["example.com/x"] {
				t.Errorf("annotations are %v", live.Annotations)
			}
		})
	}
}

func TestAChildThatIsGoneMeanwhileIsNoError(t *testing.T) {
	notFound := apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("apps").GroupResource(), "web")
	for name, c := range map[string]struct{ answer, want error }{
		"gone": {notFound, nil}, "refused": {errAway, errAway},
	} {
		for _, orphan := range []bool{false, true} {
			b, deletions := newFixture(t), 0
			api := interceptor.NewClient(b.api, interceptor.Funcs{
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
					deletions++
					return c.answer
				},
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return c.answer
				},
			})
			if err := DeleteChild(t.Context(), api, b.Of, app(), func() bool { return orphan }); !errors.Is(err, c.want) || (err != nil && c.want == nil) {
				t.Errorf("%s, orphan %t: got %v", name, orphan, err)
			}
			if orphan == (deletions > 0) {
				t.Errorf("%s, orphan %t: %d deletions", name, orphan, deletions)
			}
		}
		b := newFixture(t)
		b.Of.SetAnnotations(map[string]string{v1alpha1.ForceRemovalAnnotation: b.Of.GetName()})
		patches := 0
		api := interceptor.NewClient(b.api, interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				patches++
				return c.answer
			},
		})
		if err := DeleteChild(t.Context(), api, b.Of, app(deletedApp), func() bool { return true }); !errors.Is(err, c.want) || (err != nil && c.want == nil) || patches != 1 {
			t.Errorf("%s, forcing: got %v after %d patches", name, err, patches)
		}
	}
}
