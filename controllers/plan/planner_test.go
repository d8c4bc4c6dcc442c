package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

var web = identity.Ref{Tenant: "acme", Project: "shop", App: "web"}

func configMap(name, data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {a: " + data + "}\n"
}

// changing is a world in which the app web has applied objects, of which some change and some left the source. The app still declares one of
// them, too, and the new app api declares another.
func changing(t *testing.T) *world {
	w := newWorld(t)
	w.app("web", configMap("settings", "new"), configMap("added", "b"), configMap("same", "c"))
	w.app("api", configMap("taken", "d"))
	w.app("still", configMap("shared", "e"))
	w.live("web", "settings__ConfigMap", "same__ConfigMap", "gone__ConfigMap", "kept__ConfigMap", "data__PersistentVolumeClaim", "taken__ConfigMap", "shared__ConfigMap")
	w.live("still", "shared__ConfigMap")
	w.server.has("configmaps", "ConfigMap", "settings", nil, map[string]any{"data": map[string]any{"a": "old"}})
	w.server.has("configmaps", "ConfigMap", "same", nil, map[string]any{"data": map[string]any{"a": "c"}})
	for _, left := range []string{"gone", "taken", "shared"} {
		w.server.has("configmaps", "ConfigMap", left, nil, nil)
	}
	w.server.has("configmaps", "ConfigMap", "kept", map[string]any{v1alpha1.PruneAnnotation: v1alpha1.PruneDisabled}, nil)
	w.server.has("persistentvolumeclaims", "PersistentVolumeClaim", "data", nil, map[string]any{"spec": map[string]any{"volumeName": "disk"}})
	return w
}

// TestAPlanSaysWhatHappensToEachObject of an app that has applied some: what is in the source and what left it.
func TestAPlanSaysWhatHappensToEachObject(t *testing.T) {
	const settings = "/api/v1/namespaces/kubeop-acme-shop/configmaps/settings"
	stays := []string{
		"+ ConfigMap/added", "- ConfigMap/gone", "! ConfigMap/kept stays: it is annotated not to be pruned",
		"! ConfigMap/settings", `-   /data/a: "old"`, `+   /data/a: "new"`, "! ConfigMap/shared stays: app acme/shop/still declares it, too",
		"- ConfigMap/taken", "! PersistentVolumeClaim/data is held: it holds data or is protected: a person has to confirm its deletion",
	}
	moves := slices.Clone(stays)
	moves[6], moves[7] = "! ConfigMap/shared moves: app acme/shop/still takes it over", "! ConfigMap/taken moves: app acme/shop/api takes it over"
	for name, tc := range map[string]struct {
		itself bool
		only   identity.Ref
		change func(*world)
		want   []string
		app    App
	}{
		"with the rights of the deployer": {itself: true, only: web, want: stays},
		"as a person":                     {only: web, want: stays, app: App{Note: "compared without the API server"}},
		"with the other apps":             {itself: true, want: moves},
		"a refused object": {itself: true, only: web, change: func(w *world) { w.server.refused["PATCH "+settings] = http.StatusUnprocessableEntity },
			want: []string{"+ ConfigMap/added", "- ConfigMap/settings is refused: the server says no", stays[6]}},
		"an app that prunes nothing": {only: web, change: func(w *world) {
			w.file("projects/shop/apps/web/app.yaml", v1alpha1.AppKind, "web", "spec: {type: Raw, prune: false, raw: {path: manifests}}\n")
		}, want: []string{stays[0], stays[3], stays[4], stays[5], stays[6]}, app: App{Note: "compared"}},
		"an object that the person may not read": {only: web, change: func(w *world) { w.server.refused["GET "+settings] = http.StatusForbidden },
			app: App{Unknown: "ConfigMap/settings: "}},
		"an object that the deployer may not read": {itself: true, only: web, change: func(w *world) { w.server.refused["GET "+settings] = http.StatusForbidden },
			want: []string{stays[0], "- ConfigMap/settings is refused: ", stays[6]}},
		"manifests that cannot be read": {itself: true, only: web, change: func(w *world) { w.app("web", "kind: ConfigMap\n") }, app: App{Failed: "objects.yaml"}},
		"a record that cannot be read": {itself: true, only: web, change: func(w *world) {
			app, _ := w.there[2].(*v1alpha1.App)
			app.Status.Inventory.Entries[0].ID = "broken"
		}, app: App{Failed: `parsing the inventory ID "broken"`}},
	} {
		t.Run(name, func(t *testing.T) {
			w := changing(t)
			w.itself = tc.itself
			if tc.change != nil {
				tc.change(w)
			}
			made := w.plan(tc.only)
			if len(made.Apps) == 0 {
				t.Fatalf("no app is compared: %+v", made)
			}
			got := made.Apps[len(made.Apps)-1]
			if tc.only.App != "" && (len(made.Apps) != 1 || len(made.Changes) != 0) {
				t.Errorf("other apps are compared, too: %+v", made)
			}
			if diff := cmp.Diff(tc.want, diffLines(got.Changes), prefixes); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			tc.app.App, tc.app.Source = "acme/shop/web", "main@sha1:1"
			for what, is := range map[string][2]string{
				"name": {got.App, tc.app.App}, "failure": {got.Failed, tc.app.Failed}, "unknown": {got.Unknown, tc.app.Unknown}, "note": {got.Note, tc.app.Note},
			} {
				if !strings.Contains(is[0], is[1]) || (is[0] == "") != (is[1] == "") {
					t.Errorf("the %s is %q, want %q", what, is[0], is[1])
				}
			}
			w.wroteNothing()
		})
	}
}

// prefixes compares lines by the beginning of the wanted one.
var prefixes = cmp.Comparer(func(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) })

// TestAPlanAsksAsTheDeployerOrAsThePerson: as the project's deployer, or with the person's own rights.
func TestAPlanAsksAsTheDeployerOrAsThePerson(t *testing.T) {
	for itself, want := range map[bool]string{true: "system:serviceaccount:kubeop-acme-shop:" + v1alpha1.Deployer, false: ""} {
		w := changing(t)
		w.itself = itself
		w.plan(web)
		if !w.server.users[want] || len(w.server.written) > 0 != itself || !itself && len(w.server.users) != 1 {
			t.Errorf("with its rights: %t: %v asked, and %v was sent", itself, slices.Collect(maps.Keys(w.server.users)), w.server.written)
		}
	}
}

// TestAPlanSaysThatThePoliciesAreUnknown to a person who may not read them: otherwise what they refuse would look allowed.
func TestAPlanSaysThatThePoliciesAreUnknown(t *testing.T) {
	const deployer = "compared without the API server: its defaults and refusals are shown to who may impersonate the project's deployer"
	const policies = "compared without the policies, which may refuse what is shown here: their rules are shown to who may read guardrails in namespace kubeop-acme-shop"
	denied := apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.Group, Resource: "guardrails"}, v1alpha1.GuardrailsName, errors.New("no"))
	for name, tc := range map[string]struct {
		itself       bool
		err          error
		note, failed string
	}{
		"who may read them":             {itself: true},
		"who may not":                   {itself: true, err: denied, note: policies},
		"who may not, nor impersonate":  {err: denied, note: deployer + "; " + policies},
		"while they cannot be read now": {itself: true, err: errors.New("away"), failed: "reading the guardrails of namespace kubeop-acme-shop: away"},
	} {
		t.Run(name, func(t *testing.T) {
			w := changing(t)
			w.itself = tc.itself
			p, repository := w.start()
			reader, _ := p.Client.(client.WithWatch)
			p.Client = interceptor.NewClient(reader, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if _, is := o.(*v1alpha1.Guardrails); is && tc.err != nil {
						return tc.err
					}
					return c.Get(ctx, key, o, options...)
				},
			})
			made, err := p.Plan(t.Context(), repository, w.commit("main@sha1:1"), web)
			if err != nil {
				t.Fatal(err)
			}
			if got := made.Apps[0]; got.Note != tc.note || got.Failed != tc.failed || (len(got.Changes) == 0) != (tc.failed != "") {
				t.Errorf("the note is %q, and it fails with %q: %v", got.Note, got.Failed, got.Changes)
			}
		})
	}
}

// TestAnAppOfANewProjectIsComparedWithNothing: its namespace does not exist, so nobody may read or write there.
func TestAnAppOfANewProjectIsComparedWithNothing(t *testing.T) {
	w := changing(t)
	w.itself = true
	w.there = w.there[1:2] // Only the tenant is there.
	made := w.plan(identity.Ref{})
	if len(made.Apps) != 3 || len(w.server.written) > 0 {
		t.Fatalf("%v was sent, and the plan is %+v", w.server.written, made)
	}
	if diff := cmp.Diff([]string{"+ ConfigMap/added", "+ ConfigMap/same", "+ ConfigMap/settings"}, diffLines(made.Apps[2].Changes)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAMoveIsRefusedInTheAppThatTakesTheObject, so it stays where it is.
func TestAMoveIsRefusedInTheAppThatTakesTheObject(t *testing.T) {
	w := changing(t)
	w.itself = true
	w.server.refused["PATCH /api/v1/namespaces/kubeop-acme-shop/configmaps/taken"] = http.StatusUnprocessableEntity
	text := w.plan(identity.Ref{}).Markdown()
	for _, want := range []string{"\n- ConfigMap/taken is refused: the server says no", "\n! ConfigMap/taken stays: app acme/shop/api declares it and cannot take it over\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// TestACommitThatChangesNothingHasAnEmptyPlan, and nothing is rendered for it. An app by its name is compared nevertheless.
func TestACommitThatChangesNothingHasAnEmptyPlan(t *testing.T) {
	w := newWorld(t)
	w.app("web", configMap("settings", "new"))
	w.applied()
	p, repository := w.start()
	connect := p.Connect
	p.Connect = func(context.Context, Folders) (*Connection, error) { return nil, errors.New("connected") }
	made, err := p.Plan(t.Context(), repository, w.commit("main@sha1:2"), identity.Ref{})
	if err != nil || !made.Empty() || made.Summary() != "no changes" || made.Repository != "acme" || made.Revision != "main@sha1:2" {
		t.Errorf("%v: %+v", err, made)
	}
	if _, err := p.Plan(t.Context(), repository, w.commit("main@sha1:2"), web); err == nil || err.Error() != "connected" {
		t.Errorf("without a connection: %v", err)
	}
	p.Connect = connect
	made, err = p.Plan(t.Context(), repository, w.commit("main@sha1:2"), web)
	if err != nil || len(made.Apps) != 1 || made.Summary() != "1 to create" {
		t.Errorf("%v: %+v", err, made)
	}
}

// TestProblemsOfFilesAreInThePlan: without the layout nothing can be compared, and otherwise the rest is.
func TestProblemsOfFilesAreInThePlan(t *testing.T) {
	w := newWorld(t)
	w.there = w.there[1:]
	w.file("projects/shop/apps/broken/app.yaml", v1alpha1.AppKind, "broken", "spec: {typ: Raw}\n")
	w.file("projects/shop/apps/other/app.yaml", v1alpha1.AppKind, "other", "spec: {typ: Raw}\n")
	made := w.plan(identity.Ref{})
	if len(made.Problems) == 0 || !strings.HasPrefix(made.Problems[0], "projects/shop/apps/broken/app.yaml:4:") || made.Summary() != "1 to create, 2 problems in files" {
		t.Errorf("got %+v: %s", made, made.Summary())
	}
	delete(w.files, "kubeop.yaml")
	if made = w.plan(identity.Ref{}); len(made.Problems) != 1 || !strings.HasPrefix(made.Problems[0], "kubeop.yaml") || len(made.Changes) != 0 || made.Empty() {
		t.Errorf("without a layout: %+v", made)
	}
}

// TestAPlanSaysThatDeletionsWait: an app with data is not deleted before a person confirms it, as the operator decides.
func TestAPlanSaysThatDeletionsWait(t *testing.T) {
	w := newWorld(t)
	w.live("web")
	w.there = append(w.there, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "disk"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	})
	delete(w.files, "projects/shop/project.yaml")
	made := w.plan(identity.Ref{})
	if len(made.Changes) == 0 || len(made.Held) == 0 {
		t.Fatalf("got %+v", made)
	}
	for _, c := range made.Changes {
		if c.Action != Hold || c.Why == "" {
			t.Errorf("got %+v", c)
		}
	}
}

// TestAPlanSaysThatItsTenantIsFrozen, unless one app is asked for.
func TestAPlanSaysThatItsTenantIsFrozen(t *testing.T) {
	w := newWorld(t)
	tenant, _ := w.there[1].(*v1alpha1.Tenant)
	tenant.Spec.Freeze = []v1alpha1.FreezeWindow{{Name: "now", Start: "bad"}}
	w.app("web", configMap("settings", "new"))
	p, repository := w.start()
	repository.Status.LastAttemptedRevision = "main@sha1:0"
	for only, want := range map[identity.Ref]bool{{}: true, web: false} {
		made, err := p.Plan(t.Context(), repository, w.commit("main@sha1:1"), only)
		if err != nil || (made.Frozen != "") != want {
			t.Errorf("%s: %v, frozen %q", only, err, made.Frozen)
		}
	}
}

// TestBetweenComparesWhatTwoCommitsRender, without the cluster's objects.
func TestBetweenComparesWhatTwoCommitsRender(t *testing.T) {
	w := newWorld(t)
	w.app("web", configMap("a", "1"), configMap("b", "1"), configMap("c", "1"))
	before := w.commit("old@sha1:1")
	w.files = maps.Clone(w.files)
	w.app("web", configMap("a", "2"), configMap("b", "1"), configMap("d", "1"))
	after := w.commit("new@sha1:2")
	p, repository := w.start()
	got, err := p.Between(t.Context(), repository, before, after, web)
	if err != nil || got.App != "acme/shop/web" || got.Source != "new@sha1:2" {
		t.Fatalf("%v: %+v", err, got)
	}
	if diff := cmp.Diff([]string{"! ConfigMap/a", "-   /data/a: 1", "+   /data/a: 2", "- ConfigMap/c", "+ ConfigMap/d"}, diffLines(got.Changes)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.app("web", "kind: ConfigMap\n")
	for name, tc := range map[string]struct {
		from, to Commit
		app      string
		want     string
	}{
		"an app that is not there":      {before, after, "none", "old: the commit does not declare the app acme/shop/none"},
		"manifests that cannot be read": {before, w.commit("bad@sha1:3"), "web", "bad: manifests/objects.yaml:1: ConfigMap has no apiVersion"},
	} {
		if _, err := p.Between(t.Context(), repository, tc.from, tc.to, identity.Ref{Tenant: "acme", Project: "shop", App: tc.app}); err == nil || err.Error() != tc.want {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}

// TestAPersonReadsTheAppsOfATenant in all namespaces or, without that right, in those of its projects.
func TestAPersonReadsTheAppsOfATenant(t *testing.T) {
	for name, tc := range map[string]struct {
		fails func(namespace string) bool
		want  string
		found int
	}{
		"in all namespaces":      {func(string) bool { return false }, "", 3},
		"in those of a project":  {func(namespace string) bool { return namespace == "" }, "", 3},
		"in none":                {func(namespace string) bool { return namespace != "kubeop-acme" }, "listing what repository acme declared: apps is forbidden: no", 0},
		"without the home of it": {func(namespace string) bool { return namespace == "kubeop-acme" }, "listing what repository acme declared: apps is forbidden: no", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.live("web")
			w.live("api")
			p, repository := w.start()
			whole, ok := p.Client.(client.WithWatch)
			if !ok {
				t.Fatal("the client cannot watch")
			}
			p.Client = interceptor.NewClient(whole, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if tc.fails((&client.ListOptions{}).ApplyOptions(options).Namespace) {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "apps"}, "", errors.New("no"))
					}
					return c.List(ctx, list, options...)
				},
			})
			c, err := p.compare(t.Context(), repository, w.commit("main@sha1:1"))
			if tc.want != "" {
				if err == nil || err.Error() != tc.want {
					t.Errorf("got %v, want %s", err, tc.want)
				}
				return
			}
			if err != nil || len(c.there) != tc.found {
				t.Errorf("%v: found %v", err, c.there)
			}
		})
	}
}

// TestNoLimitOfATenantHoldsThePlatformsRepository declares tenants, their projects and the platform's own, which no limit of a tenant holds.
func TestNoLimitOfATenantHoldsThePlatformsRepository(t *testing.T) {
	w := newWorld(t)
	repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{Path: "fleet"}}
	old := &v1alpha1.Tenant{ObjectMeta: applied("", "old")}
	old.Labels[v1alpha1.TenantLabel] = "old"
	w.there = []client.Object{old}
	w.files = fstest.MapFS{"fleet/kubeop.yaml": {Data: []byte("layout: v1\n")}}
	w.file("fleet/tenants/beta/tenant.yaml", v1alpha1.TenantKind, "beta", "spec: {clusterKinds: [IngressClass.networking.k8s.io], limits: {projects: 1}}\n")
	w.file("fleet/platform/dns/project.yaml", v1alpha1.ProjectKind, "dns", "")
	w.file("fleet/platform/dns/apps/web/app.yaml", v1alpha1.AppKind, "web", "spec: {type: Raw, raw: {path: manifests}}\n")
	w.files["fleet/platform/dns/apps/web/manifests/a.yaml"] = &fstest.MapFile{Data: []byte(configMap("settings", "1"))}
	// A limit and a right of a tenant count as the same commit declares them.
	w.file("fleet/tenants/beta/projects/shop/project.yaml", v1alpha1.ProjectKind, "shop", "")
	w.file("fleet/tenants/beta/projects/zoo/project.yaml", v1alpha1.ProjectKind, "zoo", "")
	w.file("fleet/tenants/beta/projects/shop/apps/class/app.yaml", v1alpha1.AppKind, "class", "spec: {type: Raw, raw: {path: manifests}}\n")
	w.files["fleet/tenants/beta/projects/shop/apps/class/manifests/a.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: beta}\n")}
	p, _ := w.start()
	made, err := p.Plan(t.Context(), repository, w.commit("main@sha1:1"), identity.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	text := made.Markdown()
	for _, want := range []string{
		"Project kubeop-beta/zoo is refused: projects of tenant beta, with this one: 2, and the limit is 1", "\n+ IngressClass/beta\n", "\n+ Tenant beta\n", "\n+ Project kubeop-platform/dns\n", "\n+ App dns/web\n", "Tenant old", "<summary>App platform/dns/web</summary>\n\n```diff\n+ ConfigMap/settings\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if _, err := p.PlanPreview(t.Context(), repository, w.commit("main@sha1:1"), "login"); err == nil || err.Error() != "only a tenant's own repository has previews" {
		t.Errorf("a preview of it: %v", err)
	}
	repository.Spec.Tenant = "nobody"
	if _, err := p.Plan(t.Context(), repository, w.commit("main@sha1:1"), identity.Ref{}); err == nil || err.Error() != `reading tenant nobody: tenants.paas.kubeop.io "nobody" not found` {
		t.Errorf("of a tenant that does not exist: %v", err)
	}
}

// TestAPlannedPreviewIsRendered, as a project of its own.
func TestAPlannedPreviewIsRendered(t *testing.T) {
	w := newWorld(t)
	shop, _ := w.there[0].(*v1alpha1.Project)
	shop.Spec.Previews = &v1alpha1.ProjectPreviews{Branches: "*", Host: "{branch}-{host}"}
	w.app("web", configMap("settings", "new"))
	w.file("projects/shop/apps/img/app.yaml", v1alpha1.AppKind, "img",
		"spec: {type: Image, hosts: [{host: a.example.com}, {host: b.example.com}], image: {reference: 'nginx:1', ports: [{name: http, port: 80}]}}\n")
	p, repository := w.start()
	made, err := p.PlanPreview(t.Context(), repository, w.commit("login@sha1:2"), "login")
	if err != nil || len(made.Previews) != 1 || len(made.Apps) != 2 {
		t.Fatalf("%v: %+v", err, made)
	}
	if got, want := made.Previews[0].String(), "shop-pr-login, a preview of shop, with the apps: img at login-a.example.com and login-b.example.com, web"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{"+ ConfigMap/settings"}, diffLines(made.Apps[1].Changes)); diff != "" || made.Apps[1].App != "acme/shop-pr-login/web" {
		t.Errorf("%s: -want +got:\n%s", made.Apps[1].App, diff)
	}
	w.file("projects/shop/apps/img/app.yaml", v1alpha1.AppKind, "img", "spec: {type: Image, host: a.example.com, image: {reference: 'nginx:1'}}\n")
	made, err = p.PlanPreview(t.Context(), repository, w.commit("login@sha1:2"), "login")
	if err != nil || len(made.Apps) != 1 || len(made.Problems) != 1 || !strings.Contains(made.Problems[0], "host needs image.ports") {
		t.Errorf("with a broken app: %v, %+v", err, made)
	}
	delete(w.files, "kubeop.yaml")
	made, err = p.PlanPreview(t.Context(), repository, w.commit("login@sha1:2"), "login")
	if err != nil || len(made.Problems) != 1 || len(made.Previews) != 0 {
		t.Errorf("without a layout: %v, %+v", err, made)
	}
}

// TestAPlanThatCannotReadIsAnError, not a plan without what was not read.
func TestAPlanThatCannotReadIsAnError(t *testing.T) {
	reads := func(kind string) func(string) bool { return func(read string) bool { return read == kind } }
	for name, tc := range map[string]struct {
		fails  func(read string) bool
		change func(*world, *v1alpha1.Repository)
		only   identity.Ref
		want   string
	}{
		"the tenant":     {fails: reads("*v1alpha1.Tenant"), want: "reading tenant acme: away"},
		"the projects":   {fails: reads("*v1alpha1.ProjectList"), want: "listing what repository acme declared: away"},
		"the apps":       {fails: reads("*v1alpha1.AppList"), want: "listing what repository acme declared: away"},
		"the tenants":    {fails: reads("*v1alpha1.TenantList"), change: func(_ *world, r *v1alpha1.Repository) { r.Spec.Tenant = "" }, want: "listing what repository acme declared: away"},
		"claims":         {fails: reads("*v1.PersistentVolumeClaimList"), change: func(w *world, _ *v1alpha1.Repository) { w.there = append(w.there, newProject("old")) }, want: "listing the claims of namespace kubeop-acme-old: away"},
		"the policies":   {fails: reads("*v1alpha1.PolicyList"), want: "listing the policies: away"},
		"the folder":     {change: func(_ *world, r *v1alpha1.Repository) { r.Spec.Path = "none" }, want: "reading none of the commit: sub none: no such file or folder"},
		"an unknown app": {only: identity.Ref{Tenant: "acme", Project: "shop", App: "none"}, want: "the commit does not declare the app acme/shop/none"},
		"a broken record": {change: func(w *world, _ *v1alpha1.Repository) {
			w.live("still", "a__ConfigMap").Status.Inventory.Entries[0].ID = "broken"
		}, only: web, want: `the inventory of app acme/shop/still: parsing the inventory ID "broken": want <namespace>_<name>_<group>_<kind>`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.app("web", configMap("settings", "new"))
			w.app("still", configMap("other", "new"))
			repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{Tenant: "acme"}}
			if tc.change != nil {
				tc.change(w, repository)
			}
			p, _ := w.start()
			whole, ok := p.Client.(client.WithWatch)
			if !ok {
				t.Fatal("the client cannot watch")
			}
			faulty := interceptor.NewClient(whole, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if tc.fails != nil && tc.fails(fmt.Sprintf("%T", o)) {
						return errors.New("away")
					}
					return c.Get(ctx, key, o, options...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if tc.fails != nil && tc.fails(fmt.Sprintf("%T", list)) {
						return errors.New("away")
					}
					return c.List(ctx, list, options...)
				},
			})
			p.Client, p.Direct = faulty, faulty
			if made, err := p.Plan(t.Context(), repository, w.commit("main@sha1:1"), tc.only); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s\n%+v", err, tc.want, made)
			}
		})
	}
}
