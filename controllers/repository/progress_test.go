package repository

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/credentials"
	"github.com/kubeop/kubeop/controllers/declared"
	"github.com/kubeop/kubeop/controllers/repository/queue"
	"github.com/kubeop/kubeop/controllers/repository/upstream"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

func paths(refs []identity.Ref) []string {
	var all []string
	for _, r := range refs {
		all = append(all, r.Path())
	}
	return all
}

func TestPendingObjectsAreInTheOrderOfGit(t *testing.T) {
	p := newProgress()
	for _, path := range []string{"b/x/y", "a/b", "a", "a/b/c", "a/a/z", "a/b"} {
		p.look(ref(path))
	}
	if diff := cmp.Diff([]string{"a", "a/a/z", "a/b", "a/b/c", "b/x/y"}, paths(p.pending.All())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p.done(ref("a/b"))
	p.look(ref("a/aa"))
	if diff := cmp.Diff([]string{"a", "a/a/z", "a/aa", "a/b/c", "b/x/y"}, paths(p.pending.All())); diff != "" {
		t.Errorf("after changes (-want +got):\n%s", diff)
	}
	p.done(ref("a/aa"))
	p.look(ref("a/aa")) // The sorted list still has its earlier entry.
	if diff := cmp.Diff([]string{"a", "a/a/z", "a/aa", "a/b/c", "b/x/y"}, paths(p.pending.All())); diff != "" || !p.pending.Has(ref("a/aa")) {
		t.Errorf("removed and added (-want +got):\n%s", diff)
	}
}

func TestApplyingAnObjectForgetsItsProblem(t *testing.T) {
	p, now := newProgress(), time.Unix(1, 0)
	p.tree = declaring(t, "shop/web")
	web := ref("acme/shop/web")
	p.look(web)
	p.wait(web, now)
	p.wait(web, now.Add(time.Hour))
	if !p.waiting[web].Equal(now) {
		t.Errorf("it waits since %s", p.waiting[web])
	}
	p.refuse(web, code.WriteRefused, errAway)
	if p.pending.Has(web) || len(p.waiting) != 0 {
		t.Error("what is refused is looked at all the time")
	}
	want := []tree.Problem{{Finding: document.Finding{File: "projects/shop/apps/web/app.yaml", Code: code.WriteRefused, Why: "the API server is away"}, Of: web}}
	if diff := cmp.Diff(want, p.refusals()); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	p.over.Add(web)
	p.look(web)
	if len(p.refused) != 0 || len(p.over) != 0 || !p.pending.Has(web) {
		t.Errorf("after a look: refused %v, over %v", p.refused, p.over)
	}
	p.refuse(web, code.WriteRefused, errAway)
	p.over.Add(web)
	p.left(web)
	if len(p.refused) != 0 || len(p.over) != 0 || p.pending.Has(web) || !p.Gone.Has(web) {
		t.Errorf("after it left: refused %v, over %v, gone %v", p.refused, p.over, p.Gone)
	}
}

func TestLimitsHoldBackByTenant(t *testing.T) {
	o := queue.Over{}
	a, b, other := ref("acme/shop/a"), ref("acme/shop/b"), ref("rival/shop/a")
	for _, r := range []identity.Ref{a, b, other} {
		o.Add(r)
	}
	o.Drop(a)
	o.Drop(ref("nobody/x/y"))
	if o.Has(a) || !o.Has(b) || !o.Has(other) {
		t.Errorf("held are %v", o)
	}
	if o.Drop(b); o["acme"] != nil || len(o) != 1 {
		t.Errorf("a tenant of which nothing is held is still there: %v", o)
	}
}

func TestObjectsThatOthersChangedAreAppliedInTheNextPass(t *testing.T) {
	var r records
	web, api := ref("acme/shop/web"), ref("acme/shop/api")
	r.touch("acme", web)
	first := r.begin("1", "acme")
	if len(first.pending.All()) != 0 {
		t.Error("before the first reading everything is looked at anyway")
	}
	first.tree = declaring(t, "shop")
	r.touch("acme", api)
	r.touch("other", web)
	p := r.begin("1", "acme")
	if p != first {
		t.Error("the progress of before is lost")
	}
	if diff := cmp.Diff([]string{"acme/shop/api"}, paths(p.pending.All())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p.done(api)
	if left := r.begin("1", "acme").pending.All(); len(left) != 0 {
		t.Errorf("looked at twice: %v", left)
	}
	if r.begin("2", "acme") == first {
		t.Error("another Repository of the name has the same progress")
	}
	r.touch("acme", web)
	r.forget("1", "acme")
	if again := r.begin("1", "acme"); again == first || len(again.pending.All()) != 0 {
		t.Error("it is not forgotten")
	}
}

func TestAnObjectOverALimitIsAProblemUntilThereIsRoom(t *testing.T) {
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	one, two := int32(1), int32(2)
	tenant.Spec.Limits.Apps = &one
	k := newCluster(t, tenant, project("kubeop-acme", "shop"))
	s := k.scope(declaring(t, "shop/web", "shop/api"))
	web, api := app("kubeop-acme-shop", "web"), app("kubeop-acme-shop", "api")
	admit := func(s *scope, o client.Object) bool {
		t.Helper()
		admitted, err := k.admit(t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		return admitted
	}
	if !admit(s, web) || admit(s, api) {
		t.Fatal("of two apps one is to be admitted")
	}
	if !s.progress.over.Has(ref("acme/shop/api")) || len(s.progress.refused) != 1 {
		t.Errorf("held %v, refused %v", s.progress.over, s.progress.refused)
	}
	if !admit(s, tenant) {
		t.Error("Tenants are declared by administrators, without limits")
	}
	s.made(ref("acme/shop/web"), k.clock.Now())
	s.settle()

	next := k.scope(s.found) // The cache does not show web yet.
	next.progress = s.progress
	if err := k.lookAgain(t.Context(), next); err != nil || len(next.progress.pending.All()) != 0 {
		t.Errorf("nothing changed, and looked at are %v (%v)", paths(next.progress.pending.All()), err)
	}
	tenant.Spec.Limits.Apps = &two
	if err := k.api.Update(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	next = k.scope(s.found)
	next.progress = s.progress
	if err := k.lookAgain(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"acme/shop/api"}, paths(next.progress.pending.All())); diff != "" {
		t.Errorf("with a higher limit (-want +got):\n%s", diff)
	}
	if !admit(next, api) {
		t.Error("there is room for it")
	}
}

func TestAppliedObjectsCountForAMinuteWithoutTheCache(t *testing.T) {
	for age, want := range map[time.Duration]int64{0: 1, unseenFor: 1, unseenFor + time.Second: 0} {
		k := newCluster(t)
		s := k.scope(declaring(t, "shop"))
		s.progress.applied[ref("acme/shop/web")] = applied{100, k.clock.Now().Add(-age)}
		s.progress.applied[ref("rival/shop/web")] = applied{100, k.clock.Now()}
		u, err := k.usageOf(t.Context(), s, "acme")
		if err != nil || u.Apps != want {
			t.Errorf("after %s %d apps count, want %d (%v)", age, u.Apps, want, err)
		}
		if again, _ := k.usageOf(t.Context(), s, "acme"); again != u {
			t.Error("it is counted twice in a pass")
		}
	}
}

func TestLimitsAreThoseOfTheRepositorysTenant(t *testing.T) {
	seven := int32(7)
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{Limits: v1alpha1.TenantLimits{Apps: &seven}}}
	k := newCluster(t, tenant)
	k.Tree = &tree.Reader{}
	for name, want := range map[string]int64{"acme": 7, "": budget.Default().Apps, "unknown": budget.Default().Apps} {
		if got, err := k.reader(t.Context(), name); err != nil || got.Limits.Apps != want {
			t.Errorf("of %q: %+v, want %d apps (%v)", name, got, want, err)
		}
	}
	k.fails = ".Tenant"
	if _, err := k.reader(t.Context(), "acme"); !errors.Is(err, errAway) {
		t.Errorf("a tenant that cannot be read: %v", err)
	}
}

func TestAFailureIsReportedBesideAWait(t *testing.T) {
	wait, no, never := step.Wait("Deleting", time.Second, "rain"), errors.New("no"), errors.New("never")
	for name, c := range map[string]struct {
		failed, collected error
		want              []error
	}{
		"nothing":     {},
		"a wait":      {nil, wait, []error{wait}},
		"a failure":   {no, nil, []error{no}},
		"the failure": {no, wait, []error{no}},
		"both":        {no, never, []error{no, never}},
	} {
		got := joined(c.failed, c.collected)
		if (got == nil) != (len(c.want) == 0) {
			t.Errorf("%s: got %v", name, got)
		}
		for _, want := range c.want {
			if !errors.Is(got, want) {
				t.Errorf("%s: got %v, which does not say %v", name, got, want)
			}
		}
		if c.failed != nil && errors.Is(got, wait) {
			t.Errorf("%s: got %v, which says the wait, too", name, got)
		}
	}
	f := failures{ref("a/b"): errors.New("z"), ref("a/c"): errors.New("y")}
	if got := f.join(); got == nil || got.Error() != "y\nz" {
		t.Errorf("failures are %v; they have to be in one order", got)
	}
	if (failures{}).join() != nil {
		t.Error("no failure is an error")
	}
}

func TestARevisionIsKeptWhileTheFolderIsUnchanged(t *testing.T) {
	annotated := func(revision, tree string) *v1alpha1.App {
		a := app("kubeop-acme-shop", "web")
		a.Annotations = map[string]string{v1alpha1.RevisionAnnotation: revision, v1alpha1.TreeAnnotation: tree}
		return a
	}
	for name, c := range map[string]struct {
		is, live *v1alpha1.App
		want     string
	}{
		"the same folder":         {annotated("new", "t1"), annotated("old", "t1"), "old"},
		"another folder":          {annotated("new", "t2"), annotated("old", "t1"), "new"},
		"no revision before":      {annotated("new", "t1"), annotated("", "t1"), "new"},
		"an object without any":   {annotated("", "t1"), annotated("old", "t1"), ""},
		"one without annotations": {annotated("new", "t1"), app("kubeop-acme-shop", "web"), "new"},
	} {
		if declared.KeepRevision(c.is, c.live); c.is.Annotations[v1alpha1.RevisionAnnotation] != c.want {
			t.Errorf("%s: the revision is %q, want %q", name, c.is.Annotations[v1alpha1.RevisionAnnotation], c.want)
		}
	}
}

func TestALiveObjectIsAsDeclaredOnlyWhereKubeopAppliedIt(t *testing.T) {
	want := project("kubeop-acme", "shop")
	want.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
	live := func(change ...func(*v1alpha1.Project)) *v1alpha1.Project {
		p := fromAcme(want.DeepCopy(), func(p *v1alpha1.Project) { p.Finalizers, p.Labels = []string{v1alpha1.Finalizer}, nil })
		for _, c := range change {
			c(p)
		}
		return p
	}
	for name, c := range map[string]struct {
		live client.Object
		want bool
	}{
		"as applied":     {live(), true},
		"another value":  {live(func(p *v1alpha1.Project) { p.Spec.DeletionPolicy = v1alpha1.DeletionDelete }), false},
		"with a default": {live(func(p *v1alpha1.Project) { p.Spec.ClaimDeletionPolicy = v1alpha1.ClaimRetain }), true},
		"being deleted":  {live(func(p *v1alpha1.Project) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }), false},
		"made by others": {live(func(p *v1alpha1.Project) { p.ManagedFields = nil }), false},
		"edited by a person": {live(func(p *v1alpha1.Project) {
			p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:quota":{}}}`)})
		}), false},
		"without its finalizer": {live(func(p *v1alpha1.Project) { p.Finalizers = nil }), false},
	} {
		if got, err := declared.Same(want, c.live); got != c.want || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	if got, err := declared.Same(want, nil); got || err != nil {
		t.Errorf("none there: %t, %v", got, err)
	}
}

func TestAnObjectIsNotAppliedWhileItsNamespaceIsDeleted(t *testing.T) {
	leaving := func(o client.Object) client.Object {
		o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
		o.SetFinalizers([]string{v1alpha1.Finalizer})
		return o
	}
	for name, c := range map[string]struct {
		ref   string
		there []client.Object
		live  client.Object
		want  bool
	}{
		"a tenant":                            {ref: "acme", want: true},
		"one of the name is being deleted":    {ref: "acme", live: leaving(&v1alpha1.Tenant{})},
		"a project of a tenant that is going": {ref: "acme/shop", there: []client.Object{leaving(&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})}},
		"an app of a project that is going":   {ref: "acme/shop/web", there: []client.Object{leaving(project("kubeop-acme", "shop"))}},
	} {
		if got, err := newCluster(t, c.there...).applicable(t.Context(), ref(c.ref), c.live); got != c.want || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	k := newCluster(t)
	k.fails = ".Project"
	if got, err := k.applicable(t.Context(), ref("acme/shop/web"), nil); got || !errors.Is(err, errAway) {
		t.Errorf("a project that cannot be read: %t, %v", got, err)
	}
}

func TestAnAppIsHeldToTheFoldersOfItsOwnTenant(t *testing.T) {
	for name, c := range map[string]struct {
		tenant, path, folder, namespace string
		want                            string
		ok                              bool
	}{
		"of the tenant's own repository":      {"acme", "", "projects/shop/apps/web", "kubeop-acme-shop", "acme", true},
		"in the namespace of another":         {"acme", "", "projects/shop/apps/web", "kubeop-rival-shop", "acme", false},
		"in the home itself":                  {"acme", "", "projects/shop/apps/web", "kubeop-acme", "acme", false},
		"of a tenant whose name begins so":    {"acme", "", "projects/shop/apps/web", "kubeop-acmes-shop", "acme", false},
		"of the platform repository":          {"", "", "tenants/acme/projects/shop/apps/web", "kubeop-acme-shop", "acme", true},
		"below a path of it":                  {"", "deploy", "deploy/tenants/acme/projects/shop/apps/web", "kubeop-acme-shop", "acme", true},
		"of the platform's, another tenant's": {"", "", "tenants/rival/projects/shop/apps/web", "kubeop-acme-shop", "rival", false},
		"of the platform itself":              {"", "", "platform/ingress/apps/web", "ingress", "platform", true},
		"of a folder that poses as it":        {"", "", "tenants/platform/projects/ingress/apps/web", "ingress", "", false},
		"of a tenant, for the platform":       {"acme", "", "platform/ingress/apps/web", "ingress", "acme", false},
		"without a folder":                    {"", "", "", "kubeop-acme-shop", "", false},
		"in a namespace of no tenant":         {"", "", "", "default", "", false},
	} {
		repository := &v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{Tenant: c.tenant, Path: c.path}}
		a := app(c.namespace, "web")
		a.Annotations = map[string]string{v1alpha1.FolderAnnotation: c.folder}
		if got, ok := declares(repository, a); got != c.want || ok != c.ok {
			t.Errorf("%s: %q, %t", name, got, ok)
		}
	}
}

func TestAFetchForOneFolderKeepsTheBranch(t *testing.T) {
	if got := upstream.Narrowed(&sourcev1.GitRepositoryRef{Branch: "main", Tag: "v1", SemVer: ">1"}, "abc"); got.Branch != "main" || got.Commit != "abc" || got.Tag != "" || got.SemVer != "" {
		t.Errorf("got %+v", got)
	}
	if got := upstream.Narrowed(nil, "abc"); got.Commit != "abc" || got.Branch != "" {
		t.Errorf("got %+v", got)
	}
}

func TestListsAreShortened(t *testing.T) {
	if got := listed([]string{"a", "b", "c", "d", "e"}); got != "a, b, c, d, e" {
		t.Errorf("five are %q, want %q", got, "a, b, c, d, e")
	}
	if got := listed([]string{"a", "b", "c", "d", "e", "f"}); got != "a, b, c, d, e, and 1 more" {
		t.Errorf("six are %q, want %q", got, "a, b, c, d, e, and 1 more")
	}
}

func withSecrets() *v1alpha1.Repository {
	return &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{
		SecretRef: &v1alpha1.LocalSecretReference{Name: "git"}, HookSecretRef: &v1alpha1.LocalSecretReference{Name: "hook"},
		Verify: &v1alpha1.GitVerification{SecretRef: v1alpha1.LocalSecretReference{Name: "keys"}},
	}}
}

func TestASecretWakesTheRepositoriesThatNameIt(t *testing.T) {
	k := newCluster(t, withSecrets(), &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: v1alpha1.RepositorySpec{SecretRef: &v1alpha1.LocalSecretReference{Name: "git"}}})
	for name, want := range map[string]int{"kubeop-system/git": 2, "kubeop-system/hook": 1, "kubeop-system/keys": 1, "kubeop-system/none": 0, "kubeop-acme/git": 0} {
		secret := credentials.MetadataOnly()
		secret.Namespace, secret.Name, _ = strings.Cut(name, "/")
		read := func() {
			if err := k.credentials.Get(t.Context(), client.ObjectKeyFromObject(secret), &corev1.Secret{}); err != nil {
				t.Fatal(err)
			}
		}
		reads := readings{}
		k.credentials = credentials.Cache{Reader: reads, Metadata: k.api, Named: func(context.Context, string) bool { return true }, Clock: k.clock}
		read()
		read()
		got := k.naming(t.Context(), secret)
		if len(got) != want || want > 0 && got[0].Name != "acme" {
			t.Errorf("%s wakes %v, want %d", name, got, want)
		}
		if read(); reads[secret.Name] != 2 {
			t.Errorf("%s is read %d times, want once before it changed and once after", name, reads[secret.Name])
		}
	}
	if !k.names(t.Context(), "keys") || k.names(t.Context(), "none") {
		t.Error("named are other Secrets")
	}
}

// readings has every Secret, and counts how often each is read.
type readings map[string]int

func (r readings) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	r[key.Name]++
	into.SetName(key.Name)
	return nil
}

func (readings) List(context.Context, client.ObjectList, ...client.ListOption) error { return errAway }

// wakes collects the names that are added to a queue.
type wakes struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	names []string
}

func (w *wakes) AddAfter(r reconcile.Request, _ time.Duration) { w.names = append(w.names, r.Name) }

func TestChangesByOthersWakeTheRepositoriesOfBeforeAndNow(t *testing.T) {
	k := newCluster(t)
	of := func(repository string) *v1alpha1.App {
		a := app("kubeop-acme-shop", "web")
		a.Labels = map[string]string{v1alpha1.RepositoryLabel: repository}
		return a
	}
	h := k.changedByOthers()
	for name, c := range map[string]struct {
		do   func(context.Context, *wakes)
		want []string
	}{
		"made":    {func(ctx context.Context, w *wakes) { h.Create(ctx, event.CreateEvent{Object: of("acme")}, w) }, []string{"acme"}},
		"deleted": {func(ctx context.Context, w *wakes) { h.Delete(ctx, event.DeleteEvent{Object: of("acme")}, w) }, []string{"acme"}},
		"changed": {func(ctx context.Context, w *wakes) {
			h.Update(ctx, event.UpdateEvent{ObjectOld: of("acme"), ObjectNew: of("acme")}, w)
		}, []string{"acme"}},
		"its label was changed": {func(ctx context.Context, w *wakes) {
			h.Update(ctx, event.UpdateEvent{ObjectOld: of("acme"), ObjectNew: of("b")}, w)
		}, []string{"acme", "b"}},
		"its label was removed": {func(ctx context.Context, w *wakes) {
			h.Update(ctx, event.UpdateEvent{ObjectOld: of("acme"), ObjectNew: of("")}, w)
		}, []string{"acme"}},
		"of no repository": {func(ctx context.Context, w *wakes) { h.Create(ctx, event.CreateEvent{Object: of("")}, w) }, nil},
		"where none could declare": {func(ctx context.Context, w *wakes) {
			o := of("acme")
			o.Namespace = "kubeop-acme"
			h.Create(ctx, event.CreateEvent{Object: o}, w)
		}, nil},
	} {
		w := &wakes{}
		c.do(t.Context(), w)
		slices.Sort(w.names)
		if diff := cmp.Diff(c.want, w.names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if !k.records.touched["acme"].Has(ref("acme/shop/web")) {
		t.Error("the next pass does not look at the object")
	}
	if k.records.forget("uid", "acme"); len(k.records.touched["acme"]) != 0 {
		t.Error("what others changed of a deleted repository is remembered")
	}
	w := &wakes{}
	newNamespaces.Create(t.Context(), event.CreateEvent{Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.TenantLabel: "acme"}}}}, w)
	if diff := cmp.Diff([]string{"platform", "acme"}, w.names); diff != "" {
		t.Errorf("a new namespace (-want +got):\n%s", diff)
	}
}

// TestTheVersionsOfSecretsAreThoseThatCanBeRead: a change of any of them is a reason to fetch.
func TestTheVersionsOfSecretsAreThoseThatCanBeRead(t *testing.T) {
	secret := func(name, version string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: name, ResourceVersion: version}}
	}
	api := fake.NewClientBuilder().WithObjects(secret("git", "7"), secret("hook", "9"), secret("other", "11")).Build()
	r := &Reconciler{Secrets: api, Namespace: "kubeop-system"}
	named := func(name string) *v1alpha1.LocalSecretReference { return &v1alpha1.LocalSecretReference{Name: name} }
	for name, tc := range map[string]struct {
		spec v1alpha1.RepositorySpec
		want string
	}{
		"none":             {v1alpha1.RepositorySpec{}, ""},
		"one":              {v1alpha1.RepositorySpec{SecretRef: named("git")}, " 7"},
		"two":              {v1alpha1.RepositorySpec{SecretRef: named("git"), HookSecretRef: named("hook")}, " 7 9"},
		"of the Git host":  {v1alpha1.RepositorySpec{CommitStatus: &v1alpha1.CommitStatus{SecretRef: named("other")}, Verify: &v1alpha1.GitVerification{SecretRef: *named("git")}}, " 7 11"},
		"one that is gone": {v1alpha1.RepositorySpec{SecretRef: named("none"), HookSecretRef: named("hook")}, " 9"},
	} {
		if got := r.secretVersions(&v1alpha1.Repository{Spec: tc.spec}); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
