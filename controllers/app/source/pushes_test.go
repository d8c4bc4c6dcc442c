package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
)

// TestOnlyPushesToSourcesOfAppsAreRemembered reports pushes to URLs that no app, or only another tenant's app, is made from.
func TestOnlyPushesToSourcesOfAppsAreRemembered(t *testing.T) {
	made := func(tenant string) *v1alpha1.App {
		return &v1alpha1.App{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-" + tenant + "-shop", Name: "web", Labels: map[string]string{v1alpha1.TenantLabel: tenant}},
			Spec:       v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: "https://git.example.com/" + tenant + ".git"}},
		}
	}
	c := fake.NewClientBuilder().WithScheme(schemeOf(t)).WithObjects(made("acme"), made("beta")).WithIndex(&v1alpha1.App{}, ByURL, URLs).Build()
	r := &Fetcher{Client: c}
	notify := func(source string) int {
		return len(r.pushed(t.Context(), &v1alpha1.Repository{
			ObjectMeta: metav1.ObjectMeta{Name: "acme", Annotations: map[string]string{v1alpha1.PushedAnnotation: "now " + source}},
			Spec:       v1alpha1.RepositorySpec{Tenant: "acme", URL: "https://git.example.com/declares"},
		}))
	}
	for i := range 3 {
		if woken := notify(fmt.Sprintf("https://git.example.com/%d", i)) + notify("https://git.example.com/beta"); woken > 0 {
			t.Errorf("%d apps are woken by pushes to URLs that are no app's source", woken)
		}
	}
	if len(r.pushes.last) > 0 {
		t.Errorf("the remembered pushes are %v", r.pushes.last)
	}
	if woken := notify("https://git.example.com/acme"); woken != 1 || r.pushes.of("acme", "https://git.example.com/acme.git") != "now" {
		t.Errorf("a push to the app's source wakes %d, and is remembered as %q", woken, r.pushes.of("acme", "https://git.example.com/acme.git"))
	}
	if got := r.pushes.of("beta", "https://git.example.com/acme"); got != "" {
		t.Errorf("for another tenant the push is remembered as %q, want none", got)
	}
}

// woken is a queue that reads the remembered push whenever an app is added, as a worker may.
type woken struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	known func() string
	seen  []string
}

func (q *woken) Add(reconcile.Request) { q.seen = append(q.seen, q.known()) }

// TestAWokenAppFindsThePush: a push is remembered before its apps are woken.
func TestAWokenAppFindsThePush(t *testing.T) {
	const url = "https://git.example.com/acme"
	made := &v1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "web", Labels: map[string]string{v1alpha1.TenantLabel: "acme"}},
		Spec:       v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: url}},
	}
	r := &Fetcher{Client: fake.NewClientBuilder().WithScheme(schemeOf(t)).WithObjects(made).WithIndex(&v1alpha1.App{}, ByURL, URLs).Build()}
	was := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{Tenant: "acme", URL: url}}
	was.Status.LastAttemptedRevision = "main@sha1:1"
	is := was.DeepCopy()
	is.Status.LastAttemptedRevision = "main@sha1:2"
	q := &woken{known: func() string { return r.pushes.of("acme", url) }}
	r.WakePushed(t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: is}, q)
	if !slices.Equal(q.seen, []string{"main@sha1:2"}) {
		t.Errorf("the woken apps found the pushes %q", q.seen)
	}
}

// TestAPushThatIsNotedAtTheStartWakesItsApps: it may have come while no process handled it. The commit of the Repository itself is no new one.
func TestAPushThatIsNotedAtTheStartWakesItsApps(t *testing.T) {
	const url = "https://git.example.com/acme"
	made := func(name, from string) *v1alpha1.App {
		return &v1alpha1.App{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: name, Labels: map[string]string{v1alpha1.TenantLabel: "acme"}},
			Spec:       v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: from}},
		}
	}
	r := &Fetcher{Client: fake.NewClientBuilder().WithScheme(schemeOf(t)).WithObjects(made("web", url), made("api", url+"2")).WithIndex(&v1alpha1.App{}, ByURL, URLs).Build()}
	repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{Tenant: "acme", URL: url + "2"}}
	repository.Status.LastAttemptedRevision = "main@sha1:1"
	if PushReported.Create(event.CreateEvent{Object: repository}) {
		t.Error("a Repository without a noted push passes")
	}
	repository.Annotations = map[string]string{v1alpha1.PushedAnnotation: "now " + url}
	q := &woken{known: func() string { return r.pushes.of("acme", url) }}
	if PushReported.Create(event.CreateEvent{Object: repository}) {
		r.WakeNoted(t.Context(), event.CreateEvent{Object: repository}, q)
	}
	if !slices.Equal(q.seen, []string{"now"}) {
		t.Errorf("the woken apps found the pushes %q", q.seen)
	}
}

// TestRememberedPushesOfATenantAreLimited: the oldest are dropped, and those of other tenants are not.
func TestRememberedPushesOfATenantAreLimited(t *testing.T) {
	var p pushes
	p.note("beta", "of-beta", "1")
	for i := range maxPushes + 10 {
		p.note("acme", fmt.Sprint(i), "1")
	}
	if n := p.last["acme"].Len(); n != maxPushes {
		t.Errorf("%d are remembered, want %d", n, maxPushes)
	}
	if p.of("acme", "9") != "" || p.of("acme", "10") != "1" || p.of("beta", "of-beta") != "1" {
		t.Errorf("the tenth push is remembered as %q, the eleventh as %q, another tenant's as %q", p.of("acme", "9"), p.of("acme", "10"), p.of("beta", "of-beta"))
	}
}

// TestAPushToARegistryWakesItsApps: the hook names the repository as app.yaml does, or in full.
func TestAPushToARegistryWakesItsApps(t *testing.T) {
	policy := &v1alpha1.ImagePolicy{SemVer: "*"}
	specs := map[string]v1alpha1.AppSpec{
		"image":    {Image: &v1alpha1.ImageSource{Reference: "acme/web", Policy: policy}},
		"library":  {Image: &v1alpha1.ImageSource{Reference: "index.docker.io/nginx", Policy: policy}},
		"fixed":    {Image: &v1alpha1.ImageSource{Reference: "acme/web:1"}},
		"artifact": {Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: "oci://registry.example.com/acme/deploy"}}},
		"chart":    {Helm: &v1alpha1.HelmSource{Repository: "oci://registry.example.com/charts/", Chart: "db"}},
		"index":    {Helm: &v1alpha1.HelmSource{Repository: "https://charts.example.com", Chart: "db"}},
		"folder":   {Helm: &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{URL: "https://git.example.com/charts"}}},
		"beside":   {Helm: &v1alpha1.HelmSource{Path: "chart"}},
	}
	apps := fake.NewClientBuilder().WithScheme(schemeOf(t)).WithIndex(&v1alpha1.App{}, ByURL, URLs)
	for name, spec := range specs {
		labels := map[string]string{v1alpha1.TenantLabel: "acme"}
		apps = apps.WithObjects(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: name, Labels: labels}, Spec: spec})
	}
	r := &Fetcher{Client: apps.Build()}
	for source, want := range map[string]string{
		"oci://docker.io/acme/web":               "image",
		"oci://acme/web":                         "image",
		"oci://docker.io/library/nginx":          "library",
		"oci://registry.example.com/acme/deploy": "artifact",
		"oci://registry.example.com/charts/db/":  "chart",
		"oci://registry.example.com/charts":      "",
		"https://charts.example.com/":            "index",
		"https://git.example.com/charts.git":     "folder",
	} {
		woken := r.pushed(t.Context(), &v1alpha1.Repository{
			ObjectMeta: metav1.ObjectMeta{Name: "acme", Annotations: map[string]string{v1alpha1.PushedAnnotation: "now " + source}},
			Spec:       v1alpha1.RepositorySpec{Tenant: "acme", URL: "https://git.example.com/declares"},
		})
		var names []string
		for _, app := range woken {
			names = append(names, app.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("a push to %s wakes %q, want %q", source, got, want)
		}
		if spec := specs[want]; want != "" && r.pushes.of("acme", sourceURL(&spec)) != "now" {
			t.Errorf("the app %s does not find the push to %s", want, source)
		}
	}
}

func TestOnlyARepositoryThatReportsAPushWakesApps(t *testing.T) {
	was := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme", Annotations: map[string]string{v1alpha1.PushedAnnotation: "1 https://git.example.com/web"}}}
	was.Status.LastAttemptedRevision = "main@sha1:1"
	for name, c := range map[string]struct {
		change func(*v1alpha1.Repository)
		want   bool
	}{
		"nothing":      {func(*v1alpha1.Repository) {}, false},
		"its spec":     {func(r *v1alpha1.Repository) { r.Spec.Path = "deploy" }, false},
		"a push to it": {func(r *v1alpha1.Repository) { r.Status.LastAttemptedRevision = "main@sha1:2" }, true},
		"a push to a source": {func(r *v1alpha1.Repository) {
			r.Annotations[v1alpha1.PushedAnnotation] = "2 https://git.example.com/web"
		}, true},
		"another annotation": {func(r *v1alpha1.Repository) { r.Annotations["example.com/x"] = "y" }, false},
	} {
		is := was.DeepCopy()
		if c.change(is); PushReported.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}) != c.want {
			t.Errorf("%s changed: woken %t, want %t", name, !c.want, c.want)
		}
	}
	if PushReported.Delete(event.DeleteEvent{Object: was}) {
		t.Error("a repository that is deleted counts as a push")
	}
}

// TestTheFileOfAManifestIsFound: a chart and an image have none.
func TestTheFileOfAManifestIsFound(t *testing.T) {
	source := fstest.MapFS{"deploy/settings.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}}
	for name, c := range map[string]struct {
		spec v1alpha1.AppSpec
		file string
	}{
		"beside app.yaml, before it was fetched": {v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{Path: "deploy"}}, ""},
		"in app.yaml":                            {v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{}}, ""},
		"in a Git repository":                    {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{Path: "deploy"}}, "deploy/settings.yaml"},
		"in a chart":                             {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{}}, ""},
	} {
		found := &Found{Files: Files{FS: source}}
		places := found.PlacesFor(&v1alpha1.App{Spec: c.spec})([]string{"ConfigMap/a"})
		if (len(places) == 1) != (c.file != "") || c.file != "" && places["ConfigMap/a"].File != c.file {
			t.Errorf("%s: got %+v, want %q", name, places, c.file)
		}
	}
	found := &Found{Folder: folder.FromFS(source).Folder(".")}
	if got := found.PlacesFor(&v1alpha1.App{Spec: v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{Path: "deploy"}}})([]string{"ConfigMap/a"})["ConfigMap/a"].File; got != "deploy/settings.yaml" {
		t.Errorf("beside app.yaml: got %q", got)
	}
}
