package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// newCluster returns a manager that reads a cluster with the tenants acme and beta, which have the projects blog and shop with the apps db and web.
func newCluster(t *testing.T) (m *manager, cluster *index.Index, synced *error) {
	t.Helper()
	m, cluster, synced = newManager(t), index.New(), new(error)
	m.registry, m.cluster = prometheus.NewRegistry(), cluster
	var objects []client.Object
	for _, tenant := range []string{"acme", "beta"} {
		objects = append(objects, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: tenant}})
		for _, project := range []string{"shop", "blog"} {
			objects = append(objects, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-" + tenant, Name: project}})
			for _, app := range []string{"web", "db"} {
				objects = append(objects, appOf("kubeop-"+tenant+"-"+project, app))
			}
		}
	}
	for _, object := range objects {
		apply(t, cluster, object)
	}
	handler, err := New(Options{
		Log: logr.Discard(), Registry: m.registry, Checks: noChecks(), Store: m.store, Signing: m.signing, Issuers: m.issuers, Owners: m.owners, RequestsPerSecond: 10_000, Burst: 10_000, Now: func() time.Time { return m.now },
		Live: &live.Operations{Index: cluster, Measured: "local", Synced: func(context.Context) error { return *synced }},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Handler = handler
	return m, cluster, synced
}

func appOf(namespace, name string) *v1alpha1.App {
	a := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 2, Annotations: map[string]string{"secret": "hunter2"}}}
	a.Spec.Type = v1alpha1.AppImage
	a.Status.LastAppliedRevision = "main@sha1:1"
	a.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: "True", Reason: "Succeeded", Message: "delivered <now>", ObservedGeneration: 2}}
	return a
}

func apply(t *testing.T, cluster *index.Index, object client.Object) {
	t.Helper()
	if err := live.Apply(cluster, object); err != nil {
		t.Fatal(err)
	}
}

func names(m *manager, secret, path string) string {
	m.Helper()
	var all []string
	for cursor := ""; ; {
		page := read[struct {
			Items []struct{ Name string }
			Next  string
		}](m, m.as(secret, "GET", path+"?limit=1&cursor="+cursor, ""), http.StatusOK)
		for _, item := range page.Items {
			all = append(all, item.Name)
		}
		if cursor = page.Next; cursor == "" {
			return strings.Join(all, " ")
		}
	}
}

// TestEachRoleSeesWhatItsScopesReach, page by page, and everything else is as if it were not there.
func TestEachRoleSeesWhatItsScopesReach(t *testing.T) {
	m, _, _ := newCluster(t)
	for role, c := range map[string]struct {
		tenants, projects string
		found             []string
	}{
		"admin":                    {"acme beta", "blog shop", []string{"tenants/acme", "tenants/beta", "projects/acme/shop", "projects/acme/blog", "projects/beta/shop", "apps/acme/shop/web", "apps/acme/blog/web", "apps/beta/shop/web"}},
		"tenant:acme:view":         {"acme", "blog shop", []string{"tenants/acme", "projects/acme/shop", "projects/acme/blog", "apps/acme/shop/web", "apps/acme/blog/web"}},
		"tenant:acme:edit":         {"acme", "blog shop", []string{"tenants/acme", "projects/acme/shop", "projects/acme/blog", "apps/acme/shop/web", "apps/acme/blog/web"}},
		"tenant:acme:admin":        {"acme", "blog shop", []string{"tenants/acme", "projects/acme/shop", "projects/acme/blog", "apps/acme/shop/web", "apps/acme/blog/web"}},
		"project:acme/shop:view":   {"", "shop", []string{"projects/acme/shop", "apps/acme/shop/web"}},
		"project:acme/shop:edit":   {"", "shop", []string{"projects/acme/shop", "apps/acme/shop/web"}},
		"project:acme/shop:deploy": {"", "shop", []string{"projects/acme/shop", "apps/acme/shop/web"}},
	} {
		callers := map[string]string{"a program": m.holder(role, role)}
		if !strings.HasPrefix(role, "project:") {
			callers["a person"] = m.personWith(role)
		}
		for who, caller := range callers {
			t.Run(role+" of "+who, func(t *testing.T) {
				if got := names(m, caller, "/v1/tenants"); got != c.tenants {
					t.Errorf("tenants: %s", got)
				}
				if got := names(m, caller, "/v1/projects/acme"); got != c.projects {
					t.Errorf("projects: %s", got)
				}
				if got := names(m, caller, "/v1/apps/acme/shop"); got != "db web" {
					t.Errorf("apps: %s", got)
				}
				missing := problemOf(t, m.as(caller, "GET", "/v1/apps/acme/shop/missing", ""))
				missing.RequestID = ""
				found := map[string]bool{}
				for _, path := range c.found {
					found[path] = true
				}
				for _, path := range []string{
					"tenants/acme", "tenants/beta", "tenants/none", "tenants/platform", "projects/acme/shop", "projects/acme/blog", "projects/acme/none", "projects/beta/shop", "projects/none/shop",
					"apps/acme/shop/web", "apps/acme/blog/web", "apps/acme/none/web", "apps/beta/shop/web", "apps/platform/kubeop-acme-shop/web", "apps/beta/none/web",
				} {
					answer := m.as(caller, "GET", "/v1/"+path, "")
					if found[path] {
						if answer.Code != http.StatusOK {
							t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
						}
						continue
					}
					p := problemOf(t, answer)
					p.RequestID = ""
					if diff := cmp.Diff(missing, p); diff != "" {
						t.Errorf("the answer shows that %s exists (-missing +got):\n%s", path, diff)
					}
				}
				if role != "admin" {
					for _, path := range []string{"/v1/projects/beta", "/v1/projects/none", "/v1/apps/beta/shop"} {
						if p := problemOf(t, m.as(caller, "GET", path, "")); p.Code != problem.NotFound {
							t.Errorf("%s: %+v", path, p)
						}
					}
				}
			})
		}
	}
}

// TestNoProjectOfThePlatformIsRead: it has the name of its namespace, which may be that of a tenant's project.
func TestNoProjectOfThePlatformIsRead(t *testing.T) {
	m, cluster, _ := newCluster(t)
	apply(t, cluster, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-platform", Name: "kubeop-acme-shop"}})
	apply(t, cluster, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}})
	caller := m.holder("root", "admin")
	for _, path := range []string{"apps/platform/kubeop-acme-shop", "apps/platform/kubeop-acme-shop/web", "projects/platform", "tenants/platform"} {
		if p := problemOf(t, m.as(caller, "GET", "/v1/"+path, "")); p.Code != problem.NotFound {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

func TestAnUnchangedAppIsNotSentAgain(t *testing.T) {
	m, cluster, _ := newCluster(t)
	caller := m.holder("viewer", "project:acme/shop:view")
	ask := func(known string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/v1/apps/acme/shop/web", nil)
		r.Header.Set("Authorization", "Bearer "+caller)
		r.Header.Set("If-None-Match", known)
		answer := httptest.NewRecorder()
		m.ServeHTTP(answer, r)
		return answer
	}
	first := ask("")
	app := read[live.App](m, first, http.StatusOK)
	if app.Name != "web" || app.Type != "Image" || app.Ready != "True" || app.Message != "delivered <now>" || app.Revision != "main@sha1:1" || strings.Contains(first.Body.String(), "hunter2") {
		t.Errorf("%s", first.Body)
	}
	etag := first.Header().Get("ETag")
	for _, known := range []string{etag, "W/" + etag, `"x", ` + etag, "*"} {
		if answer := ask(known); answer.Code != http.StatusNotModified || answer.Body.Len() > 0 || answer.Header().Get("ETag") != etag || answer.Header().Get("Cache-Control") != "private, no-cache" {
			t.Errorf("%s: %d %s", known, answer.Code, answer.Body)
		}
	}
	a := appOf("kubeop-acme-shop", "web")
	a.ResourceVersion = "2"
	apply(t, cluster, a)
	if answer := ask(etag); answer.Code != http.StatusNotModified {
		t.Errorf("after a change that is not returned: %d %s", answer.Code, answer.Body)
	}
	a.Generation = 3
	apply(t, cluster, a)
	changed := ask(etag)
	if app := read[live.App](m, changed, http.StatusOK); app.Ready != "Unknown" || app.Message != "" || changed.Header().Get("ETag") == etag {
		t.Errorf("after a change that the operator did not see yet: %s", changed.Body)
	}
	a.Generation, a.Annotations[v1alpha1.TreeAnnotation] = 2, "a tree with another manifest"
	apply(t, cluster, a)
	if app := read[live.App](m, ask(etag), http.StatusOK); app.Ready != "Unknown" || app.Message != "" {
		t.Errorf("after a commit that changed only files beside app.yaml: %+v", app)
	}
	a.Status.Conditions[0].Status, a.Status.LastAttemptedRevision, a.Annotations[v1alpha1.RevisionAnnotation] = "False", "main@sha1:1", "main@sha1:2"
	apply(t, cluster, a)
	if app := read[live.App](m, ask(etag), http.StatusOK); app.Ready != "Unknown" || app.Message != "" {
		t.Errorf("a failure of the commit before: %+v", app)
	}
	a.Status.LastAttemptedRevision = "main@sha1:2"
	apply(t, cluster, a)
	if app := read[live.App](m, ask(etag), http.StatusOK); app.Ready != "False" {
		t.Errorf("a failure of this commit: %+v", app)
	}
}

// TestTheBudgetOfATenantIsReturned as kubectl shows it.
func TestTheBudgetOfATenantIsReturned(t *testing.T) {
	m, cluster, _ := newCluster(t)
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	tenant.Status.Budget = &v1alpha1.BudgetStatus{Summary: "pods 150/200"}
	apply(t, cluster, tenant)
	if got := read[live.Tenant](m, m.as(m.holder("viewer", "tenant:acme:view"), "GET", "/v1/tenants/acme", ""), http.StatusOK); got.Budget != "pods 150/200" {
		t.Errorf("%+v", got)
	}
}

// TestAPageCostsWhatIsOnIt, however long its list is.
func TestAPageCostsWhatIsOnIt(t *testing.T) {
	m, cluster, _ := newCluster(t)
	caller := m.holder("viewer", "tenant:acme:view")
	cost := func() float64 {
		return testing.AllocsPerRun(20, func() {
			if answer := m.as(caller, "GET", "/v1/apps/acme/shop?limit=2", ""); answer.Code != http.StatusOK {
				t.Fatalf("%d %s", answer.Code, answer.Body)
			}
		})
	}
	apply(t, cluster, appOf("kubeop-acme-shop", "a"))
	short := cost()
	for i := range 1000 {
		apply(t, cluster, appOf("kubeop-acme-shop", fmt.Sprintf("x%d", i)))
	}
	if long := cost(); long > short*1.5 {
		t.Errorf("a page of a list of 1,000 makes %g allocations, one of a short list %g", long, short)
	}
}

func TestEmptyCachesAreNotShownAsAnEmptyCluster(t *testing.T) {
	m, _, synced := newCluster(t)
	admin := m.holder("root", "admin")
	*synced = errors.New("dial 10.0.0.1")
	for _, path := range []string{"tenants", "tenants/acme", "projects/acme", "projects/acme/shop", "apps/acme/shop", "apps/acme/shop/web"} {
		answer := m.as(admin, "GET", "/v1/"+path, "")
		if p := problemOf(t, answer); p.Code != problem.Unavailable || answer.Header().Get("Retry-After") != "5" || strings.Contains(fmt.Sprint(p), "10.0.0.1") {
			t.Errorf("%s: %+v with %v", path, p, answer.Header())
		}
	}
}
