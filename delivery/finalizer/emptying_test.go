package finalizer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const place = "kubeop-acme-shop"

var (
	errAway  = errors.New("the API server is away")
	deleted  = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	allKinds = []schema.GroupResource{{Resource: "pods"}, {Resource: "persistentvolumeclaims"}, {Resource: "configmaps"}, {Group: "example.com", Resource: "gone"}}
)

// leaving has an object be deleted, held by finalizers.
func leaving[T client.Object](o T, finalizers ...string) T {
	o.SetDeletionTimestamp(&deleted)
	o.SetFinalizers(finalizers)
	return o
}

func pod(name string, finalizers ...string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: name, UID: "uid-" + types.UID(name), Finalizers: finalizers}}
}

func configMap(name string, finalizers ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: name, UID: "uid-" + types.UID(name), Finalizers: finalizers}}
}

func claim(name string, finalizers ...string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: name, UID: "uid-" + types.UID(name), Finalizers: finalizers}}
}

// api is a fake API server that records deletions as "Kind/name", with "now" where no time is left to end.
type api struct {
	client.WithWatch
	deletions []string
}

func serve(funcs interceptor.Funcs, objects ...client.Object) *api {
	a := &api{}
	funcs.Delete = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		options := (&client.DeleteOptions{}).ApplyOptions(opts)
		text := o.GetObjectKind().GroupVersionKind().Kind + "/" + o.GetName()
		if options.Preconditions == nil || options.Preconditions.UID == nil || *options.Preconditions.UID != "uid-"+types.UID(o.GetName()) {
			text += " of any UID"
		}
		if options.GracePeriodSeconds != nil && *options.GracePeriodSeconds == 0 {
			text += " now"
		}
		a.deletions = append(a.deletions, text)
		return nil // The API server keeps what a finalizer holds; what is left is what was listed.
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Pod", "PersistentVolumeClaim", "ConfigMap"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	a.WithWatch = fake.NewClientBuilder().WithRESTMapper(mapper).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return a
}

func (a *api) run(t *testing.T, e Emptying) Emptied {
	t.Helper()
	e.Client, e.Namespace, e.Kinds = a, place, allKinds
	done, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestObjectsThatHoldTheNamespaceAreDeletedAndNamed(t *testing.T) {
	ended := leaving(pod("ended"), "example.com/x")
	held := []Terminating{{Kind: "Pod", Name: "ended", Finalizers: []string{"example.com/x"}}}
	elsewhere := pod("web")
	elsewhere.Namespace = "kubeop-acme-blog"
	for name, c := range map[string]struct {
		objects   []client.Object
		emptying  Emptying
		deletions []string
		want      Emptied
	}{
		"nothing": {},
		"a pod without finalizers": {
			objects: []client.Object{pod("web"), elsewhere}, deletions: []string{"Pod/web"}, want: Emptied{Left: []Terminating{{Kind: "Pod", Name: "web"}}},
		},
		"an object without finalizers goes with the namespace": {objects: []client.Object{configMap("plain")}},
		"an object with a finalizer": {
			objects: []client.Object{configMap("held", "example.com/x")}, deletions: []string{"ConfigMap/held"},
			want: Emptied{Left: []Terminating{{Kind: "ConfigMap", Name: "held", Finalizers: []string{"example.com/x"}}}},
		},
		"a claim that nobody deleted is left alone": {objects: []client.Object{claim("data", claimProtection)}},
		"a claim that is being deleted is waited for": {
			objects: []client.Object{leaving(claim("data"), claimProtection)}, want: Emptied{Left: []Terminating{{Kind: "PersistentVolumeClaim", Name: "data", Finalizers: []string{claimProtection}}}},
		},
		"what is being deleted is not deleted again": {
			objects: []client.Object{ended}, want: Emptied{Left: held},
		},
		"a pod with a finalizer is not ended at once": {
			objects: []client.Object{ended}, emptying: Emptying{Kill: true}, want: Emptied{Left: held},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := serve(interceptor.Funcs{}, c.objects...)
			got := a.run(t, c.emptying)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.deletions, a.deletions); diff != "" {
				t.Errorf("deletions (-want +got):\n%s", diff)
			}
		})
	}
}

// listing answers lists of pods with these instead of what the fake has, which keeps nothing that is deleted and has no finalizer.
func listing(pods ...*corev1.Pod) interceptor.Funcs {
	return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		metadata := list.(*metav1.PartialObjectMetadataList)
		if metadata.Kind != "PodList" {
			return c.List(ctx, list, opts...)
		}
		for _, p := range pods {
			metadata.Items = append(metadata.Items, metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta})
		}
		return nil
	}}
}

func TestPodsAreEndedAtOnceWhenTheirTimeIsOver(t *testing.T) {
	grace := int64(600)
	late := leaving(pod("late"))
	late.DeletionGracePeriodSeconds = &grace
	left := []Terminating{{Kind: "Pod", Name: "late", Until: deleted.Time}}
	for name, c := range map[string]struct {
		kill      bool
		want      Emptied
		deletions []string
	}{
		"in time": {false, Emptied{Left: left}, nil},
		"late":    {true, Emptied{Left: left, Killed: []string{"late"}}, []string{"Pod/late now"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := serve(listing(late))
			if diff := cmp.Diff(c.want, a.run(t, Emptying{Kill: c.kill})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.deletions, a.deletions); diff != "" {
				t.Errorf("deletions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKillPodsEndsOnlyPodsThatAreBeingDeleted(t *testing.T) {
	a := serve(listing(leaving(pod("late")), pod("running"), leaving(pod("later"))))
	killed, err := Emptying{Client: a, Namespace: place}.KillPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"late", "later"}, killed); diff != "" {
		t.Errorf("killed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Pod/late now", "Pod/later now"}, a.deletions); diff != "" {
		t.Errorf("deletions (-want +got):\n%s", diff)
	}
}

func TestFinalizersAreTakenOffWhereThatIsForced(t *testing.T) {
	held := leaving(configMap("held"), "example.com/x")
	for name, c := range map[string]struct {
		force bool
		freed []string
	}{
		"not forced": {false, nil},
		"forced":     {true, []string{"example.com/x from ConfigMap/held"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := serve(interceptor.Funcs{}, held.DeepCopy())
			done := a.run(t, Emptying{Force: c.force})
			if diff := cmp.Diff(c.freed, done.Freed); diff != "" {
				t.Errorf("freed (-want +got):\n%s", diff)
			}
			if len(done.Left) != 1 {
				t.Errorf("left are %v; what was freed is looked at again", done.Left)
			}
			err := a.Get(t.Context(), client.ObjectKeyFromObject(held), &corev1.ConfigMap{})
			if gone := apierrors.IsNotFound(err); gone != c.force {
				t.Errorf("gone is %t: %v, want %t", gone, err, c.force)
			}
		})
	}
}

func TestEveryPageOfAListIsLookedAt(t *testing.T) {
	var pages []string
	a := serve(interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		options := (&client.ListOptions{}).ApplyOptions(opts)
		metadata := list.(*metav1.PartialObjectMetadataList)
		if metadata.Kind != "PodList" {
			return nil
		}
		pages = append(pages, fmt.Sprintf("%s after %q", options.Namespace, options.Continue))
		metadata.Items = []metav1.PartialObjectMetadata{{ObjectMeta: pod("web" + options.Continue).ObjectMeta}}
		if options.Continue == "" {
			metadata.Continue = "-2"
		}
		return nil
	}})
	a.run(t, Emptying{})
	if diff := cmp.Diff([]string{place + ` after ""`, place + ` after "-2"`}, pages); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Pod/web", "Pod/web-2"}, a.deletions); diff != "" {
		t.Errorf("deletions (-want +got):\n%s", diff)
	}
}

func TestKindsThatTheDeployerMayNotListAreLeftToOthers(t *testing.T) {
	pods := corev1.Resource("pods")
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"forbidden":          {apierrors.NewForbidden(pods, "", errAway), false},
		"not served":         {apierrors.NewNotFound(pods, ""), false},
		"cannot be listed":   {apierrors.NewMethodNotSupported(pods, "list"), false},
		"anything else":      {errAway, true},
		"too many requests":  {apierrors.NewTooManyRequests("wait", 1), true},
		"the server's error": {apierrors.NewInternalError(errAway), true},
	} {
		t.Run(name, func(t *testing.T) {
			a := serve(interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return c.err }})
			_, err := Emptying{Client: a, Namespace: place, Kinds: allKinds}.Run(t.Context())
			if (err != nil) != c.want || (c.want && !strings.HasPrefix(err.Error(), "listing each Pod in namespace kubeop-acme-shop: ")) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestADeletionThatCannotBeDoneIsAnErrorUnlessTheObjectChanged(t *testing.T) {
	pods := corev1.Resource("pods")
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"gone meanwhile":          {apierrors.NewNotFound(pods, "web"), false},
		"another of the name now": {apierrors.NewConflict(pods, "web", errAway), false},
		"forbidden":               {apierrors.NewForbidden(pods, "web", errAway), true},
	} {
		t.Run(name, func(t *testing.T) {
			a := serve(interceptor.Funcs{}, pod("web"))
			refusing := interceptor.NewClient(a.WithWatch, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return c.err }})
			_, err := Emptying{Client: refusing, Namespace: place, Kinds: allKinds}.Run(t.Context())
			if (err != nil) != c.want || (c.want && !strings.HasPrefix(err.Error(), "deleting Pod/web: ")) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAFinalizerThatCannotBeTakenOffIsAnErrorUnlessTheObjectChanged(t *testing.T) {
	pods := corev1.Resource("pods")
	for name, c := range map[string]struct {
		err   error
		fails bool
		freed int
	}{
		"it is taken off":         {nil, false, 1},
		"gone meanwhile":          {apierrors.NewNotFound(pods, "web"), false, 1},
		"another of the name now": {apierrors.NewConflict(pods, "web", errAway), false, 0},
		"forbidden":               {apierrors.NewForbidden(pods, "web", errAway), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := serve(interceptor.Funcs{}, leaving(pod("web"), "example.com/x"))
			refusing := interceptor.NewClient(a.WithWatch, interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return c.err
				},
			})
			done, err := Emptying{Client: refusing, Namespace: place, Kinds: allKinds, Force: true}.Run(t.Context())
			if (err != nil) != c.fails || c.fails && !strings.HasPrefix(err.Error(), "removing the finalizers from Pod/web: ") || len(done.Freed) != c.freed {
				t.Errorf("freed are %v, %v", done.Freed, err)
			}
		})
	}
}

func TestAKindThatCannotBeFoundIsAnError(t *testing.T) {
	a := serve(interceptor.Funcs{})
	_, err := Emptying{Client: searching{a, errAway}, Namespace: place, Kinds: allKinds}.Run(t.Context())
	if !errors.Is(err, errAway) || !strings.HasPrefix(err.Error(), "finding the kind of ") {
		t.Errorf("got %v", err)
	}
}

// searching fails to find kinds.
type searching struct {
	client.Client
	err error
}

func (s searching) RESTMapper() meta.RESTMapper { return unfound{s.Client.RESTMapper(), s.err} }

type unfound struct {
	meta.RESTMapper
	err error
}

func (u unfound) KindFor(schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return schema.GroupVersionKind{}, u.err
}

func TestAPodThatCannotBeEndedIsAnError(t *testing.T) {
	a := serve(listing(leaving(pod("web"))))
	refusing := interceptor.NewClient(a.WithWatch, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return errAway }})
	e := Emptying{Client: refusing, Namespace: place, Kinds: allKinds, Kill: true}
	if killed, err := e.KillPods(t.Context()); !errors.Is(err, errAway) || len(killed) > 0 {
		t.Errorf("killed are %v, %v", killed, err)
	}
	if done, err := e.Run(t.Context()); !errors.Is(err, errAway) || len(done.Killed) > 0 {
		t.Errorf("killed are %v, %v", done.Killed, err)
	}
}

func TestTakeOffKeepsWhatIsKubeopsAndTheProtectionOfClaims(t *testing.T) {
	for name, c := range map[string]struct {
		object client.Object
		kind   schema.GroupVersionKind
		want   string
		kept   []string
	}{
		"not being deleted":         {configMap("a", "example.com/x"), configMapKind, "", []string{"example.com/x"}},
		"a foreign finalizer":       {leaving(configMap("a"), "example.com/x", "example.com/y"), configMapKind, "example.com/x, example.com/y from ConfigMap/a", nil},
		"kubeop's own":              {leaving(configMap("a"), "paas.kubeop.io/finalizer"), configMapKind, "", []string{"paas.kubeop.io/finalizer"}},
		"kubeop's and a foreign":    {leaving(configMap("a"), "paas.kubeop.io/finalizer", "example.com/x"), configMapKind, "example.com/x from ConfigMap/a", []string{"paas.kubeop.io/finalizer"}},
		"a claim in use":            {leaving(claim("a"), claimProtection), claimKind, "", []string{claimProtection}},
		"a claim with another":      {leaving(claim("a"), claimProtection, "example.com/x"), claimKind, "example.com/x from PersistentVolumeClaim/a", []string{claimProtection}},
		"the same on no claim":      {leaving(configMap("a"), claimProtection), configMapKind, claimProtection + " from ConfigMap/a", nil},
		"a name that looks similar": {leaving(configMap("a"), "paas.kubeop.io.example.com/x"), configMapKind, "paas.kubeop.io.example.com/x from ConfigMap/a", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c1 := fake.NewClientBuilder().WithObjects(c.object).Build()
			live := c.object.DeepCopyObject().(client.Object)
			if err := c1.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
				t.Fatal(err)
			}
			got, err := TakeOff(t.Context(), c1, c.kind, live)
			if err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
			after := c.object.DeepCopyObject().(client.Object)
			err = c1.Get(t.Context(), client.ObjectKeyFromObject(after), after)
			if apierrors.IsNotFound(err) {
				after.SetFinalizers(nil)
			} else if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(after.GetFinalizers(), c.kept) {
				t.Errorf("kept %v, want %v", after.GetFinalizers(), c.kept)
			}
		})
	}
}

func TestTakeOffIsAboutTheObjectAsItWasRead(t *testing.T) {
	stale := leaving(configMap("a"), "example.com/x")
	c := fake.NewClientBuilder().WithObjects(stale.DeepCopy()).Build()
	stale.ResourceVersion = "1"
	if got, err := TakeOff(t.Context(), c, configMapKind, stale); !apierrors.IsConflict(err) || got != "" {
		t.Errorf("one that changed meanwhile: got %q, %v", got, err)
	}
	if got, err := TakeOff(t.Context(), fake.NewClientBuilder().Build(), configMapKind, stale); err != nil || got == "" {
		t.Errorf("one that is gone meanwhile: got %q, %v", got, err)
	}
}

var configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
