package app

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/own"
)

func shopProject() *v1alpha1.Project {
	p := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}, Status: v1alpha1.ProjectStatus{Namespace: shop}}
	conditions.MarkFalse(p, v1alpha1.ReadyCondition, v1alpha1.QuotaExceededReason, "its quota is too large")
	return p
}

func TestAnAppWaitsForItsProject(t *testing.T) {
	ofOthers := shopNamespace()
	ofOthers.Labels = map[string]string{v1alpha1.TenantLabel: "beta", v1alpha1.ProjectLabel: "blog"}
	cases := map[string]struct {
		objects []client.Object
		change  func(*objectsSeen)
		want    string
	}{
		"ready": {objects: []client.Object{shopProject()}, want: "done"},
		"its namespace is not of kubeop": {
			objects: []client.Object{shopProject()}, change: func(o *objectsSeen) { o.namespaces = nil },
			want: "waits DependencyNotReady: namespace kubeop-acme-shop belongs to no project; an App belongs in the namespace kubeop-<tenant>-<project>, after 1m0s",
		},
		"its project is gone": {want: "waits DependencyNotReady: project kubeop-acme/shop does not exist, after 1m0s"},
		"the labels of the namespace contradict its name": {
			objects: []client.Object{shopProject()}, change: func(o *objectsSeen) { o.namespaces[shop] = ofOthers },
			want: "stopped DependencyNotReady: namespace kubeop-acme-shop has the labels of project blog of tenant beta, but not the name of that project's namespace",
		},
		"they name another project of the tenant": {
			objects: []client.Object{shopProject()}, change: func(o *objectsSeen) { o.namespaces[shop].Labels[v1alpha1.ProjectLabel] = "blog" },
			want: "stopped DependencyNotReady: namespace kubeop-acme-shop has the labels of project blog of tenant acme, but not the name of that project's namespace",
		},
		"the deployer has no rights yet": {
			objects: []client.Object{shopProject()}, change: func(o *objectsSeen) { o.bindings = []string{"kubeop-acme/" + v1alpha1.Deployer, shop + "/kubeop-view"} },
			want: "waits DependencyNotReady: project shop is not ready: its quota is too large, after 10s",
		},
		"the watch fails": {
			objects: []client.Object{shopProject()}, change: func(o *objectsSeen) { o.err = errors.New("away") }, want: "failed Failed: away",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, webApp(), interceptor.Funcs{}, c.objects...)
			if c.change != nil {
				c.change(b.seen)
			}
			if got := b.ended(b.projects.Find(t.Context(), b.s.Subject, b.s.inventory.Entries)); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if ready := c.want == "done"; ready != (b.s.Client != nil) {
				t.Errorf("the step has a client: %t, want %t", !ready, ready)
			}
		})
	}
}

// TestAnAppWaitsWhileItsTenantIsStopped: and until pods are admitted again, as long as the quota does not say so. The time in which it has to
// become healthy begins anew.
func TestAnAppWaitsWhileItsTenantIsStopped(t *testing.T) {
	resumed := map[string]string{v1alpha1.ResumedAtAnnotation: "2026-03-01T12:00:00Z"}
	for name, c := range map[string]struct {
		stopped bool
		quota   *corev1.ResourceQuota
		want    string
	}{
		"stopped": {true, nil, "waits Stopped: Stopped by administrators: nothing of tenant acme runs, and nothing new is delivered until an administrator of the cluster " +
			"removes spec.stopped from tenant.yaml of the platform repository in Git, after 10m0s"},
		"no pod is admitted yet": {false, &corev1.ResourceQuota{}, "waits Stopped: waits until pods are admitted in namespace kubeop-acme-shop again, after tenant acme was stopped, after 1s"},
		"pods are admitted":      {false, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Annotations: resumed}}, "done"},
		"never stopped":          {false, nil, "done"},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{Stopped: c.stopped}}
			b := newFixture(t, webApp(), interceptor.Funcs{}, tenant, shopProject())
			b.seen.closed = c.quota
			b.s.unhealthySince = &metav1.Time{Time: time.Unix(1_000_000, 0)}
			began := b.s.Since("health")
			b.clock.SetTime(b.clock.Now().Add(time.Hour))
			if got := b.ended(b.projects.Find(t.Context(), b.s.Subject, b.s.inventory.Entries)); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if anew := !b.s.Since("health").Equal(began); anew != c.stopped {
				t.Errorf("the time begins anew: %t", anew)
			}
			if err := b.resolve(t.Context(), b.s); (b.s.unhealthySince == nil) != (err != nil) {
				t.Errorf("after %v it is unhealthy since %v", err, b.s.unhealthySince)
			}
		})
	}
}

func TestOwnerAndLimitsComeFromTheTenantOfTheNamespace(t *testing.T) {
	five := int32(5)
	acme := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{
		ClusterKinds: []string{"PriorityClass.scheduling.k8s.io"}, Limits: v1alpha1.TenantLimits{Apps: &five}, Taints: []string{"gpu"}, IngressAnnotations: []string{"a/auth-url"},
		CSIDrivers: []string{"secrets.example.com"},
	}}
	operators := budget.Default()
	acmes := operators
	acmes.Apps = 5
	for name, c := range map[string]struct {
		tenant []client.Object
		kinds  []string
		limits budget.Limits
	}{
		"the tenant sets them":               {[]client.Object{acme}, acme.Spec.ClusterKinds, acmes},
		"the tenant is not in the cache yet": {nil, nil, operators},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, webApp(), interceptor.Funcs{}, append(c.tenant, shopProject())...)
			b.projects.Limits = operators
			if err := b.projects.Find(t.Context(), b.s.Subject, b.s.inventory.Entries); err != nil {
				t.Fatal(err)
			}
			if want := (own.Owner{Tenant: "acme", Project: "shop", App: "web", Namespace: shop}); b.s.Owner != want {
				t.Errorf("the owner is %+v, want %+v", b.s.Owner, want)
			}
			if diff := cmp.Diff(c.kinds, b.s.ClusterKinds); diff != "" {
				t.Error(diff)
			}
			if allowed := c.tenant != nil; allowed != (len(b.s.Taints) == 1 && len(b.s.IngressAnnotations) == 1 && len(b.s.CSIDrivers) == 1) {
				t.Errorf("the App may have taints %v, annotations %v and drivers %v", b.s.Taints, b.s.IngressAnnotations, b.s.CSIDrivers)
			}
			if b.s.Limits != c.limits {
				t.Errorf("the limits are %+v, want %+v", b.s.Limits, c.limits)
			}
		})
	}
}

// TestNothingIsComparedBeforeTheFirstLists: otherwise an App would recreate objects that its watch does not have yet.
func TestNothingIsComparedBeforeTheFirstLists(t *testing.T) {
	app := webApp(func(app *v1alpha1.App) {
		app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{
			entry("ConfigMap", "a"), entry("ConfigMap", "b"), entry("Secret", "c"), clusterEntry("d"), entry("Service", "e"), entry("Pod", "f"),
		}
	})
	b := newFixture(t, app, interceptor.Funcs{}, shopProject())
	late, refused := &kube.Unready{What: "ConfigMap"}, &kube.Unready{What: "Service", Err: errors.New("forbidden")}
	b.seen.unready = map[string]error{"ConfigMap": late, "Service": refused, "Pod": errors.New("not served")}
	err := b.projects.Find(t.Context(), b.s.Subject, b.s.inventory.Entries)
	if !errors.Is(err, late) || b.s.Client != nil {
		t.Errorf("the App does not wait for the first list: %v", err)
	}
	if got := strings.Join(b.seen.followed, " "); got != "ConfigMap Service Pod" {
		t.Errorf("the App follows %s, want %q: each kind once, no Secrets, no cluster-scoped kinds", got, "ConfigMap Service Pod")
	}
	delete(b.seen.unready, "ConfigMap")
	if err := b.projects.Find(t.Context(), b.s.Subject, b.s.inventory.Entries); err != nil {
		t.Errorf("a kind that cannot be watched blocks the App: %v", err)
	}
	b.seen.unready["ConfigMap"], b.seen.followed = late, nil
	if err := b.projects.Find(t.Context(), b.s.Subject, b.s.inventory.Entries); err != nil || len(b.seen.followed) > 0 {
		t.Errorf("the App follows the kinds again after all were listed: %v, %v", b.seen.followed, err)
	}
	b.projects.Forget(b.app)
	if err := b.projects.Find(t.Context(), b.s.Subject, b.s.inventory.Entries); !errors.Is(err, late) {
		t.Errorf("a forgotten App does not follow its kinds again: %v", err)
	}
}

func TestAnUnreadableInventoryIsAnError(t *testing.T) {
	b := newFixture(t, webApp(func(app *v1alpha1.App) {
		app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{{ID: "nonsense"}}
	}), interceptor.Funcs{}, shopProject())
	if err := b.projects.Find(t.Context(), b.s.Subject, b.s.inventory.Entries); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("got %v", err)
	}
}

// TestThePodSecurityLevelOfAnAppIsThatOfItsTenant; for the platform, that of the label of its namespace, which a cluster may not have.
func TestThePodSecurityLevelOfAnAppIsThatOfItsTenant(t *testing.T) {
	tenant := func(level string) client.Object {
		return &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{PodSecurity: level}}
	}
	platform := &v1alpha1.Project{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace(v1alpha1.PlatformTenant), Name: "ingress"}, Status: v1alpha1.ProjectStatus{Namespace: "ingress"},
	}
	for name, c := range map[string]struct {
		objects  []client.Object
		label    string
		platform bool
		want     string
	}{
		"of a tenant that sets none":             {[]client.Object{tenant("")}, "privileged", false, "restricted"},
		"of a tenant":                            {[]client.Object{tenant("baseline")}, "", false, "baseline"},
		"of a tenant that is not there yet":      {nil, "", false, "restricted"},
		"of the platform":                        {nil, "baseline", true, "baseline"},
		"of the platform in an unlabelled space": {nil, "", true, "privileged"},
	} {
		t.Run(name, func(t *testing.T) {
			app, ns := webApp(), shopNamespace()
			if c.platform {
				app.Namespace, ns.Name = "ingress", "ingress"
				ns.Labels = map[string]string{v1alpha1.TenantLabel: v1alpha1.PlatformTenant, v1alpha1.ProjectLabel: "ingress"}
			}
			if c.label != "" {
				ns.Labels[api.EnforceLevelLabel] = c.label
			}
			b := newFixture(t, app, interceptor.Funcs{}, append(c.objects, shopProject(), platform)...)
			b.seen.namespaces, b.seen.bindings = map[string]*corev1.Namespace{ns.Name: ns}, []string{ns.Name + "/" + v1alpha1.Deployer}
			b.projects.Deployer = func(string) (client.Client, error) { return b.api, nil }
			if got := b.ended(b.projects.Find(t.Context(), b.s.Subject, nil)); got != "done" || b.s.PodSecurity != c.want {
				t.Errorf("%s: level %s, want %s", got, b.s.PodSecurity, c.want)
			}
		})
	}
}

// TestAnAppStopsWhileAppsOfThePlatformAreOff, and any other error about its deployer is tried again.
func TestAnAppStopsWhileAppsOfThePlatformAreOff(t *testing.T) {
	for err, want := range map[error]string{
		kube.ErrPlatformOff: "stopped DependencyNotReady: " + kube.ErrPlatformOff.Error(), errors.New("no certificate"): "failed Failed: no certificate",
	} {
		b := newFixture(t, webApp(), interceptor.Funcs{}, shopProject())
		b.projects.Deployer = func(string) (client.Client, error) { return nil, err }
		if got := b.ended(b.projects.Find(t.Context(), b.s.Subject, nil)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestAnAppIsUnderTheGuardrailsOfItsNamespace, and waits until they are there. Apps of the platform have none.
func TestAnAppIsUnderTheGuardrailsOfItsNamespace(t *testing.T) {
	b := newFixture(t, webApp(), interceptor.Funcs{}, shopProject())
	rules := &v1alpha1.Guardrails{}
	if err := b.api.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: v1alpha1.GuardrailsName}, rules); err != nil {
		t.Fatal(err)
	}
	rules.Spec.Deny = []v1alpha1.AppliedPolicy{{Policy: "standard", PolicyRules: v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Allow: []string{"registry.example.com"}}}}}
	if err := b.api.Update(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	b.projects.Limits = budget.Default()
	if err := b.projects.Find(t.Context(), b.s.Subject, nil); err != nil || b.s.Guardrails == nil || len(b.s.Guardrails.Deny) != 1 {
		t.Fatalf("the rules are %+v, %v", b.s.Guardrails, err)
	}
	b.s.objects = []*unstructured.Unstructured{podOf("a")}
	if got := b.ended(b.admitter.admit(t.Context(), b.s)); !strings.Contains(got, "which is not among the allowed ones: registry.example.com") {
		t.Errorf("a pod with another image: %s", got)
	}
	if err := b.api.Delete(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	if got := b.ended(b.projects.Find(t.Context(), b.s.Subject, nil)); !strings.HasPrefix(got, "waits DependencyNotReady: waits for the guardrails of namespace kubeop-acme-shop") {
		t.Errorf("without them: %s", got)
	}
}

// TestWithoutItsProjectAndTenantAnAppDoesNotGoOn: their limits would be unknown.
func TestWithoutItsProjectAndTenantAnAppDoesNotGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		kind client.Object
		want string
	}{
		"project": {&v1alpha1.Project{}, "failed Failed: reading project kubeop-acme/shop: away"},
		"tenant":  {&v1alpha1.Tenant{}, "failed Failed: reading tenant acme: away"},
		"rules":   {&v1alpha1.Guardrails{}, "failed Failed: reading the guardrails of namespace kubeop-acme-shop: away"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, webApp(), interceptor.Funcs{}, shopProject())
			b.projects.Client = interceptor.NewClient(b.api, interceptor.Funcs{
				Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if reflect.TypeOf(o) == reflect.TypeOf(c.kind) {
						return errors.New("away")
					}
					return api.Get(ctx, key, o, opts...)
				},
			})
			if got := b.ended(b.projects.Find(t.Context(), b.s.Subject, nil)); got != c.want || b.s.Client != nil {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
