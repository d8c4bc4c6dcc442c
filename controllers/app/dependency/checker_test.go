package dependency

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/own"
)

const shop = "kubeop-acme-shop"

// newChecker returns a Checker with a fake API server, and the app "web" of project "shop", which depends on something.
func newChecker(t *testing.T, on []v1alpha1.Dependency, objects ...client.Object) (*Checker, *subject.Subject) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web", UID: "web", Generation: 1}}
	app.Spec.DependsOn = on
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	c := &Checker{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Clients: kube.NewClients(&rest.Config{}, scheme, mapper, kube.Deployers{})}
	s := (&subject.Subjects{Clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0))}).New(app)
	s.Owner = own.Owner{Tenant: "acme", Project: "shop", App: "web", Namespace: shop}
	return c, s
}

// readyApp is an App that is ready in its current generation.
func readyApp(namespace, name string, change func(*v1alpha1.App)) *v1alpha1.App {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Generation: 2, Annotations: map[string]string{v1alpha1.TreeAnnotation: "tree"}}}
	app.Status.ObservedTree = "tree"
	app.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: 2},
		{Type: v1alpha1.DependenciesReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: 2},
	}
	if change != nil {
		change(app)
	}
	return app
}

func onApp(name string) v1alpha1.Dependency { return v1alpha1.Dependency{Name: name} }

func TestAnAppWaitsUntilAnotherIsReadyInItsCurrentSpec(t *testing.T) {
	now := metav1.Now()
	cases := map[string]struct {
		change func(*v1alpha1.App)
		want   string
	}{
		"it is ready":          {nil, ""},
		"it has no status yet": {func(a *v1alpha1.App) { a.Status.Conditions = nil }, ", which was not looked at yet"},
		"it is not ready": {func(a *v1alpha1.App) {
			a.Status.Conditions[0].Status, a.Status.Conditions[0].Message = metav1.ConditionFalse, "the image is missing"
		}, ": the image is missing"},
		"it waits itself": {func(a *v1alpha1.App) {
			a.Status.Conditions[0].Status, a.Status.Conditions[1].Status = metav1.ConditionUnknown, metav1.ConditionUnknown
		}, ", which waits for what it depends on itself"},
		"its spec is newer":                       {func(a *v1alpha1.App) { a.Generation = 3 }, ", which is not done with its last change"},
		"its folder is newer":                     {func(a *v1alpha1.App) { a.Annotations[v1alpha1.TreeAnnotation] = "new" }, ", which is not done with its last change"},
		"it is suspended, and its spec is newer":  {func(a *v1alpha1.App) { a.Generation, a.Spec.Suspend = 3, true }, ", which is suspended before its last change"},
		"it is suspended, and ready as it is now": {func(a *v1alpha1.App) { a.Spec.Suspend = true }, ""},
		"its project is suspended, its spec is newer": {func(a *v1alpha1.App) {
			a.Generation = 3
			a.Status.Conditions = append(a.Status.Conditions, metav1.Condition{Type: v1alpha1.SuspendedCondition, Status: metav1.ConditionTrue})
		}, ", which is suspended before its last change"},
		"it failed before it looked at what it depends on": {func(a *v1alpha1.App) {
			a.Status.Conditions = a.Status.Conditions[:1]
			a.Status.Conditions[0].Status, a.Status.Conditions[0].Message = metav1.ConditionFalse, "the folder is missing"
		}, ": the folder is missing"},
		"it is ready, and has an old condition of what it depends on": {func(a *v1alpha1.App) { a.Status.Conditions[1].Status = metav1.ConditionFalse }, ""},
		"it is being deleted":      {func(a *v1alpha1.App) { a.DeletionTimestamp, a.Finalizers = &now, []string{"a/b"} }, ", which is being deleted"},
		"it is in another project": {func(a *v1alpha1.App) { a.Namespace = "kubeop-acme-other" }, ", which does not exist: add it, or correct dependsOn in app.yaml"},
		"it is another tenant's":   {func(a *v1alpha1.App) { a.Namespace = "kubeop-beta-shop" }, ", which does not exist: add it, or correct dependsOn in app.yaml"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			checker, s := newChecker(t, []v1alpha1.Dependency{onApp("db")}, readyApp(shop, "db", c.change))
			err := checker.Await(t.Context(), s)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("the app waits: %v, want no wait", err)
			case c.want != "" && (!step.Waits(err) || err.Error() != "waits for App shop/db"+c.want):
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestADependencyMayNameAnotherProjectOfTheTenant(t *testing.T) {
	on := onApp("db")
	on.Project = "data"
	checker, s := newChecker(t, []v1alpha1.Dependency{on}, readyApp("kubeop-acme-data", "db", nil))
	if err := checker.Await(t.Context(), s); err != nil {
		t.Error(err)
	}
	checker, s = newChecker(t, []v1alpha1.Dependency{on})
	if err := checker.Await(t.Context(), s); err == nil || err.Error() != "waits for App data/db, which does not exist: add it, or correct dependsOn in app.yaml" {
		t.Errorf("got %v", err)
	}
}

func TestADependencyMayNameAnAppOfThePlatform(t *testing.T) {
	unready := func(a *v1alpha1.App) {
		a.Status.Conditions[0].Status, a.Status.Conditions[0].Message = metav1.ConditionFalse, "an internal of the platform"
	}
	cases := map[string]struct {
		app  *v1alpha1.App
		want string
	}{
		"it is ready":            {readyApp("edge", "db", nil), ""},
		"it is not ready":        {readyApp("edge", "db", unready), "waits for App edge/db of the platform, which is not ready; an administrator of the cluster may see why with: kubectl describe app db -n edge"},
		"it does not exist":      {readyApp("other", "db", nil), "waits for App edge/db of the platform, which does not exist: add it, or correct dependsOn in app.yaml"},
		"it is another tenant's": {readyApp("kubeop-beta-shop", "db", nil), "waits for App kubeop-beta-shop/db of the platform, which does not exist: add it, or correct dependsOn in app.yaml"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			on := v1alpha1.Dependency{Name: "db", Project: "edge", Platform: true}
			if c.app.Namespace == "kubeop-beta-shop" {
				on.Project = c.app.Namespace
			}
			checker, s := newChecker(t, []v1alpha1.Dependency{on}, c.app)
			err := checker.Await(t.Context(), s)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("the App waits: %v", err)
			case c.want != "" && (!step.Waits(err) || err.Error() != c.want):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestAnAppOfThePlatformQuotesAnother: both are of the administrators, who may read why it is not ready.
func TestAnAppOfThePlatformQuotesAnother(t *testing.T) {
	checker, s := newChecker(t, []v1alpha1.Dependency{{Name: "db", Project: "edge", Platform: true}}, readyApp("edge", "db", func(a *v1alpha1.App) {
		a.Status.Conditions[0].Status, a.Status.Conditions[0].Message = metav1.ConditionFalse, "an internal of the platform"
	}))
	s.Owner.Tenant = v1alpha1.PlatformTenant
	if err := checker.Await(t.Context(), s); err == nil || err.Error() != "waits for App edge/db of the platform: an internal of the platform" {
		t.Errorf("got %v", err)
	}
}

func TestADependencyOnAProjectIsReadInTheTenantsHome(t *testing.T) {
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "data", Generation: 1}}
	project.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	on := v1alpha1.Dependency{Name: "data"}
	on.Kind = v1alpha1.ProjectKind
	checker, s := newChecker(t, []v1alpha1.Dependency{on}, project)
	if err := checker.Await(t.Context(), s); err != nil {
		t.Error(err)
	}
	checker, s = newChecker(t, []v1alpha1.Dependency{on})
	if err := checker.Await(t.Context(), s); err == nil || err.Error() != "waits for Project data, which does not exist: add it, or correct dependsOn in app.yaml" {
		t.Errorf("got %v", err)
	}
}

func TestAMessageNamesThreeDependencies(t *testing.T) {
	for n, more := range map[int]string{3: "", 4: "; and 1 more", 5: "; and 2 more"} {
		var on []v1alpha1.Dependency
		for i := range n {
			on = append(on, onApp(fmt.Sprintf("a%d", i)))
		}
		checker, s := newChecker(t, on)
		const named = "waits for App shop/a0, which does not exist: add it, or correct dependsOn in app.yaml; App shop/a1, which does not exist: add it, or correct dependsOn in app.yaml; App shop/a2, which does not exist: add it, or correct dependsOn in app.yaml"
		if err := checker.Await(t.Context(), s); err == nil || err.Error() != named+more {
			t.Errorf("with %d dependencies the message is %v", n, err)
		}
	}
}

func TestTheMessageOfADependencyIsMasked(t *testing.T) {
	checker, s := newChecker(t, []v1alpha1.Dependency{onApp("db")}, readyApp(shop, "db", func(a *v1alpha1.App) {
		a.Status.Conditions[0].Status, a.Status.Conditions[0].Message = metav1.ConditionFalse, "cannot log in with hunter22hunter22"
	}))
	s.Hide("hunter22hunter22")
	if err := checker.Await(t.Context(), s); err == nil || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("got %v", err)
	}
}

func TestADependencyThatCannotBeReadIsAnError(t *testing.T) {
	checker, s := newChecker(t, []v1alpha1.Dependency{onApp("a"), onApp("b")}, readyApp(shop, "a", nil))
	checker.Client = interceptor.NewClient(checker.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == "b" {
				return errors.New("down")
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	if err := checker.Await(t.Context(), s); err == nil || step.Waits(err) || err.Error() != "dependsOn[1]: reading kubeop-acme-shop/b: down" {
		t.Errorf("got %v", err)
	}
	s.App.Spec.DependsOn = []v1alpha1.Dependency{{Name: "b", Project: "edge", Platform: true}}
	if err := checker.Await(t.Context(), s); err == nil || step.Waits(err) || err.Error() != "dependsOn[0]: reading edge/b: down" {
		t.Errorf("one of the platform: %v", err)
	}
}

func TestAnExpressionDecidesWhetherAnAppIsReady(t *testing.T) {
	cases := map[string]struct{ expr, want string }{
		"it is true":              {`dep.spec.type == "Raw"`, ""},
		"it is false":             {`dep.spec.type == "Helm"`, "waits for App shop/db: readyExpr is not true yet"},
		"what it reads is absent": {`dep.status.nowhere == "x"`, "waits for App shop/db: readyExpr is not true yet: a field is not there: no such key: nowhere"},
		"it reads the App itself": {`self.metadata.name == "web" && !has(self.status)`, ""},
		"it cannot be compiled":   {`dep.(`, "dependsOn[0].readyExpr: 1:5: Syntax error: no viable alternative at input '.('"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			on := onApp("db")
			on.ReadyExpr = c.expr
			// The App is not ready: the expression decides instead of the condition.
			checker, s := newChecker(t, []v1alpha1.Dependency{on}, readyApp(shop, "db", func(a *v1alpha1.App) { a.Spec.Type, a.Status.Conditions = v1alpha1.AppRaw, nil }))
			err := checker.Await(t.Context(), s)
			if (err == nil) != (c.want == "") || (err != nil && err.Error() != c.want) {
				t.Errorf("got %v", err)
			}
			if waits := err != nil && step.Waits(err); err != nil && waits != (name != "it cannot be compiled") {
				t.Errorf("the error is a wait: %t", waits)
			}
		})
	}
}

func TestExpressionsAreCompiledAgainForANewGeneration(t *testing.T) {
	on := onApp("db")
	on.ReadyExpr = "false"
	checker, s := newChecker(t, []v1alpha1.Dependency{on}, readyApp(shop, "db", nil))
	if err := checker.Await(t.Context(), s); !step.Waits(err) {
		t.Fatalf("got %v", err)
	}
	s.App.Spec.DependsOn[0].ReadyExpr = "true"
	s.App.Generation = 2
	if err := checker.Await(t.Context(), s); err != nil {
		t.Errorf("the new expression is not used: %v", err)
	}
}

func TestKindsThatNoAppMayDependOn(t *testing.T) {
	verbs := metav1.Verbs{"get", "list", "watch", "patch", "delete"}
	served := &clienttesting.Fake{Resources: []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "configmaps", SingularName: "configmap", Kind: "ConfigMap", Namespaced: true, Verbs: verbs}, {Name: "namespaces", SingularName: "namespace", Kind: "Namespace", Verbs: verbs},
		{Name: "bindings", SingularName: "binding", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}},
	}}}}
	checker := &Checker{Clients: kube.NewClients(&rest.Config{}, runtime.NewScheme(), kube.NewMapper(memory.NewMemCacheClient(&fakediscovery.FakeDiscovery{Fake: served})), kube.Deployers{})}
	cases := map[string]struct {
		kind  schema.GroupVersionKind
		want  string
		waits bool
	}{
		"a namespaced kind":       {corev1.SchemeGroupVersion.WithKind("ConfigMap"), "", false},
		"a Secret":                {corev1.SchemeGroupVersion.WithKind("Secret"), "no app may depend on a Secret", false},
		"a cluster-scoped kind":   {corev1.SchemeGroupVersion.WithKind("Namespace"), "Namespace is cluster-scoped; an app may only depend on objects of its tenant", false},
		"a misspelled kind":       {corev1.SchemeGroupVersion.WithKind("configmap"), "the cluster knows no kind v1 configmap; did you mean ConfigMap?", false},
		"a kind that is not kept": {corev1.SchemeGroupVersion.WithKind("Binding"), "no app may depend on it: the API server cannot get, list, watch, patch, delete objects of the kind v1 Binding", false},
		"a kind that is unknown":  {schema.GroupVersionKind{Group: "x.example", Version: "v1", Kind: "Bucket"}, "waits for the cluster to know the kind x.example/v1 Bucket", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := checker.allowed(c.kind)
			if (err == nil) != (c.want == "") || (err != nil && (err.Error() != c.want || step.Waits(err) != c.waits)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestDependentsOfAnObjectAreForgottenWithTheReference follows the references of two apps.
func TestDependentsOfAnObjectAreForgottenWithTheReference(t *testing.T) {
	db := readyApp(shop, "db", nil)
	elsewhere := readyApp("kubeop-acme-other", "db", nil)
	checker, s := newChecker(t, []v1alpha1.Dependency{onApp("db")}, db)
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.AppKind).GroupKind()
	if err := checker.Await(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := checker.Dependents(db, kind); len(got) != 1 || got[0] != s.Key() {
		t.Errorf("the dependents are %v", got)
	}
	if got := checker.Dependents(elsewhere, kind); len(got) != 0 {
		t.Errorf("the dependents of the object in another project are %v", got)
	}
	if got := checker.Dependents(db, schema.GroupKind{Kind: "ConfigMap"}); len(got) != 0 {
		t.Errorf("the dependents of another kind with the name are %v", got)
	}
	if checker.compiled.Get(s.App).expressions == nil {
		t.Error("the expressions are not kept")
	}
	checker.Forget(s.App)
	if checker.compiled.Get(s.App).expressions != nil {
		t.Error("the expressions of a forgotten App are kept")
	}
	if got := checker.Dependents(db, kind); len(got) != 0 {
		t.Errorf("after the app was forgotten the dependents are %v", got)
	}
}

func TestOnlyChangesThatMatterToDependentsWakeThem(t *testing.T) {
	before := readyApp(shop, "db", nil)
	cases := map[string]struct {
		change       func(*v1alpha1.App)
		byExpression bool
		want         bool
	}{
		"nothing":                          {func(*v1alpha1.App) {}, false, false},
		"its message":                      {func(a *v1alpha1.App) { a.Status.Conditions[0].Message = "other words" }, false, false},
		"a field that an expression reads": {func(a *v1alpha1.App) { a.Status.Conditions[0].Message = "other words" }, true, true},
		"it stops being ready":             {func(a *v1alpha1.App) { a.Status.Conditions[0].Status = metav1.ConditionFalse }, false, true},
		"the reason":                       {func(a *v1alpha1.App) { a.Status.Conditions[0].Reason = "Other" }, false, true},
		"a new spec":                       {func(a *v1alpha1.App) { a.Generation = 3 }, false, true},
		"its deletion":                     {func(a *v1alpha1.App) { a.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			on := onApp("db")
			if c.byExpression {
				on.ReadyExpr = "true"
			}
			checker, s := newChecker(t, []v1alpha1.Dependency{on}, before.DeepCopy())
			if err := checker.Await(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			after := before.DeepCopy()
			c.change(after)
			if got := checker.Changed(v1alpha1.AppKind).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != c.want {
				t.Errorf("dependents are woken: %t, want %t", got, c.want)
			}
		})
	}
}
