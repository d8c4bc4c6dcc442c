package dependency

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
	"github.com/kubeop/kubeop/internal/testenv/watchtest"
)

// deployment has the labels of a tenant, unless it is of others, and this many ready replicas of one.
func deployment(ready int32, ofOthers bool) *appsv1.Deployment {
	one := int32(1)
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "db", Generation: 1, ResourceVersion: "7", Labels: map[string]string{v1alpha1.TenantLabel: "acme"}},
		Spec:       appsv1.DeploymentSpec{Replicas: &one},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: ready, AvailableReplicas: ready},
	}
	if ready > 0 {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: "True"}}
	}
	if ofOthers {
		d.Labels = nil
	}
	return d
}

// TestAnObjectOfAnotherKindIsADependency: kstatus or an expression decides. The watch's copy is used if there is one and it is enough.
func TestAnObjectOfAnotherKindIsADependency(t *testing.T) {
	const expression = "dep.status.readyReplicas == 1"
	for name, c := range map[string]struct {
		object *appsv1.Deployment
		ready  string
		status int
		want   string
		reads  int32
		// tenant is the owner of the namespace, if it is another one; none: there is no namespace.
		tenant string
	}{
		"ready, of another tenant":            {object: deployment(1, false), tenant: "beta", want: "waits DependencyNotReady: waits for Deployment shop/db: the tenant has no such project, after 1s"},
		"the project does not exist":          {object: deployment(1, false), tenant: "none", want: "waits DependencyNotReady: waits for Deployment shop/db: the tenant has no such project, after 1s"},
		"ready":                               {object: deployment(1, false), want: "done"},
		"not ready":                           {object: deployment(0, false), want: "waits DependencyNotReady: waits for Deployment shop/db: not all of its pods are available yet, after 15s", reads: 0},
		"ready by an expression":              {object: deployment(1, false), ready: expression, want: "done", reads: 1},
		"not ready by an expression":          {object: deployment(0, false), ready: "dep.status.replicas == 7", want: "waits DependencyNotReady: waits for Deployment shop/db: readyExpr is not true yet, after 15s", reads: 1},
		"a field is missing":                  {object: deployment(0, false), ready: "dep.status.none == 1", want: "waits DependencyNotReady: waits for Deployment shop/db: readyExpr is not true yet: a field is not there: no such key: none, after 15s", reads: 1},
		"the expression fails":                {object: deployment(1, false), ready: "dep.status.replicas", want: "waits DependencyNotReady: waits for Deployment shop/db: readyExpr cannot be evaluated: the expression makes a int; it must be true or false, after 15s", reads: 1},
		"of others, ready":                    {object: deployment(1, true), want: "done", reads: 2},
		"of others, not ready":                {object: deployment(0, true), want: "waits DependencyNotReady: waits for Deployment shop/db: not all of its pods are available yet, after 1s", reads: 2},
		"of others, ready by an expression":   {object: deployment(1, true), ready: expression, want: "done", reads: 2},
		"there is none":                       {want: "waits DependencyNotReady: waits for Deployment shop/db, which does not exist: add it, or correct dependsOn in app.yaml, after 1s", reads: 2},
		"it cannot be read":                   {status: http.StatusForbidden, want: "failed AccessDenied: dependsOn[0]: reading Deployment.apps kubeop-acme-shop/db: ", reads: 2},
		"it cannot be read for an expression": {object: deployment(1, false), status: http.StatusForbidden, ready: expression, want: "failed AccessDenied: dependsOn[0]: reading Deployment.apps kubeop-acme-shop/db: ", reads: 2},
	} {
		t.Run(name, func(t *testing.T) {
			var reads atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				reads.Add(1)
				if user := req.Header.Get("Impersonate-User"); !strings.Contains(user, shop) {
					t.Errorf("%s reads %s", user, req.URL.Path)
				}
				w.Header().Set("Content-Type", "application/json")
				switch {
				case c.status != 0:
					w.WriteHeader(c.status)
					_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: int32(c.status)})
				case c.object == nil:
					w.WriteHeader(http.StatusNotFound)
					_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
				default:
					_ = json.NewEncoder(w).Encode(c.object)
				}
			}))
			t.Cleanup(server.Close)
			checker, s := newChecker(t, []v1alpha1.Dependency{{APIVersion: "apps/v1", Kind: "Deployment", Name: "db", ReadyExpr: c.ready}})
			mapper := watchtest.Mapper(clientgoscheme.Scheme, "Namespace")
			var objects []client.Object
			if c.tenant != "none" {
				objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop, Labels: map[string]string{v1alpha1.TenantLabel: cmp.Or(c.tenant, "acme"), v1alpha1.ProjectLabel: "shop"}}})
			}
			if c.object != nil {
				objects = append(objects, c.object.DeepCopy())
			}
			api := fake.NewClientBuilder().WithRESTMapper(mapper).WithObjects(objects...).Build()
			checker.Watch = watchtest.New(t, api, appsv1.SchemeGroupVersion.WithKind("Deployment"), corev1.SchemeGroupVersion.WithKind("Namespace"))
			checker.Clients = kube.NewClients(&rest.Config{Host: server.URL}, clientgoscheme.Scheme, mapper, kube.Deployers{})
			for range 2 {
				got := steptest.Outcome(t, checker.Await(t.Context(), s))
				if got != c.want {
					t.Errorf("got  %q\nwant %q", got, c.want)
				}
				// No event is about an object that the watch does not have.
				if unseen := c.object != nil && len(c.object.Labels) == 0; unseen && strings.HasPrefix(got, "waits ") && !strings.HasSuffix(got, ", after 1s") {
					t.Errorf("an object that no watch shows is looked at again too late: %s", got)
				}
			}
			if reads.Load() != c.reads {
				t.Errorf("the object was read %d times in two passes, want %d", reads.Load(), c.reads)
			}
			checker.Forget(s.App)
			if users := checker.Dependents(deployment(1, false), appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind()); len(users) != 0 {
				t.Errorf("a forgotten App depends on it: %v", users)
			}
		})
	}
}

// TestAWatchedDependencyIsAwaitedWithoutLooks: events of Apps and Projects wake the App, so it looks again only for its message.
func TestAWatchedDependencyIsAwaitedWithoutLooks(t *testing.T) {
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop", Generation: 1}}
	leaving := metav1.Now()
	for name, c := range map[string]struct {
		on     v1alpha1.Dependency
		object client.Object
		want   string
	}{
		"an App, by its status":            {onApp("db"), readyApp(shop, "db", func(a *v1alpha1.App) { a.Status.Conditions = nil }), "waits DependencyNotReady: waits for App shop/db, which was not looked at yet, after 15s"},
		"an App that does not exist":       {onApp("db"), readyApp(shop, "other", nil), "waits DependencyNotReady: waits for App shop/db, which does not exist: add it, or correct dependsOn in app.yaml, after 15s"},
		"an App that is being deleted":     {onApp("db"), readyApp(shop, "db", func(a *v1alpha1.App) { a.DeletionTimestamp, a.Finalizers = &leaving, []string{"a/b"} }), "waits DependencyNotReady: waits for App shop/db, which is being deleted, after 15s"},
		"an App, by an expression":         {v1alpha1.Dependency{Name: "db", ReadyExpr: "false"}, readyApp(shop, "db", nil), "waits DependencyNotReady: waits for App shop/db: readyExpr is not true yet, after 15s"},
		"an App of the platform":           {v1alpha1.Dependency{Name: "db", Project: "edge", Platform: true}, readyApp("edge", "other", nil), "waits DependencyNotReady: waits for App edge/db of the platform, which does not exist: add it, or correct dependsOn in app.yaml, after 15s"},
		"an App of another tenant":         {v1alpha1.Dependency{Name: "db", Project: "kubeop-beta-shop", Platform: true}, readyApp("kubeop-beta-shop", "db", nil), "waits DependencyNotReady: waits for App kubeop-beta-shop/db of the platform, which does not exist: add it, or correct dependsOn in app.yaml, after 15s"},
		"a Project, by an expression":      {v1alpha1.Dependency{Kind: v1alpha1.ProjectKind, Name: "shop", ReadyExpr: `dep.kind == "App"`}, project, "waits DependencyNotReady: waits for Project shop: readyExpr is not true yet, after 15s"},
		"a Project whose kind it asks for": {v1alpha1.Dependency{Kind: v1alpha1.ProjectKind, Name: "shop", ReadyExpr: `dep.kind == "Project" && dep.apiVersion == "paas.kubeop.io/v1alpha1" && self.kind == "App"`}, project, "done"},
	} {
		t.Run(name, func(t *testing.T) {
			checker, s := newChecker(t, []v1alpha1.Dependency{c.on}, c.object)
			if got := steptest.Outcome(t, checker.Await(t.Context(), s)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestTheAnswerOfAnExpressionIsOfOneVersion: a new version of the object is read and judged again.
func TestTheAnswerOfAnExpressionIsOfOneVersion(t *testing.T) {
	const text, other = "dep.status.readyReplicas == 1", "dep.status.readyReplicas == 2"
	checker, s := newChecker(t, []v1alpha1.Dependency{{Name: "db", ReadyExpr: text}, {Name: "db", ReadyExpr: other}})
	if err := checker.compile(s.App); err != nil {
		t.Fatal(err)
	}
	current := deployment(1, false)
	reads := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reads++
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(current)
	}))
	t.Cleanup(server.Close)
	mapper := watchtest.Mapper(clientgoscheme.Scheme, "Namespace")
	checker.Clients = kube.NewClients(&rest.Config{Host: server.URL}, clientgoscheme.Scheme, mapper, kube.Deployers{})
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
	api := fake.NewClientBuilder().WithRESTMapper(mapper).WithObjects(current.DeepCopy()).Build()
	checker.Watch = watchtest.New(t, api, kind, corev1.SchemeGroupVersion.WithKind("Namespace"))
	q := question{kind: kind, key: client.ObjectKeyFromObject(current), ready: checker.compiled.Get(s.App).expressions[text], text: text}
	for i, want := range []int{1, 1, 2} {
		if i == 2 {
			memory := checker.compiled.Get(s.App)
			memory.answers[q.id()] = answer{"an earlier version", memory.answers[q.id()].readiness}
		}
		now, err := checker.checkOther(t.Context(), s, q)
		if err != nil || now.lacks != "" || !now.watched || reads != want {
			t.Errorf("look %d: %+v, %v after %d reads, want %d", i, now, err, reads, want)
		}
	}
	q.ready, q.text = checker.compiled.Get(s.App).expressions[other], other
	for range 2 {
		if now, err := checker.checkOther(t.Context(), s, q); err != nil || now.lacks != ": readyExpr is not true yet" || reads != 3 {
			t.Errorf("another expression about the object: %+v, %v after %d reads, want 3", now, err, reads)
		}
	}
	q.ready, q.text = checker.compiled.Get(s.App).expressions[text], text
	if now, err := checker.checkOther(t.Context(), s, q); err != nil || now.lacks != "" || reads != 3 {
		t.Errorf("the first expression again: %+v, %v after %d reads, want 3", now, err, reads)
	}
}
