package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fingerprint"
)

// inMemory is a Watch whose first lists of Deployments and ConfigMaps have arrived, and which may not watch Secrets.
func inMemory(t *testing.T, functions interceptor.Funcs, own ...client.Object) *Watch {
	t.Helper()
	kinds := apiruntime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{deployments, configMaps, namespaceKind} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	api := fake.NewClientBuilder().WithScheme(kinds).WithRESTMapper(mapper).WithObjects(own...).WithInterceptorFuncs(functions).Build()
	w := &Watch{
		own: api, direct: api, clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), kinds: map[schema.GroupVersionKind]*kindWatch{},
		hasStatus: func(kind schema.GroupVersionKind) bool { return kind == deployments },
	}
	hold := Hold(kinds, fingerprint.Slim)
	add := func(kind schema.GroupVersionKind, objects ...client.Object) {
		store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
		for _, o := range objects {
			kept, err := hold(o)
			if err == nil {
				err = store.Add(kept)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		w.kinds[kind] = &kindWatch{firstList: newFirstList(kind.Kind, w.clock.Now()), store: store, gone: make(chan struct{})}
		w.kinds[kind].end()
	}
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "7", Labels: map[string]string{v1alpha1.TenantLabel: "acme"}}
	}
	partial := func(kind schema.GroupVersionKind, at metav1.ObjectMeta) client.Object {
		o := &metav1.PartialObjectMetadata{ObjectMeta: at}
		o.SetGroupVersionKind(kind)
		return o
	}
	add(deployments, &appsv1.Deployment{ObjectMeta: named("shop", "web"), Spec: appsv1.DeploymentSpec{Replicas: new(int32(3))}, Status: appsv1.DeploymentStatus{ReadyReplicas: 2}})
	add(configMaps, partial(configMaps, named("shop", "a")), partial(configMaps, named("shop", "b")), partial(configMaps, named("blog", "c")))
	add(namespaceKind, partial(namespaceKind, metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.TenantLabel: "acme"}}))
	w.kinds[secrets] = &kindWatch{firstList: newFirstList("Secret", w.clock.Now())}
	w.kinds[secrets].end()
	return w
}

var secrets = corev1.SchemeGroupVersion.WithKind("Secret")

// TestAWatchDecodesOnlyWhatItHolds: specs and statuses of some kinds, and of others only the metadata.
func TestAWatchDecodesOnlyWhatItHolds(t *testing.T) {
	w := inMemory(t, interceptor.Funcs{})
	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	got := appsv1.Deployment{}
	if found, err := w.Decode(deployments, web, &got); !found || err != nil || *got.Spec.Replicas != 3 || got.Status.ReadyReplicas != 2 {
		t.Errorf("found %t, %v: %+v", found, err, got)
	}
	for name, tc := range map[string]struct {
		kind schema.GroupVersionKind
		key  types.NamespacedName
		into any
		want string
	}{
		"another name":      {deployments, types.NamespacedName{Namespace: "shop", Name: "api"}, &got, "false <nil>"},
		"another namespace": {deployments, types.NamespacedName{Namespace: "blog", Name: "web"}, &got, "false <nil>"},
		"of metadata only":  {configMaps, types.NamespacedName{Namespace: "shop", Name: "a"}, &got, "false <nil>"},
		"another type":      {deployments, web, &[]string{}, "false looking at Deployment shop/web: decoding what is held: json: cannot unmarshal object into Go value of type []string"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := w.Decode(tc.kind, tc.key, tc.into)
			if got := fmt.Sprint(found, " ", err); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	w.kinds[deployments] = &kindWatch{firstList: newFirstList("Deployment", w.clock.Now())}
	if found, err := w.Decode(deployments, web, &got); found || !errors.As(err, new(*Unready)) {
		t.Errorf("before the first list: %t, %v", found, err)
	}
}

func TestInNamespaceReturnsTheObjectsOfOneNamespace(t *testing.T) {
	w := inMemory(t, interceptor.Funcs{})
	for namespace, want := range map[string][]string{"shop": {"a", "b"}, "blog": {"c"}, "none": nil} {
		found, err := w.InNamespace(configMaps, namespace)
		var names []string
		for _, o := range found {
			names = append(names, o.GetName())
		}
		slices.Sort(names)
		if diff := cmp.Diff(want, names); diff != "" || err != nil {
			t.Errorf("%s: %v; -want +got:\n%s", namespace, err, diff)
		}
	}
	if found, err := w.InNamespace(secrets, "shop"); found != nil || err != nil {
		t.Errorf("of a kind that may not be watched: %v, %v", found, err)
	}
	w.kinds[configMaps] = &kindWatch{firstList: newFirstList("ConfigMap", w.clock.Now())}
	if found, err := w.InNamespace(configMaps, "shop"); found != nil || !errors.As(err, new(*Unready)) {
		t.Errorf("before the first list: %v, %v", found, err)
	}
}

func TestANamespaceThatDoesNotExistHasNoTenant(t *testing.T) {
	w := inMemory(t, interceptor.Funcs{})
	if live, err := w.Namespace(t.Context(), "shop"); err != nil || live == nil || live.GetName() != "shop" || w.TenantOf("shop") != "acme" {
		t.Errorf("got %v, %v of %q", live, err, w.TenantOf("shop"))
	}
	if live, err := w.Namespace(t.Context(), "none"); err != nil || live != nil || w.TenantOf("none") != "" {
		t.Errorf("one that does not exist: %v, %v", live, err)
	}
	w.kinds[namespaceKind].store = nil
	const want = "the operator may not watch namespaces; the chart's role kubeop-operator lets it"
	if live, err := w.Namespace(t.Context(), "shop"); live != nil || err == nil || err.Error() != want || w.TenantOf("shop") != "" {
		t.Errorf("got %v, %v", live, err)
	}
	w.kinds[namespaceKind] = &kindWatch{firstList: newFirstList("Namespace", w.clock.Now())}
	if _, err := w.Namespace(t.Context(), "shop"); !errors.As(err, new(*Unready)) {
		t.Errorf("before the first list: %v", err)
	}
}

// TestObjectsOfThisAPIAreReadFromTheOperatorsOwnCache. An error of the cache does not count as absence.
func TestObjectsOfThisAPIAreReadFromTheOperatorsOwnCache(t *testing.T) {
	away := errors.New("the cache is not started")
	w := inMemory(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if key.Name == "away" {
				return away
			}
			return c.Get(ctx, key, o, options...)
		},
	}, &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
	apps := v1alpha1.GroupVersion.WithKind("App")
	for name, want := range map[string]string{"web": "web true <nil>", "none": " true <nil>", "away": " false looking at App shop/away: the cache is not started"} {
		live, known, err := w.Live(t.Context(), apps, types.NamespacedName{Namespace: "shop", Name: name})
		found := ""
		if live != nil {
			found = live.GetName()
		}
		if got := fmt.Sprint(found, " ", known, " ", err); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if _, known, err := w.Live(t.Context(), v1alpha1.GroupVersion.WithKind("None"), types.NamespacedName{Name: "x"}); known || err == nil {
		t.Errorf("a kind that this API does not have: %t, %v", known, err)
	}
}

// TestAKindIsWatchedByWhoMayListAndWatchIt in all namespaces.
func TestAKindIsWatchedByWhoMayListAndWatchIt(t *testing.T) {
	for name, tc := range map[string]struct {
		may   []string
		fails error
		asked []string
		want  string
	}{
		"both":          {may: []string{"list", "watch"}, asked: []string{"list", "watch"}, want: "true <nil>"},
		"list only":     {may: []string{"list"}, asked: []string{"list", "watch"}, want: "false <nil>"},
		"watch only":    {may: []string{"watch"}, asked: []string{"list"}, want: "false <nil>"},
		"nobody knows":  {may: []string{"list", "watch"}, fails: errors.New("away"), asked: []string{"list"}, want: "false asking whether it may be watched: away"},
		"not even list": {asked: []string{"list"}, want: "false <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			w := inMemory(t, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				review := o.(*authorizationv1.SelfSubjectAccessReview)
				about := *review.Spec.ResourceAttributes
				asked = append(asked, about.Verb)
				if want := (authorizationv1.ResourceAttributes{Verb: about.Verb, Group: "apps", Resource: "deployments"}); about != want {
					t.Errorf("asked about %+v", about)
				}
				review.Status.Allowed = slices.Contains(tc.may, about.Verb)
				return tc.fails
			}})
			allowed, err := w.allowed(t.Context(), deployments)
			if got := fmt.Sprint(allowed, " ", err); got != tc.want || !slices.Equal(asked, tc.asked) {
				t.Errorf("got %s, want %s; asked for %v", got, tc.want, asked)
			}
		})
	}
	if allowed, err := inMemory(t, interceptor.Funcs{}).allowed(t.Context(), secrets); allowed || !meta.IsNoMatchError(err) {
		t.Errorf("a kind that is not served: %t, %v", allowed, err)
	}
}

// TestAKindIsWatchedOnceTheOperatorMay: an administrator allows it while the operator runs. It asks once a minute, and no caller waits for the answer.
func TestAKindIsWatchedOnceTheOperatorMay(t *testing.T) {
	var may atomic.Bool
	asked := make(chan struct{}, 10)
	w := inMemory(t, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		review := o.(*authorizationv1.SelfSubjectAccessReview)
		review.Status.Allowed = may.Load()
		asked <- struct{}{}
		return nil
	}})
	clock := w.clock.(*clocktesting.FakeClock)
	refused := &kindWatch{firstList: newFirstList("Deployment", clock.Now()), reviewed: clock.Now(), gone: make(chan struct{})}
	refused.end()
	w.kinds[deployments] = refused
	follow := func(after time.Duration) {
		t.Helper()
		clock.Step(after)
		if store, err := w.follow(deployments); store != nil || err != nil {
			t.Fatalf("got %v, %v", store, err)
		}
	}
	follow(reviewEvery - time.Second)
	follow(time.Second)
	follow(0)
	<-asked
	may.Store(true)
	follow(reviewEvery - time.Second)
	select {
	case <-refused.gone:
		t.Fatal("asked before the minute was over")
	case <-asked:
		t.Fatal("asked twice in a minute")
	case <-time.After(50 * time.Millisecond):
	}
	follow(time.Second)
	select {
	case <-refused.gone:
	case <-time.After(10 * time.Second):
		t.Fatal("the operator may watch the kind, and does not begin")
	}
	if w.kinds[deployments] != nil {
		t.Error("the next use does not begin the watch")
	}
}
