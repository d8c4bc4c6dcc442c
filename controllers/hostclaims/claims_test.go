package hostclaims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/hostname"
	"github.com/kubeop/kubeop/delivery/own"
)

var (
	shop = own.Owner{Tenant: "acme", Project: "shop", App: "web", Namespace: "kubeop-acme-shop"}
	blog = own.Owner{Tenant: "acme", Project: "blog", App: "web", Namespace: "kubeop-acme-blog"}
	beta = own.Owner{Tenant: "beta", Project: "shop", App: "web", Namespace: "kubeop-beta-shop"}
)

// fixture has claims over a fake API server that counts writes.
type fixture struct {
	*Claims
	t      *testing.T
	api    client.WithWatch
	clock  *clocktesting.FakeClock
	writes int
	woken  []string
	// before is called before a request, with its verb; its error is the answer.
	before func(verb string, o any) error
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := &fixture{t: t, clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), before: func(string, any) error { return nil }}
	for _, owner := range []own.Owner{shop, blog, beta} {
		objects = append(objects, &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: v1alpha1.GuardrailsName}},
			&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace(owner.Tenant), Name: owner.Project}})
	}
	mapper := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for kind := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if kind.Kind == v1alpha1.HostnameClaimKind || kind.Kind == "Namespace" || kind.Kind == v1alpha1.TenantKind {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	b.api = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := b.before("get", o); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := b.before("list", list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			b.writes++
			if err := b.before("create", o); err != nil {
				return err
			}
			if o.GetCreationTimestamp().Time.IsZero() {
				o.SetCreationTimestamp(metav1.Unix(100, 0))
				o.SetUID(types.UID(o.GetName()))
			}
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			b.writes++
			if err := b.before("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	}).Build()
	b.Claims = &Claims{Client: b.api, Direct: b.api, Clock: b.clock, WakeProject: func(key types.NamespacedName) { b.woken = append(b.woken, key.String()) }}
	return b
}

// held is a claim that kubeop made, or a person.
func held(name string, of own.Owner, byHand bool, created int64) *v1alpha1.HostnameClaim {
	claim := &v1alpha1.HostnameClaim{
		ObjectMeta: metav1.ObjectMeta{Name: hostname.ClaimName(name), UID: types.UID(name), CreationTimestamp: metav1.Unix(created, 0)},
		Spec:       v1alpha1.HostnameClaimSpec{Hostname: name, Tenant: of.Tenant, Project: of.Project},
	}
	if !byHand {
		claim.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.FieldManager}
	}
	return claim
}

// ingress is an Ingress with hosts.
func ingress(namespace string, hosts ...string) *unstructured.Unstructured {
	var rules []any
	for _, host := range hosts {
		rules = append(rules, map[string]any{"host": host})
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"rules": rules}}}
	o.SetAPIVersion("networking.k8s.io/v1")
	o.SetKind("Ingress")
	o.SetNamespace(namespace)
	o.SetName("web")
	return o
}

// claims claims hosts, and returns the error, "pending" while the Guardrails lack them, and "" for none.
func (b *fixture) claims(owner own.Owner, hosts ...string) string {
	b.t.Helper()
	err := b.Claim(b.t.Context(), owner, []*unstructured.Unstructured{ingress(owner.Namespace, hosts...)})
	switch {
	case err == nil:
		return ""
	case errors.As(err, new(*Pending)):
		return "pending"
	}
	return err.Error()
}

// lists writes the names of a project into its Guardrails, as its controller does, and returns them and when to look again.
func (b *fixture) lists(owner own.Owner) string {
	b.t.Helper()
	rules := &v1alpha1.Guardrails{}
	if err := b.api.Get(b.t.Context(), client.ObjectKey{Namespace: owner.Namespace, Name: v1alpha1.GuardrailsName}, rules); err != nil {
		b.t.Fatal(err)
	}
	names, again, err := b.Names(b.t.Context(), Project{Tenant: owner.Tenant, Name: owner.Project, Namespace: owner.Namespace, Listed: rules.Spec.Hostnames})
	if err != nil {
		return err.Error()
	}
	rules.Spec.Hostnames = &v1alpha1.ClaimedHostnames{Names: names}
	if err := b.api.Update(b.t.Context(), rules); err != nil {
		b.t.Fatal(err)
	}
	return fmt.Sprint(strings.Join(names, " "), " ", again)
}

// all are the claims, as "<name>=<tenant>/<project>".
func (b *fixture) all() string {
	b.t.Helper()
	list := &v1alpha1.HostnameClaimList{}
	if err := b.api.List(b.t.Context(), list); err != nil {
		b.t.Fatal(err)
	}
	var all []string
	for _, c := range list.Items {
		all = append(all, c.Name+"="+c.Spec.Tenant+"/"+c.Spec.Project)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestAHostIsClaimedOnce: all its spellings are one name, and what is claimed and listed is not written again.
func TestAHostIsClaimedOnce(t *testing.T) {
	b := newFixture(t)
	hosts := []string{"shop.example", "*.shop.example", "bücher.example", "XN--BCHER-KVA.example"}
	if got := b.claims(shop, hosts...); got != "pending" {
		t.Errorf("before the Guardrails have them: %s", got)
	}
	if got, want := b.lists(shop), "*.shop.example shop.example xn--bcher-kva.example 0s"; got != want {
		t.Errorf("the project has %s, want %s", got, want)
	}
	if got, want := b.all(), "shop.example=acme/shop wildcard--of.shop.example=acme/shop xn--bcher-kva.example=acme/shop"; got != want {
		t.Errorf("the claims are %s, want %s", got, want)
	}
	b.writes = 0
	if got := b.claims(shop, hosts...); got != "" || b.writes != 0 {
		t.Errorf("again: %q with %d writes", got, b.writes)
	}
	for _, want := range []string{"pending", ""} { // It waits until the cache has the claim.
		if got := b.claims(own.Owner{Tenant: v1alpha1.PlatformTenant, Project: "ingress", App: "a", Namespace: "ingress"}, "", "a_b", "console.example"); got != want {
			t.Errorf("the platform waits for Guardrails, or may not serve every name: got %q, want %q", got, want)
		}
	}
	if !strings.Contains(b.all(), "console.example=platform/ingress") {
		t.Errorf("the platform has no claim: %s", b.all())
	}
}

// owning is a tenant with a domain.
func owning(name string, created int64, domain string) *v1alpha1.Tenant {
	return &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(created, 0)}, Spec: v1alpha1.TenantSpec{Domains: []string{domain}}}
}

func TestHostsOfOthersAreRefused(t *testing.T) {
	const remedy = "; choose another one in Git, or ask an administrator of the cluster, to whom kubectl get hostnameclaims shows which tenant has it"
	const free = "; choose another one in Git, or ask an administrator of the cluster to free it with: kubectl delete hostnameclaim a.example"
	for name, c := range map[string]struct {
		claims []client.Object
		hosts  []string
		want   string
	}{
		"of another tenant":                                 {[]client.Object{held("a.example", beta, false, 1)}, []string{"A.example."}, "Ingress/web has the host A.example., which another tenant has" + remedy},
		"of another project":                                {[]client.Object{held("a.example", blog, true, 1)}, []string{"a.example"}, "Ingress/web has the host a.example, which project blog of this tenant has; remove it there, or choose another one, in Git"},
		"below a wildcard of another tenant":                {[]client.Object{held("*.example", beta, false, 1)}, []string{"a.b.example"}, "Ingress/web has the host a.b.example, which another tenant has with a wildcard" + remedy},
		"a wildcard below one of another tenant":            {[]client.Object{held("*.example", beta, true, 1)}, []string{"*.b.example"}, "Ingress/web has the host *.b.example, which another tenant has with a wildcard" + remedy},
		"a wildcard over another tenant":                    {[]client.Object{held("a.b.example", beta, false, 1)}, []string{"*.example"}, "Ingress/web has the host *.example, which has names that another tenant has" + remedy},
		"every name":                                        {nil, []string{""}, "Ingress/web serves every host name, because it has a default backend, or a rule, route or listener without a host: name the host in Git"},
		"no name":                                           {nil, []string{"a_b.example"}, "Ingress/web has the host a_b.example, which is no host name; correct it in Git"},
		"a claim by hand for a project that does not exist": {[]client.Object{held("a.example", own.Owner{Tenant: "gone", Project: "shop"}, true, 1)}, []string{"a.example"}, "Ingress/web has the host a.example, which an administrator of the cluster keeps for a project that does not exist" + free},
		"a namespace that is still there": {[]client.Object{held("a.example", own.Owner{Tenant: "gone", Project: "shop"}, false, 1), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-gone-shop"}}},
			[]string{"a.example"}, "Ingress/web has the host a.example, which a project has that does not exist any more and whose namespace is left" + free},
		"in a domain of an older tenant": {[]client.Object{owning("beta", 1, "example"), owning("acme", 2, "a.example")}, []string{"b.a.example"},
			"Ingress/web has the host b.a.example, which is in a domain of another, older tenant; choose another one in Git, or ask an administrator of the cluster: the condition DomainsReady of the tenant says which domains overlap"},
		"in a domain of a younger tenant":             {[]client.Object{owning("beta", 2, "example"), owning("acme", 1, "a.example")}, []string{"b.a.example"}, "pending"},
		"in a domain of an older tenant, and its own": {[]client.Object{owning("beta", 1, "example"), owning("acme", 2, "a.example"), held("b.a.example", shop, false, 1)}, []string{"b.a.example"}, "pending"},
		"a claim of a project of its own that is gone": {[]client.Object{held("a.example", own.Owner{Tenant: "acme", Project: "gone"}, false, 1), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-acme-gone"}}},
			[]string{"a.example"}, "Ingress/web has the host a.example, which a project has that does not exist any more and whose namespace is left" + free},

		"a claim that is left of a project":    {[]client.Object{held("a.example", own.Owner{Tenant: "gone", Project: "shop"}, false, 1)}, []string{"a.example"}, "pending"},
		"its own":                              {[]client.Object{held("a.example", shop, false, 1)}, []string{"a.example"}, "pending"},
		"below a wildcard of another project":  {[]client.Object{held("*.example", blog, false, 1)}, []string{"a.example"}, "pending"},
		"older than the other's wildcard":      {[]client.Object{held("a.example", shop, false, 1), held("*.example", beta, false, 2)}, []string{"a.example"}, "pending"},
		"reserved below the other's wildcard":  {[]client.Object{held("a.example", shop, true, 3), held("*.example", beta, false, 2)}, []string{"a.example"}, "pending"},
		"younger than the other's wildcard":    {[]client.Object{held("a.example", shop, false, 3), held("*.example", beta, false, 2)}, []string{"a.example"}, "Ingress/web has the host a.example, which another tenant has with a wildcard" + remedy},
		"beside a name with a similar ending":  {[]client.Object{held("*.a.example", beta, false, 1), held("b.evila.example", beta, false, 1)}, []string{"ba.example", "a.example"}, "pending"},
		"of nobody, with another that is held": {[]client.Object{held("a.example", beta, false, 1)}, []string{"b.example", "a.example"}, "Ingress/web has the host a.example, which another tenant has" + remedy},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, c.claims...)
			if got := b.claims(shop, c.hosts...); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if c.want != "pending" && strings.Contains(b.all(), "b.example=acme") {
				t.Errorf("a refused app claims: %s", b.all())
			}
		})
	}
}

// TestTheOlderClaimWinsARace: two tenants claim overlapping names before the cache has the claim of the other one.
func TestTheOlderClaimWinsARace(t *testing.T) {
	const remedy = "; choose another one in Git, or ask an administrator of the cluster, to whom kubectl get hostnameclaims shows which tenant has it"
	for name, c := range map[string]struct{ theirs, ours, first, want string }{
		"for a name":           {"a.example", "a.example", "Ingress/web has the host a.example, which another tenant has" + remedy, "Ingress/web has the host a.example, which another tenant has" + remedy},
		"under their wildcard": {"*.example", "a.example", "pending", "Ingress/web has the host a.example, which another tenant has with a wildcard" + remedy},
		"over their name":      {"a.example", "*.example", "pending", "Ingress/web has the host *.example, which has names that another tenant has" + remedy},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			late := b.lateCache()
			if err := b.api.Create(t.Context(), held(c.theirs, beta, false, 1)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got := b.claims(shop, c.ours); got != c.first {
					t.Errorf("before the cache has the claims: got %q, want %q", got, c.first)
				}
			}
			if got := b.lists(shop); got != " 0s" {
				t.Errorf("before the cache has the claims, the project has %q", got)
			}
			late.caughtUp()
			if got := b.lists(shop); got != " 0s" {
				t.Errorf("with a claim that is younger than theirs, the project has %q", got)
			}
			if got := b.claims(shop, c.ours); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := b.all(); got != hostname.ClaimName(c.theirs)+"=beta/shop" {
				t.Errorf("the claims are %s", got)
			}
			if got := b.OnDecided(t.Context(), held(c.theirs, beta, false, 1)); len(got) != 1 || got[0].Namespace != shop.Namespace || b.Freed(keyOf(shop)) != 1 {
				t.Errorf("their deletion wakes %v, and %d names became free", got, b.Freed(keyOf(shop)))
			}
		})
	}
}

// TestANameIsNotUsedBeforeTheCacheHasItsClaim, although the Guardrails still have the name from an earlier claim, and although the platform has no Guardrails.
func TestANameIsNotUsedBeforeTheCacheHasItsClaim(t *testing.T) {
	for name, owner := range map[string]own.Owner{
		"of a tenant":     shop,
		"of the platform": {Tenant: v1alpha1.PlatformTenant, Project: "ingress", App: "a", Namespace: "ingress"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.claims(shop, "a.example")
			b.lists(shop)
			if err := b.api.DeleteAllOf(t.Context(), &v1alpha1.HostnameClaim{}); err != nil {
				t.Fatal(err)
			}
			late := b.lateCache()
			for range 2 {
				if got := b.claims(owner, "a.example"); got != "pending" {
					t.Errorf("before the cache has the claim: %q", got)
				}
			}
			late.caughtUp()
			if got := b.claims(owner, "a.example"); got != "" {
				t.Errorf("when the cache has the claim: %q", got)
			}
		})
	}
}

// lateCache lets the cache show the claims of this moment until it has caught up.
func (b *fixture) lateCache() *lateCache {
	b.t.Helper()
	l := &lateCache{}
	if err := b.api.List(b.t.Context(), &l.claims); err != nil {
		b.t.Fatal(err)
	}
	b.Client = interceptor.NewClient(b.api, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			claim, is := o.(*v1alpha1.HostnameClaim)
			if !is || l.current {
				return api.Get(ctx, key, o, opts...)
			}
			at := slices.IndexFunc(l.claims.Items, func(c v1alpha1.HostnameClaim) bool { return c.Name == key.Name })
			if at < 0 {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "hostnameclaims"}, key.Name)
			}
			l.claims.Items[at].DeepCopyInto(claim)
			return nil
		},
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			claims, is := list.(*v1alpha1.HostnameClaimList)
			if !is || l.current {
				return api.List(ctx, list, opts...)
			}
			l.claims.DeepCopyInto(claims)
			return nil
		},
	})
	return l
}

// lateCache has the claims of a moment.
type lateCache struct {
	claims  v1alpha1.HostnameClaimList
	current bool
}

func (l *lateCache) caughtUp() { l.current = true }

func TestAProjectHasABoundedNumberOfHosts(t *testing.T) {
	var claims []client.Object
	for i := range v1alpha1.MaxHostnames {
		claims = append(claims, held(fmt.Sprintf("h%d.example", i), shop, true, 1))
	}
	b := newFixture(t, claims...)
	if got := b.claims(shop, "one.example", "h1.example"); got != "Ingress/web has the host one.example, which is one too many: a project can have 256 host names, and with those of this app it would have 257; use a wildcard, or move apps to another project, in Git" {
		t.Errorf("got %s", got)
	}
	if got := b.claims(shop, "h1.example"); got != "pending" {
		t.Errorf("one that it has: %s", got)
	}
}

// TestAnUnusedHostIsReleased after it has not been in the Guardrails for a while, and not while anything uses it.
func TestAnUnusedHostIsReleased(t *testing.T) {
	b := newFixture(t, held("hand.example", shop, true, 1))
	for _, hosts := range [][]string{{"a.example", "b.example"}, {"b.example"}} {
		b.claims(shop, hosts...)
		if got := b.lists(shop); got != "a.example b.example hand.example 0s" {
			t.Errorf("while it is being delivered the project has %s", got)
		}
	}
	live := ingress(shop.Namespace, "A.example")
	if err := b.api.Create(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	b.Delivered(keyOf(shop))
	b.Delivered(keyOf(shop))
	if !slices.Equal(b.woken, []string{"kubeop-acme/shop"}) {
		t.Errorf("%v were woken", b.woken)
	}
	if got := b.lists(shop); got != "a.example b.example hand.example 2s" {
		t.Errorf("with an Ingress that has it: %s", got)
	}
	if err := b.api.Delete(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "b.example hand.example 2s"}, {time.Second, "b.example hand.example 1s"}, {time.Second, "b.example hand.example 0s"}} {
		b.clock.Step(step.after)
		if !strings.Contains(b.all(), "a.example=") {
			t.Fatal("it was released before the time")
		}
		if got := b.lists(shop); got != step.want {
			t.Errorf("after %s the project has %s, want %s", step.after, got, step.want)
		}
	}
	if got, want := b.all(), "b.example=acme/shop hand.example=acme/shop"; got != want {
		t.Errorf("the claims are %s, want %s", got, want)
	}
	b.Forget(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.App}})
	if err := b.Release(t.Context(), Project{Tenant: "acme", Name: "shop", Namespace: shop.Namespace}); err != nil {
		t.Fatal(err)
	}
	if got, want := b.all(), "hand.example=acme/shop"; got != want {
		t.Errorf("without the project the claims are %s, want %s", got, want)
	}
}

// TestAHostThatIsAskedForAgainStays: its time begins anew.
func TestAHostThatIsAskedForAgainStays(t *testing.T) {
	b := newFixture(t)
	b.claims(shop, "a.example")
	b.lists(shop)
	b.claims(shop)
	b.Delivered(keyOf(shop))
	b.lists(shop)
	b.clock.Step(5 * time.Second)
	if got := b.claims(shop, "a.example"); got != "pending" {
		t.Errorf("while it is not in the Guardrails: %q", got)
	}
	if got := b.OnListed(t.Context(), &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace}}); len(got) != 1 {
		t.Errorf("the Guardrails wake %v", got)
	}
	if got := b.lists(shop); got != "a.example 0s" {
		t.Errorf("the project has %s", got)
	}
	if got := b.claims(shop, "a.example"); got != "" {
		t.Error(got)
	}
	b.claims(shop)
	b.Delivered(keyOf(shop))
	if got := b.OnListed(t.Context(), &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace}}); len(got) != 0 {
		t.Errorf("the Guardrails wake an app that waits for nothing: %v", got)
	}
	if got := b.lists(shop); got != " 2s" {
		t.Errorf("the project has %s", got)
	}
}

func TestOnlyChangedRulesWakeAllAppsOfAProject(t *testing.T) {
	is := func(change func(*v1alpha1.GuardrailsSpec)) bool {
		was, is := &v1alpha1.Guardrails{}, &v1alpha1.Guardrails{}
		change(&is.Spec)
		return RulesChanged.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is})
	}
	if is(func(*v1alpha1.GuardrailsSpec) {}) || is(func(s *v1alpha1.GuardrailsSpec) { s.Hostnames = &v1alpha1.ClaimedHostnames{} }) {
		t.Error("host names of another app wake it")
	}
	if !is(func(s *v1alpha1.GuardrailsSpec) { s.Deny = []v1alpha1.AppliedPolicy{{Policy: "a"}} }) {
		t.Error("a rule wakes no app")
	}
	if Decided.Create(event.CreateEvent{Object: held("a.example", shop, false, 1)}) || Decided.Update(event.UpdateEvent{}) || !Decided.Delete(event.DeleteEvent{}) {
		t.Error("not only deletions pass, of the claims that kubeop made for tenants")
	}
	if !Decided.Create(event.CreateEvent{Object: held("a.example", shop, true, 1)}) {
		t.Error("a claim that a person made wakes no app")
	}
	if !Decided.Create(event.CreateEvent{Object: held("a.example", own.Owner{Tenant: v1alpha1.PlatformTenant, Project: "ingress"}, false, 1)}) {
		t.Error("a claim of the platform wakes no app")
	}
	if got := ProjectOf(t.Context(), held("a.example", beta, false, 1)); got[0].String() != "kubeop-beta/shop" {
		t.Errorf("the project is %v", got)
	}
}

// TestObjectsAreLookedAtRarely: a look is a request for each kind, in each project.
func TestObjectsAreLookedAtRarely(t *testing.T) {
	b := newFixture(t, held("a.example", shop, false, 1), &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.App}})
	if err := b.api.Create(t.Context(), ingress(shop.Namespace, "a.example")); err != nil {
		t.Fatal(err)
	}
	requests := 0
	b.before = func(verb string, o any) error {
		if _, is := o.(*unstructured.UnstructuredList); is && verb == "list" {
			requests++
		}
		return nil
	}
	for _, step := range []struct {
		name   string
		after  time.Duration
		change func()
		want   int
		// again is when to look again.
		again string
	}{
		{"the app has not asked yet", 0, nil, 0, (startup + spread(shop.Namespace)).String()},
		{"nor just before the end of the start", startup - time.Second, nil, 0, (time.Second + spread(shop.Namespace)).String()},
		{"the start is over", time.Second, nil, 1, "0s"},
		{"at the next interval", startup, nil, 0, "0s"},
		{"an app changed", 0, func() { b.ask(keyOf(shop), []string{"b.example"}); b.ask(keyOf(shop), nil); b.Delivered(keyOf(shop)) }, 1, "2s"},
		{"while its objects may be about to go", 2 * time.Second, nil, 1, "2s"},
		{"twice as long after the change", 2 * time.Second, nil, 1, "4s"},
		{"long after the change", settled - 5*time.Second, nil, 1, "19m59s"},
		{"when its objects have gone, if they do", time.Second, nil, 1, "0s"},
		{"at the next interval after that", startup, nil, 0, "0s"},
		{"after an hour", fresh, nil, 1, "0s"},
	} {
		b.clock.Step(step.after)
		if step.change != nil {
			step.change()
		}
		requests = 0
		if got := b.lists(shop); got != "a.example "+step.again {
			t.Errorf("%s: the project has %s", step.name, got)
		}
		if requests != step.want { // The fake API server has one of the kinds.
			t.Errorf("%s: %d looks, want %d", step.name, requests, step.want)
		}
	}
}

// TestProjectsLookAtDifferentTimesAfterAStart: all at once would be a burst of requests.
func TestProjectsLookAtDifferentTimesAfterAStart(t *testing.T) {
	times := map[time.Duration]bool{}
	for i := range 100 {
		at := spread(v1alpha1.ProjectNamespace("acme", fmt.Sprintf("shop-%d", i)))
		if at < 0 || at > startup/2 {
			t.Errorf("project %d looks %s after the others", i, at)
		}
		times[at.Truncate(time.Second)] = true
	}
	if len(times) < 50 {
		t.Errorf("100 projects look in only %d seconds", len(times))
	}
}

// TestANameIsFreeAfterAStart: an app that asked anew needs no wait for the others, once all have asked.
func TestANameIsFreeAfterAStart(t *testing.T) {
	b := newFixture(t, held("a.example", shop, false, 1), &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.App}})
	if got := b.lists(shop); got != "a.example "+(startup+spread(shop.Namespace)).String() {
		t.Errorf("before the app asked, the project has %s", got)
	}
	b.claims(shop, "b.example")
	if got := b.lists(shop); got != "b.example 2s" {
		t.Errorf("when it asked for another name, the project has %s", got)
	}
	b = newFixture(t, held("a.example", shop, false, 1))
	b.before = func(verb string, o any) error {
		if _, is := o.(*v1alpha1.AppList); is {
			return errors.New("down")
		}
		return nil
	}
	if _, _, err := b.Names(t.Context(), Project{Tenant: "acme", Name: "shop", Namespace: shop.Namespace}); err == nil || !strings.Contains(err.Error(), "listing the apps of namespace kubeop-acme-shop: down") {
		t.Errorf("the error is %v", err)
	}
}

// TestAppsWithoutHostsWakeNoProject: thousands of them may be delivered at once.
func TestAppsWithoutHostsWakeNoProject(t *testing.T) {
	b := newFixture(t)
	b.claims(shop)
	b.Delivered(keyOf(shop))
	b.Forget(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.App}})
	b.claims(shop, "a.example")
	b.Delivered(keyOf(shop))
	if len(b.woken) > 0 {
		t.Errorf("%v were woken", b.woken)
	}
	b.claims(shop)
	b.Delivered(keyOf(shop))
	if !slices.Equal(b.woken, []string{"kubeop-acme/shop"}) {
		t.Errorf("%v were woken after a name was left", b.woken)
	}
}
