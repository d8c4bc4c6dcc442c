package tenant

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/guards"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/isolation"
	"github.com/kubeop/kubeop/delivery/namespace"
	"github.com/kubeop/kubeop/delivery/quota"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

var (
	errAway   = errors.New("the API server is away")
	deletedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// fixture is a reconciler over a fake API server.
type fixture struct {
	*Reconciler
	t   *testing.T
	api client.WithWatch
	// failing: projects cannot be listed.
	failing bool
	deleted []string
}

// served is the discovery of a cluster of which quotas count ConfigMaps.
type served struct{}

func (served) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return nil, []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "configmaps", Namespaced: true, Verbs: metav1.Verbs{"create", "list", "watch", "delete"}},
	}}}, nil
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := &fixture{t: t}
	clock := clocktesting.NewFakePassiveClock(deletedAt)
	b.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithRESTMapper(mapperOf(scheme)).
		WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			b.deleted = append(b.deleted, o.GetName())
			return c.Delete(ctx, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, projects := list.(*v1alpha1.ProjectList); projects && b.failing {
				return errAway
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	b.Reconciler = &Reconciler{
		Client: b.api, Direct: b.api, Applier: &apply.Applier{Live: b.live}, Kinds: &quota.Kinds{Roles: b.api, Definitions: b.api, Served: served{}, Now: clock.Now},
		Tier:     &guards.OptionalKind{Kind: isolation.ClusterPolicyKind, Mapper: b.api.RESTMapper()},
		Mutating: &guards.OptionalKind{Kind: guards.MutatingPolicyKind, Mapper: b.api.RESTMapper()},
		Budgets:  &usage.Budgets{Reader: b.api, Kinds: func(context.Context) ([]schema.GroupResource, error) { return quota.Usual(), nil }},
		Steps:    &step.Runner{Client: b.api, Events: events.NewFakeRecorder(20), Clock: clock},
		Notified: func(*v1alpha1.Tenant) step.Note { return step.Note{Condition: v1alpha1.NotificationFailedCondition} },
	}
	return b
}

// mapperOf maps all kinds, those of the cluster as such.
func mapperOf(scheme *runtime.Scheme) meta.RESTMapper {
	root := map[string]bool{"Namespace": true, "ClusterRole": true, "ClusterRoleBinding": true, "FlowSchema": true, "Tenant": true, "Repository": true}
	mapper := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for kind := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if root[kind.Kind] {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	return mapper
}

func (b *fixture) live(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)
	err := b.api.Get(ctx, key, o)
	if apierrors.IsNotFound(err) {
		return nil, true, nil
	}
	return o, true, err
}

func (b *fixture) get(o client.Object) bool {
	b.t.Helper()
	err := b.api.Get(b.t.Context(), client.ObjectKeyFromObject(o), o)
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	return err == nil
}

func acme(change ...func(*v1alpha1.Tenant)) *v1alpha1.Tenant {
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "uid-1", Finalizers: []string{v1alpha1.Finalizer}}}
	for _, c := range change {
		c(tenant)
	}
	return tenant
}

func deletedTenant(t *v1alpha1.Tenant) { t.DeletionTimestamp = &metav1.Time{Time: deletedAt} }

func project(tenant, name string, labels map[string]string) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-" + tenant, Name: name, Labels: labels, Finalizers: []string{v1alpha1.Finalizer}}}
}

func TestATenantWaitsForItsProjectsAndDeletesThem(t *testing.T) {
	for name, c := range map[string]struct {
		tenants, projects, want v1alpha1.DeletionPolicy
	}{
		"unset deletes":                  {"", "", v1alpha1.DeletionDelete},
		"delete":                         {v1alpha1.DeletionDelete, v1alpha1.DeletionOrphan, v1alpha1.DeletionDelete},
		"orphan":                         {v1alpha1.DeletionOrphan, v1alpha1.DeletionDelete, v1alpha1.DeletionOrphan},
		"the projects' own does not win": {"", v1alpha1.DeletionOrphan, v1alpha1.DeletionDelete},
	} {
		t.Run(name, func(t *testing.T) {
			shop, blog, rivals := project("acme", "shop", nil), project("acme", "blog", nil), project("rival", "shop", nil)
			shop.Spec.DeletionPolicy, blog.Spec.DeletionPolicy = c.projects, c.projects
			b := newFixture(t, shop, blog, rivals)
			s := b.newScope(acme(deletedTenant, func(a *v1alpha1.Tenant) { a.Spec.DeletionPolicy = c.tenants }))
			want := "waits Deleting: waits for projects blog, shop; kubectl get projects -n kubeop-acme says what holds them, after 1s"
			if got := steptest.Outcome(t, b.removeProjects(t.Context(), s)); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			for _, p := range []*v1alpha1.Project{shop, blog} {
				if !b.get(p) || p.DeletionTimestamp == nil || p.Spec.DeletionPolicy != c.want {
					t.Errorf("project %s is deleted at %v with policy %q", p.Name, p.DeletionTimestamp, p.Spec.DeletionPolicy)
				}
			}
			if !b.get(rivals) || rivals.DeletionTimestamp != nil {
				t.Error("the project of another tenant is deleted")
			}
		})
	}
	b := newFixture(t)
	b.failing = true
	if got := steptest.Outcome(t, b.removeProjects(t.Context(), b.newScope(acme(deletedTenant)))); got != "failed Failed: listing the projects of acme: the API server is away" {
		t.Errorf("projects that cannot be listed: %q, want %q", got, "failed Failed: listing the projects of acme: the API server is away")
	}
}

func TestAccessOutsideTheNamespaceGoesWithTheTenantUnlessItOrphans(t *testing.T) {
	for policy, goes := range map[v1alpha1.DeletionPolicy]bool{"": true, v1alpha1.DeletionDelete: true, v1alpha1.DeletionOrphan: false} {
		t.Run(string(policy), func(t *testing.T) {
			tenant := acme(owned, func(a *v1alpha1.Tenant) { a.Spec.DeletionPolicy = policy })
			theirs := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-tenant-rival", Labels: map[string]string{v1alpha1.TenantLabel: "rival"}}}
			b := newFixture(t, theirs)
			b.FlowControl, b.OwnerRequests = true, true
			s := b.newScope(tenant)
			if err := errors.Join(b.grant(t.Context(), s), b.api.Create(t.Context(), project("acme", "shop", nil)), b.guard(t.Context(), s)); err != nil {
				t.Fatal(err)
			}
			s.Record()
			shop := project("acme", "shop", nil)
			if b.get(shop); shop.Name == "" {
				t.Fatal("no project")
			}
			shop.Finalizers = nil
			if err := errors.Join(b.api.Update(t.Context(), shop), b.api.Delete(t.Context(), shop)); err != nil {
				t.Fatal(err)
			}
			held := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-tenant-acme"}}
			if b.get(held); goes {
				held.Finalizers = []string{"example.com/hold"}
				if err := b.api.Update(t.Context(), held); err != nil {
					t.Fatal(err)
				}
				want := "waits Deleting: waits for FlowSchema/kubeop-tenant-acme to be gone, after 1s"
				for range 2 {
					if got := steptest.Outcome(t, b.removeProjects(t.Context(), b.newScope(tenant))); got != want {
						t.Errorf("while one is held: %q, want %q", got, want)
					}
				}
				b.get(held)
				held.Finalizers = nil
				if err := b.api.Update(t.Context(), held); err != nil {
					t.Fatal(err)
				}
			}
			var end string
			for range 3 {
				end = steptest.Outcome(t, b.removeProjects(t.Context(), b.newScope(tenant)))
			}
			if !b.get(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: guardName}}) {
				t.Error("the quota of the home went before the home")
			}
			if end != "done" {
				t.Errorf("the removal ends %q", end)
			}
			made, requests := metav1.ObjectMeta{Name: "kubeop-tenant-acme"}, metav1.ObjectMeta{Name: "kubeop-tenant-acme-edit"}
			for kind, o := range map[string]client.Object{
				"role": &rbacv1.ClusterRole{ObjectMeta: made}, "binding": &rbacv1.ClusterRoleBinding{ObjectMeta: made}, "flow schema": &flowcontrolv1.FlowSchema{ObjectMeta: made},
				"role for requests": &rbacv1.ClusterRole{ObjectMeta: requests}, "binding for requests": &rbacv1.ClusterRoleBinding{ObjectMeta: requests},
			} {
				if b.get(o) == goes {
					t.Errorf("the %s went: %t, want %t", kind, !goes, goes)
				}
			}
			if !b.get(theirs) {
				t.Error("the role of another tenant went")
			}
		})
	}
}

func TestOwnersSeeTheirOwnTenantAndRepository(t *testing.T) {
	b := newFixture(t)
	tenant := acme(func(a *v1alpha1.Tenant) {
		a.Spec.Owners = []v1alpha1.Owner{{Kind: "Group", Name: "devs", Role: "edit"}, {Kind: "User", Name: "ann"}}
	})
	if err := b.grant(t.Context(), b.newScope(tenant)); err != nil {
		t.Fatal(err)
	}
	role, binding := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-tenant-acme"}}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-tenant-acme"}}
	if !b.get(role) || !b.get(binding) {
		t.Fatal("not all is there")
	}
	want := []rbacv1.PolicyRule{{APIGroups: []string{"paas.kubeop.io"}, Resources: []string{"tenants", "repositories"}, ResourceNames: []string{"acme"}, Verbs: []string{"get", "list", "watch"}}}
	if diff := cmp.Diff(want, role.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if binding.RoleRef.Name != role.Name || binding.RoleRef.Kind != "ClusterRole" || len(binding.Subjects) != 2 {
		t.Errorf("bound are %v to %v", binding.Subjects, binding.RoleRef)
	}
	for name, want := range map[string]bool{"kubeop-edit": true, "kubeop-view": true, "kubeop-admin": false} {
		if got := b.get(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: name}}); got != want {
			t.Errorf("binding %s is there: %t, want %t", name, got, want)
		}
	}
}

// owned gives a tenant owners of the roles edit and view, and a repository.
func owned(a *v1alpha1.Tenant) {
	a.Spec.Owners = []v1alpha1.Owner{{Kind: "Group", Name: "devs", Role: "edit"}, {Kind: "User", Name: "ann"}}
	a.Spec.Repository = &v1alpha1.TenantRepository{URL: "https://git.example.com/acme.git"}
}

func TestOwnersMayRequestSomethingOfTheirRepositoryByTheirRole(t *testing.T) {
	admin := func(a *v1alpha1.Tenant) {
		a.Spec.Owners = append(a.Spec.Owners, v1alpha1.Owner{Kind: "User", Name: "lea", Role: "admin"})
	}
	all := map[string][]string{"edit": {"devs", "patch"}, "admin": {"lea", "patch", "confirm"}}
	for name, c := range map[string]struct {
		tenant    *v1alpha1.Tenant
		unlimited bool
		want      map[string][]string
	}{
		"both roles":                 {acme(owned, admin), false, all},
		"nobody is an admin":         {acme(owned), false, map[string][]string{"edit": all["edit"]}},
		"there is no repository":     {acme(owned, admin, func(a *v1alpha1.Tenant) { a.Spec.Repository = nil }), false, nil},
		"no policy limits the verbs": {acme(owned, admin), true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.OwnerRequests = true
			// What an earlier Reconcile granted goes when it is not to be there any more.
			if err := b.grant(t.Context(), b.newScope(acme(owned, admin))); err != nil {
				t.Fatal(err)
			}
			b.OwnerRequests = !c.unlimited
			if err := b.grant(t.Context(), b.newScope(c.tenant)); err != nil {
				t.Fatal(err)
			}
			for _, role := range []string{"edit", "admin"} {
				named := metav1.ObjectMeta{Name: "kubeop-tenant-acme-" + role}
				rules, binding := &rbacv1.ClusterRole{ObjectMeta: named}, &rbacv1.ClusterRoleBinding{ObjectMeta: named}
				var got []string
				if there, bound := b.get(rules), b.get(binding); there != bound {
					t.Errorf("%s: there is a role: %t, and a binding: %t", role, there, bound)
				} else if there {
					if len(rules.Rules) != 1 || !cmp.Equal(rules.Rules[0].Resources, []string{"repositories"}) || !cmp.Equal(rules.Rules[0].ResourceNames, []string{"acme"}) {
						t.Errorf("%s: rules %v", role, rules.Rules)
					}
					got = append([]string{binding.Subjects[0].Name}, rules.Rules[0].Verbs...)
				}
				if diff := cmp.Diff(c.want[role], got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", role, diff)
				}
			}
		})
	}
}

func TestFlowSchemasAreOfTheTenantsProjects(t *testing.T) {
	for name, c := range map[string]struct {
		on       bool
		projects []client.Object
		want     []string
	}{
		"turned off":  {projects: []client.Object{project("acme", "shop", nil)}},
		"no projects": {on: true},
		"two": {on: true, projects: []client.Object{project("acme", "shop", nil), project("acme", "blog", nil), project("rival", "shop", nil)},
			want: []string{"kubeop-acme-blog", "kubeop-acme-shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, c.projects...)
			b.FlowControl = c.on
			tenant := acme(func(a *v1alpha1.Tenant) {
				a.Spec.HomeQuota = corev1.ResourceList{"count/configmaps": resource.MustParse("7")}
			})
			if err := b.guard(t.Context(), b.newScope(tenant)); err != nil {
				t.Fatal(err)
			}
			var got []string
			if flows := (&flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-tenant-acme"}}); b.get(flows) {
				for _, subject := range flows.Spec.Rules[0].Subjects {
					got = append(got, subject.ServiceAccount.Namespace)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			bound := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: guardName}}
			if !b.get(bound) {
				t.Fatal("the home has no quota")
			}
			if most := bound.Spec.Hard["count/configmaps"]; most.Value() != 7 {
				t.Errorf("the home's quota is %v", bound.Spec.Hard)
			}
		})
	}
}

func following() *v1alpha1.Tenant {
	return acme(func(a *v1alpha1.Tenant) {
		a.Spec.Repository = &v1alpha1.TenantRepository{
			URL: "https://git.example.com/acme/apps", Ref: &sourcev1.GitRepositoryRef{Branch: "main"}, Path: "deploy", Interval: metav1.Duration{Duration: 3 * time.Minute},
			SecretRef: &v1alpha1.LocalSecretReference{Name: "git"}, HookSecretRef: &v1alpha1.LocalSecretReference{Name: "hook"},
			History: v1alpha1.HistoryAny, Verify: &v1alpha1.GitVerification{SecretRef: v1alpha1.LocalSecretReference{Name: "keys"}},
			CommitStatus: &v1alpha1.CommitStatus{Type: "gitea"}, Previews: v1alpha1.PreviewsPlan,
		}
	})
}

func TestATenantHasTheRepositoryThatItsSpecNames(t *testing.T) {
	tenant := following()
	ours := map[string]string{v1alpha1.RepositoryLabel: "acme"}
	b := newFixture(t, project("acme", "shop", ours), project("acme", "blog", map[string]string{v1alpha1.RepositoryLabel: "platform"}))
	reconcileOnce := func() *scope {
		t.Helper()
		s := b.newScope(tenant)
		if err := errors.Join(b.guard(t.Context(), s), b.applyRepository(t.Context(), s)); err != nil {
			t.Fatal(err)
		}
		s.Record()
		return s
	}
	if s := reconcileOnce(); s.projects != 2 || s.unfollowed != 0 || tenant.Status.Projects != 2 || tenant.Status.Namespace != "kubeop-acme" {
		t.Errorf("%d projects, %d unfollowed, status %+v", s.projects, s.unfollowed, tenant.Status)
	}
	repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	if !b.get(repository) {
		t.Fatal("there is no repository")
	}
	bound := tenant.Spec.Repository
	want := v1alpha1.RepositorySpec{
		URL: bound.URL, Ref: bound.Ref, Path: bound.Path, Tenant: "acme", SecretRef: bound.SecretRef, HookSecretRef: bound.HookSecretRef,
		History: bound.History, Verify: bound.Verify, CommitStatus: bound.CommitStatus, Previews: v1alpha1.PreviewsPlan,
	}
	want.Interval = bound.Interval
	if diff := cmp.Diff(want, repository.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if len(repository.Finalizers) != 1 || repository.Labels[v1alpha1.TenantLabel] != "acme" {
		t.Errorf("finalizers %v, labels %v", repository.Finalizers, repository.Labels)
	}
	if _, there := repository.Labels[v1alpha1.FrozenLabel]; there {
		t.Error("the repository is labelled as frozen")
	}
	b.FlowControl = true
	reconcileOnce()
	flows := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-tenant-acme"}}
	if !b.get(flows) {
		t.Fatal("there is no flow schema")
	}
	b.FlowControl = false
	if reconcileOnce(); b.get(flows) {
		t.Error("the flow schema is there after it was turned off")
	}
	tenant.Spec.Frozen = true
	s := reconcileOnce()
	if !b.get(repository) || repository.Labels[v1alpha1.FrozenLabel] != "true" || s.Heading() != "Frozen by administrators; " {
		t.Errorf("of a frozen tenant: labels %v, heading %q", repository.Labels, s.Heading())
	}
	tenant.Spec.Repository = nil
	if s := reconcileOnce(); s.unfollowed != 1 || s.projects != 2 {
		t.Errorf("%d of %d projects have lost their repository, want 1 of 2", s.unfollowed, s.projects)
	}
	if b.get(repository) && repository.DeletionTimestamp == nil {
		t.Error("the repository is still there")
	}
	if p := project("acme", "shop", nil); !b.get(p) || p.DeletionTimestamp != nil {
		t.Error("what it declared has to stay")
	}
}

func TestTheTenantsOwnRepositoryGoesBeforeItsProjects(t *testing.T) {
	repository := func(name, tenant string) *v1alpha1.Repository {
		return &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RepositorySpec{Tenant: tenant}}
	}
	for name, c := range map[string]struct {
		there   *v1alpha1.Repository
		want    string
		deleted []string
	}{
		"its own":                          {repository("acme", "acme"), "waits Deleting: repository acme is being deleted, after 1s", []string{"acme"}},
		"of its name, of another tenant":   {repository("acme", "rival"), "done", nil},
		"of its name, of administrators":   {repository("acme", ""), "done", nil},
		"another name for the same tenant": {repository("other", "acme"), "done", nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, c.there)
			if got := steptest.Outcome(t, b.removeRepository(t.Context(), b.newScope(acme(deletedTenant)))); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if diff := cmp.Diff(c.deleted, b.deleted); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
		})
	}
	b := newFixture(t)
	b.Client = interceptor.NewClient(b.api, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errAway
	}})
	if got := steptest.Outcome(t, b.removeRepository(t.Context(), b.newScope(acme(deletedTenant)))); !strings.HasPrefix(got, "failed Failed: reading repository acme: ") {
		t.Errorf("one that cannot be read: %q", got)
	}
}

func TestTheHomeIsRestrictedAndRemovedWithItsTenant(t *testing.T) {
	size := resource.MustParse("1Ki")
	tenant := acme(owned, func(a *v1alpha1.Tenant) { a.Spec.PodSecurity, a.Spec.MaxObjectSize = "privileged", &size })
	b := newFixture(t)
	if err := b.makeNamespace(t.Context(), b.newScope(tenant)); err != nil {
		t.Fatal(err)
	}
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-acme"}}
	if !b.get(home) || home.Labels["pod-security.kubernetes.io/enforce"] != "restricted" || home.Annotations[v1alpha1.MaxObjectSizeAnnotation] != "1024" {
		t.Errorf("the home is %v, %v", home.Labels, home.Annotations)
	}
	if home.Labels[v1alpha1.TenantLabel] != "acme" || home.Annotations[v1alpha1.TenantUIDAnnotation] != "uid-1" || home.Annotations[v1alpha1.TenantIdentityAnnotation] != namespace.Identity(tenant) {
		t.Errorf("its owner is %v, %v", home.Labels, home.Annotations)
	}
	if _, frozen := home.Labels[v1alpha1.FrozenLabel]; frozen {
		t.Error("the home is frozen")
	}
	tenant.Spec.Frozen = true
	if err := b.makeNamespace(t.Context(), b.newScope(tenant)); err != nil {
		t.Fatal(err)
	}
	if b.get(home); home.Labels[v1alpha1.FrozenLabel] != "true" {
		t.Errorf("of a frozen tenant: %v", home.Labels)
	}
	deletedTenant(tenant)
	for _, want := range []string{"waits Deleting: namespace kubeop-acme is being deleted, after 1s", "done"} {
		if got := steptest.Outcome(t, b.removeNamespace(t.Context(), b.newScope(tenant))); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestTheHomeStaysWithDataThatMayNotBeDeleted: nobody expects claims there, but administrators may have created one.
func TestTheHomeStaysWithDataThatMayNotBeDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		policy    v1alpha1.ClaimDeletionPolicy
		deletion  v1alpha1.DeletionPolicy
		confirmed string
		stays     bool
	}{
		"no policy":                             {confirmed: "claim-1", stays: true},
		"nobody confirmed it":                   {policy: v1alpha1.ClaimDelete, stays: true},
		"another claim is confirmed":            {policy: v1alpha1.ClaimDelete, confirmed: "claim-2", stays: true},
		"confirmed":                             {policy: v1alpha1.ClaimDelete, confirmed: "claim-1"},
		"confirmed, but the tenant is orphaned": {policy: v1alpha1.ClaimDelete, confirmed: "claim-1", deletion: v1alpha1.DeletionOrphan, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "data", UID: "claim-1"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}
			tenant := acme(deletedTenant, func(a *v1alpha1.Tenant) {
				a.Annotations = map[string]string{v1alpha1.ConfirmedClaimsAnnotation: deletedAt.Format(time.RFC3339) + " " + c.confirmed}
				a.Spec.ClaimDeletionPolicy, a.Spec.DeletionPolicy = c.policy, c.deletion
			})
			b := newFixture(t, claim)
			if err := b.makeNamespace(t.Context(), b.newScope(acme())); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := b.removeNamespace(t.Context(), b.newScope(tenant)); err != nil && !step.Waits(err) {
					t.Fatal(err)
				}
			}
			if stays := b.get(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-acme"}}); stays != c.stays {
				t.Errorf("the namespace stays: %t, want %t", stays, c.stays)
			}
		})
	}
}

func TestAnObjectWakesTheTenantItWasMadeForWhereItsLabelsFit(t *testing.T) {
	in := func(namespace, tenant, project string) client.Object {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x", Labels: map[string]string{}}}
		for label, value := range map[string]string{v1alpha1.TenantLabel: tenant, v1alpha1.ProjectLabel: project} {
			if value != "" {
				o.Labels[label] = value
			}
		}
		return o
	}
	want := []reconcile.Request{{NamespacedName: client.ObjectKey{Name: "acme"}}}
	for name, c := range map[string]struct {
		object     client.Object
		made, back []reconcile.Request
	}{
		"in its home":          {in("kubeop-acme", "acme", ""), want, want},
		"of the cluster":       {in("", "acme", ""), want, want},
		"of a project":         {in("kubeop-acme", "acme", "shop"), nil, want},
		"in another namespace": {in("kubeop-rival", "acme", ""), nil, want},
		"without labels":       {in("kubeop-", "", ""), nil, nil},
	} {
		if diff := cmp.Diff(c.made, madeFor(t.Context(), c.object)); diff != "" {
			t.Errorf("%s, made for it (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.back, tenantOf(t.Context(), c.object)); diff != "" {
			t.Errorf("%s, of it (-want +got):\n%s", name, diff)
		}
	}
}
