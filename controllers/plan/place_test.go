package plan

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// placed finds where an app of a namespace would be delivered, in a cluster with some objects. The commit declares nothing.
func placed(t *testing.T, namespace string, fault func(client.Object) error, there ...client.Object) (*delivery, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(there...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if err := fault(o); err != nil {
				return err
			}
			return c.Get(ctx, key, o, options...)
		},
	}).Build()
	k := &cluster{&Connection{Renderer: &Renderer{
		Clients: kube.NewClients(&rest.Config{}, scheme, c.RESTMapper(), kube.Deployers{PlatformApps: kube.PlatformAppsClusterAdmin}),
	}}, c}
	d := &delivery{app: &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}}
	return d, k.place(t.Context(), &comparison{client: c, repository: &v1alpha1.Repository{}, tree: &tree.Tree{}}, d)
}

// TestAPlanKnowsThePoliciesOfANamespace: those of the commit in the platform repository, and otherwise those that hold now. What does not exist,
// because the project is new, is left to the operator.
func TestAPlanKnowsThePoliciesOfANamespace(t *testing.T) {
	shop := v1alpha1.ProjectNamespace("acme", "shop")
	live := &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: v1alpha1.GuardrailsName}, Spec: v1alpha1.GuardrailsSpec{
		Deny: []v1alpha1.AppliedPolicy{{Policy: "live"}},
	}}
	unread := schema.GroupResource{Group: v1alpha1.Group, Resource: "guardrails"}
	for name, tc := range map[string]struct {
		tenant string
		there  []client.Object
		err    error
		want   string
	}{
		"of a tenant's repository": {"acme", []client.Object{live}, nil, "live"},
		"of a new project":         {"acme", nil, nil, "unknown"},
		"without the right":        {"acme", nil, apierrors.NewForbidden(unread, "kubeop", errors.New("no")), `reading the guardrails of namespace kubeop-acme-shop: guardrails.paas.kubeop.io "kubeop" is forbidden: no`},
		"of an older operator":     {"acme", nil, &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Guardrails"}}, "unknown"},
		"that cannot be read":      {"acme", nil, errors.New("away"), "reading the guardrails of namespace kubeop-acme-shop: away"},
		"of the platform's":        {"", []client.Object{live}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.there...).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if tc.err != nil {
						return tc.err
					}
					return c.Get(ctx, key, o, options...)
				},
			}).Build()
			repository := &v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{Tenant: tc.tenant}}
			rules, err := rulesFor(t.Context(), &comparison{client: c, repository: repository, tree: &tree.Tree{}}, &v1alpha1.Tenant{}, shop)
			got := "unknown"
			switch {
			case err != nil:
				got = err.Error()
			case rules != nil:
				got = ""
				for _, p := range rules.Deny {
					got += p.Policy
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestAPlanHasTheTermsOfTheProject: NetworkPolicies and defaults of containers, as the project of the commit says. What they may open is what it was so far.
func TestAPlanHasTheTermsOfTheProject(t *testing.T) {
	most := v1alpha1.AppliedLimits{Policy: "most", LimitRules: v1alpha1.LimitRules{Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}
	ofProject := func(cpu string) v1alpha1.AppliedLimits {
		return v1alpha1.AppliedLimits{Policy: guardrails.ProjectFile, LimitRules: v1alpha1.LimitRules{Default: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}
	}
	was := &v1alpha1.AllowedNetwork{Policies: v1alpha1.PlatformNetworkPolicies, From: []map[string]string{{"a": "b"}}}
	for name, c := range map[string]struct {
		project string
		rules   *v1alpha1.GuardrailsSpec
		want    *v1alpha1.GuardrailsSpec
	}{
		"no, in a new project": {"", nil, nil},
		"no":                   {"", &v1alpha1.GuardrailsSpec{}, &v1alpha1.GuardrailsSpec{}},
		"in a new project":     {"spec: {network: {policies: Own}}\n", nil, &v1alpha1.GuardrailsSpec{Network: &v1alpha1.AllowedNetwork{Policies: "Own"}}},
		"for the first time":   {"spec: {network: {policies: Own}}\n", &v1alpha1.GuardrailsSpec{}, &v1alpha1.GuardrailsSpec{Network: &v1alpha1.AllowedNetwork{Policies: "Own"}}},
		"again":                {"spec: {network: {policies: Own}}\n", &v1alpha1.GuardrailsSpec{Network: was}, &v1alpha1.GuardrailsSpec{Network: &v1alpha1.AllowedNetwork{Policies: "Own", From: was.From}}},
		"other defaults":       {"spec: {limits: {default: {cpu: 2}}}\n", &v1alpha1.GuardrailsSpec{Limits: []v1alpha1.AppliedLimits{most, ofProject("1")}}, &v1alpha1.GuardrailsSpec{Limits: []v1alpha1.AppliedLimits{most, ofProject("2")}}},
		"no longer":            {"", &v1alpha1.GuardrailsSpec{Network: was}, &v1alpha1.GuardrailsSpec{Network: &v1alpha1.AllowedNetwork{From: was.From}}},
	} {
		t.Run(name, func(t *testing.T) {
			of := compared(t, v1alpha1.TenantLimits{}, map[string]string{"projects/shop/project.yaml": c.project})
			if diff := cmp.Diff(c.want, Opening(of.tree, identity.Ref{Tenant: "acme", Project: "shop"}, c.rules)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnAppIsHomelessUntilItsNamespaceExists(t *testing.T) {
	shop, platform := v1alpha1.ProjectNamespace("acme", "shop"), v1alpha1.ProjectNamespace(v1alpha1.PlatformTenant, "dns")
	away := errors.New("away")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: platform, UID: "n"}}
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop", UID: "p"}}
	for name, tc := range map[string]struct {
		namespace string
		there     []client.Object
		fault     func(client.Object) bool
		homeless  bool
		fails     string
	}{
		"a project that exists":                 {shop, []client.Object{project}, nil, false, ""},
		"a project that is new":                 {shop, nil, nil, true, ""},
		"a project that cannot be read":         {shop, nil, func(o client.Object) bool { _, is := o.(*v1alpha1.Project); return is }, false, "reading Project kubeop-acme/shop: away"},
		"a tenant that cannot be read":          {shop, nil, func(o client.Object) bool { _, is := o.(*v1alpha1.Tenant); return is }, false, "reading Tenant acme: away"},
		"a namespace of the platform":           {platform, []client.Object{namespace}, nil, false, ""},
		"a new namespace of the platform":       {platform, nil, nil, true, ""},
		"a namespace of it that is not read":    {platform, nil, func(o client.Object) bool { _, is := o.(*corev1.Namespace); return is }, false, "reading namespace " + platform + ": away"},
		"a project without a platform's object": {platform, []client.Object{project}, nil, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := placed(t, tc.namespace, func(o client.Object) error {
				if tc.fault != nil && tc.fault(o) {
					return away
				}
				return nil
			}, tc.there...)
			if (err != nil) != (tc.fails != "") || err != nil && err.Error() != tc.fails {
				t.Fatalf("the error is %v, want %q", err, tc.fails)
			}
			if err == nil && (d.homeless != tc.homeless || d.at.Client == nil || d.at.Owner.Namespace != tc.namespace) {
				t.Errorf("homeless: %t, of %+v", d.homeless, d.at.Owner)
			}
		})
	}
}
