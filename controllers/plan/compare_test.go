package plan

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// applied is the metadata of an object that the repository acme declares.
func applied(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.RepositoryLabel: "acme", v1alpha1.TenantLabel: "acme"},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: v1alpha1.GroupVersion.String(), FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1("{}"),
		}},
	}
}

func newProject(name string) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: applied(v1alpha1.HomeNamespace("acme"), name)}
}

func newApp(project, name string) *v1alpha1.App {
	return &v1alpha1.App{ObjectMeta: applied(v1alpha1.ProjectNamespace("acme", project), name), Spec: v1alpha1.AppSpec{
		Type: v1alpha1.AppRaw, Raw: &v1alpha1.RawSource{Path: "."},
	}}
}

// compared compares a commit of the tenant acme, whose tenant has limits, with objects in the cluster.
func compared(t *testing.T, limits v1alpha1.TenantLimits, files map[string]string, there ...client.Object) *comparison {
	t.Helper()
	return comparedIn(t, "acme", limits, files, there...)
}

// comparedIn compares a commit of the repository of a tenant, or of the platform's for "".
func comparedIn(t *testing.T, of string, limits v1alpha1.TenantLimits, files map[string]string, there ...client.Object) *comparison {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{Limits: limits}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(append(there, tenant)...).Build()
	commit := fstest.MapFS{"kubeop.yaml": {Data: []byte("layout: v1\n")}}
	for name, spec := range files {
		dir, file := path.Split(name)
		kind := map[string]string{"project.yaml": v1alpha1.ProjectKind, "app.yaml": v1alpha1.AppKind, "tenant.yaml": v1alpha1.TenantKind}[file]
		commit[name] = &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: %s\nkind: %s\nmetadata: {name: %s}\n%s", v1alpha1.GroupVersion, kind, path.Base(dir), spec)}
	}
	p := &Planner{Client: c, Direct: c, Limits: budget.Default()}
	repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{Tenant: of}}
	got, err := p.compare(t.Context(), repository, Commit{Revision: "main@sha1:1", Root: folder.FromFS(commit).Folder(".")})
	if err != nil {
		t.Fatal(err)
	}
	got.tree.All(func(problem tree.Problem) bool {
		t.Error(problem)
		return true
	})
	return got
}

// TestPreviewsAreNotPartOfACommit: other branches declare them, so a plan does not delete them.
func TestPreviewsAreNotPartOfACommit(t *testing.T) {
	preview, leaving, byHand := newProject("shop-pr-x"), newProject("leaving"), newProject("by-hand")
	preview.Annotations = map[string]string{v1alpha1.PreviewOfAnnotation: "shop"}
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{"example.com/wait"}
	byHand.ManagedFields = nil
	c := compared(t, v1alpha1.TenantLimits{}, nil, newProject("shop"), preview, leaving, byHand)
	got := slices.Collect(maps.Keys(c.there))
	if want := (identity.Ref{Tenant: "acme", Project: "shop"}); !slices.Equal(got, []identity.Ref{want}) {
		t.Errorf("the commit's objects are %v, want only %s", got, want)
	}
	if len(c.listed) != 4 {
		t.Errorf("%d objects count, want 4", len(c.listed))
	}
}

// TestObjectsAboveALimitAreRefused, in the order of Git, as by the operator. An object that the commit deletes makes room.
func TestObjectsAboveALimitAreRefused(t *testing.T) {
	const app = "spec: {type: Image, image: {reference: nginx:1}}\n"
	const update = "update Project kubeop-acme/shop"
	two := int32(2)
	preview := newProject("shop-pr-x")
	preview.Annotations = map[string]string{v1alpha1.PreviewOfAnnotation: "shop"}
	for name, tc := range map[string]struct {
		limits v1alpha1.TenantLimits
		files  map[string]string
		there  []client.Object
		want   []string
		apps   []string // those that are delivered
	}{
		"room": {
			files: map[string]string{"projects/shop/project.yaml": "", "projects/shop/apps/web/app.yaml": app},
			want:  []string{"create Project kubeop-acme/shop", "create App kubeop-acme-shop/web"}, apps: []string{"web"},
		},
		"an app too many": {
			limits: v1alpha1.TenantLimits{Apps: &two}, there: []client.Object{newProject("shop"), newApp("shop", "web")},
			files: map[string]string{"projects/shop/project.yaml": "", "projects/shop/apps/a/app.yaml": app, "projects/shop/apps/b/app.yaml": app, "projects/shop/apps/web/app.yaml": app},
			want:  []string{update, "create App kubeop-acme-shop/a", "refuse App kubeop-acme-shop/b: apps of all projects of tenant acme, with this one: 3, and the limit is 2", "update App kubeop-acme-shop/web"},
			apps:  []string{"a", "web"},
		},
		"another is deleted": {
			limits: v1alpha1.TenantLimits{Apps: &two}, there: []client.Object{newProject("shop"), newApp("shop", "old"), newApp("shop", "web")},
			files: map[string]string{"projects/shop/project.yaml": "", "projects/shop/apps/a/app.yaml": app, "projects/shop/apps/web/app.yaml": app},
			want:  []string{update, "create App kubeop-acme-shop/a", "update App kubeop-acme-shop/web", "delete App kubeop-acme-shop/old"}, apps: []string{"a", "web"},
		},
		"a project too many, with its apps": {
			limits: v1alpha1.TenantLimits{Projects: &two}, there: []client.Object{newProject("shop"), preview},
			files: map[string]string{"projects/shop/project.yaml": "", "projects/team/project.yaml": "", "projects/team/apps/web/app.yaml": app},
			want: []string{
				update, "refuse Project kubeop-acme/team: projects of tenant acme, with this one: 3, and the limit is 2",
				"refuse App kubeop-acme-team/web: its Project kubeop-acme/team is refused",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := compared(t, tc.limits, tc.files, tc.there...)
			changes, _, err := c.changes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got, apps []string
			for _, change := range changes {
				why, _, _ := strings.Cut(change.Why, ";")
				got = append(got, strings.TrimSuffix(string(change.Action)+" "+change.Object+": "+why, ": "))
			}
			for _, app := range c.apps {
				apps = append(apps, app.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if !slices.Equal(apps, tc.apps) {
				t.Errorf("delivered are %v, want %v", apps, tc.apps)
			}
		})
	}
}

// TestTenantsKeepTheDomainsThatTheyHaveInThePlan, as in the cluster: comparedIn reports files that are refused.
func TestTenantsKeepTheDomainsThatTheyHaveInThePlan(t *testing.T) {
	tenant := func(name, domain string) *v1alpha1.Tenant {
		return &v1alpha1.Tenant{ObjectMeta: applied("", name), Spec: v1alpha1.TenantSpec{Domains: []string{domain}}}
	}
	comparedIn(t, "", v1alpha1.TenantLimits{}, map[string]string{
		"tenants/one/tenant.yaml": "spec: {domains: [example.com], weight: 2}\n", "tenants/two/tenant.yaml": "spec: {domains: [a.example.com]}\n",
	}, tenant("one", "example.com"), tenant("two", "a.example.com"))
}

// TestPoliciesArePlannedLikeTenants: those of the platform repository are compared, too, in the order in which the operator applies and deletes them.
func TestPoliciesArePlannedLikeTenants(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	meta := func(name string) metav1.ObjectMeta {
		of := applied("", name)
		of.Labels = map[string]string{v1alpha1.RepositoryLabel: "platform"}
		return of
	}
	policy := func(name string, byDefault bool) *v1alpha1.Policy {
		return &v1alpha1.Policy{ObjectMeta: meta(name), Spec: v1alpha1.PolicySpec{Default: byDefault}}
	}
	tenant := func(name string, policies ...string) *v1alpha1.Tenant {
		return &v1alpha1.Tenant{ObjectMeta: meta(name), Spec: v1alpha1.TenantSpec{Policies: policies}}
	}
	commit := fstest.MapFS{}
	for name, text := range map[string]string{
		"kubeop.yaml": "layout: v1\n", "policies/changed.yaml": "kind: Policy\nmetadata: {name: changed}\nspec: {default: true}\n", "policies/new.yaml": "kind: Policy\nmetadata: {name: new}\n",
		"tenants/acme/tenant.yaml": "kind: Tenant\nmetadata: {name: acme}\nspec: {policies: [new]}\n", "tenants/beta/tenant.yaml": "kind: Tenant\nmetadata: {name: beta}\n",
	} {
		if name != "kubeop.yaml" {
			text = "apiVersion: " + v1alpha1.GroupVersion.String() + "\n" + text
		}
		commit[name] = &fstest.MapFile{Data: []byte(text)}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(
		policy("changed", false), policy("idle", false), policy("formerly", false), policy("usual", true), tenant("acme", "formerly"), tenant("beta")).Build()
	p := &Planner{Client: c, Direct: c, Limits: budget.Default()}
	repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "platform"}}
	compared, err := p.compare(t.Context(), repository, Commit{Revision: "main@sha1:1", Root: folder.FromFS(commit).Folder(".")})
	if err != nil {
		t.Fatal(err)
	}
	changes, held, err := compared.changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, change := range changes {
		got = append(got, strings.TrimSpace(fmt.Sprint(change.Action, " ", change.Object, " ", change.Why)))
	}
	want := []string{
		"update Policy changed", "create Policy new", "update Tenant acme", "update Tenant beta",
		"delete Policy formerly", "delete Policy idle", "hold Policy usual it removes a policy that 1 tenant is under",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("planned (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Policy usual: 1 tenant is under it"}, held); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
}
