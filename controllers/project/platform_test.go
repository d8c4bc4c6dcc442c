package project

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/pvc"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
	"github.com/kubeop/kubeop/internal/testenv/watchtest"
)

// platformFixture delivers the platform's own apps as the chart's setting says.
func platformFixture(t *testing.T, setting string, objects ...client.Object) *fixture {
	b := newFixture(t, objects...)
	b.Clients.Deployers = kube.Deployers{Operator: "kubeop-system", PlatformApps: setting}
	return b
}

func platformProject(name string) *v1alpha1.Project {
	return shop(func(p *v1alpha1.Project) {
		p.Namespace, p.Name = v1alpha1.HomeNamespace(v1alpha1.PlatformTenant), name
	})
}

func TestAPlatformProjectMayNotTakeEveryNamespace(t *testing.T) {
	const (
		off      = "stopped DependencyNotReady: " // The rest is the message of kube.ErrPlatformOff.
		tenants  = "stopped NamespaceTaken: namespace %s belongs to a tenant or to kubeop itself: give the project another name in Git"
		clusters = "stopped NamespaceTaken: who may write everything in namespace %s controls the cluster, and platformApps is Namespaced: ask an administrator of the cluster to set ClusterAdmin as platformApps of the values of kubeop's chart"
	)
	namespaced, admin := kube.PlatformAppsNamespaced, kube.PlatformAppsClusterAdmin
	for name, c := range map[string]struct{ project, setting, want string }{
		"an ordinary one":                      {"monitoring", namespaced, "done"},
		"while apps of the platform are off":   {"monitoring", kube.PlatformAppsOff, off + kube.ErrPlatformOff.Error()},
		"while the setting is missing":         {"monitoring", "", off + kube.ErrPlatformOff.Error()},
		"one of a tenant":                      {"kubeop-acme", admin, tenants},
		"the operator's own":                   {"kubeop-system", admin, tenants},
		"the operator's own, of another name":  {"ops", admin, tenants},
		"one of Kubernetes":                    {"kube-system", namespaced, clusters},
		"one of Kubernetes, by administrators": {"kube-system", admin, "done"},
		"one that only looks like it":          {"kubernetes-dashboard", namespaced, "done"},
	} {
		t.Run(name, func(t *testing.T) {
			b := platformFixture(t, c.setting)
			if name == "the operator's own, of another name" {
				b.Clients.Operator = "ops"
			}
			got := steptest.Outcome(t, b.resolvePlatform(t.Context(), b.newScope(platformProject(c.project))))
			if want := strings.ReplaceAll(c.want, "%s", c.project); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func TestTheSettingsOfAPlatformNamespaceDefaultToNone(t *testing.T) {
	b, project := platformFixture(t, kube.PlatformAppsNamespaced), platformProject("monitoring")
	if got := b.newScope(project).namespaceSpec(); got != (v1alpha1.PlatformNamespace{}) {
		t.Errorf("without settings: %+v", got)
	}
	set := v1alpha1.PlatformNamespace{Adopt: true, PodSecurity: "privileged"}
	project.Spec.Namespace = &set
	if got := b.newScope(project).namespaceSpec(); got != set {
		t.Errorf("got %+v, want %+v", got, set)
	}
}

// TestANamespaceOfThePlatformIsMadeOrAdopted: only one that kubeop made has the label by which it may be deleted with its project.
func TestANamespaceOfThePlatformIsMadeOrAdopted(t *testing.T) {
	const taken = "stopped NamespaceTaken: namespace monitoring: the namespace exists and does not belong to this object; kubeop adopts none: "
	ours := map[string]string{v1alpha1.TenantLabel: v1alpha1.PlatformTenant, v1alpha1.ProjectLabel: "monitoring"}
	with := func(adopted string) map[string]string {
		labels := maps.Clone(ours)
		labels[v1alpha1.AdoptedLabel] = adopted
		return labels
	}
	for name, c := range map[string]struct {
		adopt             bool
		there             map[string]string
		want, label, says string
		level             string
		// asks is spec.namespace.podSecurity, and fault the verb of a request for the namespace that fails.
		asks, fault string
	}{
		"there is none":                           {want: "done", label: "false", level: "restricted"},
		"there is none to adopt":                  {adopt: true, want: "done", label: "false", level: "restricted"},
		"there is none, and the level is given":   {asks: "baseline", want: "done", label: "false", level: "baseline"},
		"it cannot be read":                       {adopt: true, fault: "get", want: "failed Failed: "},
		"it cannot be made":                       {fault: "patch", want: "failed Failed: Namespace/monitoring: the API server is away"},
		"it was there before":                     {there: map[string]string{"a": "b"}, want: taken, says: "remove the namespace; to have apps delivered into it, set spec.namespace.adopt: true in project.yaml"},
		"it was there before, and is adopted":     {adopt: true, there: map[string]string{"a": "b"}, want: "done", label: "true"},
		"it is of a tenant":                       {adopt: true, there: map[string]string{v1alpha1.TenantLabel: "acme"}, want: "failed ApplyFailed: Namespace/monitoring: belongs to tenant acme already"},
		"it is adopted already":                   {adopt: true, there: with("true"), want: "done", label: "true"},
		"it was adopted, and adopt was removed":   {there: with("true"), want: "done", label: "true"},
		"it was made by kubeop, and adopt is new": {adopt: true, there: with("false"), want: "done", label: "false", level: "restricted"},
	} {
		t.Run(name, func(t *testing.T) {
			b := platformFixture(t, kube.PlatformAppsNamespaced)
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "monitoring", UID: "ns-1", Labels: c.there}}
			if c.there != nil {
				if err := b.api.Create(t.Context(), ns); err != nil {
					t.Fatal(err)
				}
			}
			b.Watch = watchtest.New(t, b.api, corev1.SchemeGroupVersion.WithKind("Namespace"))
			project := platformProject("monitoring")
			project.Spec.Namespace = &v1alpha1.PlatformNamespace{Adopt: c.adopt, PodSecurity: c.asks}
			b.fault = func(verb string, o any, _ string) error {
				if of, is := o.(client.Object); is && verb == c.fault && of.GetName() == "monitoring" || verb == "get" && c.fault == "get" && fmt.Sprintf("%T", o) == "*v1.Namespace" {
					return errAway
				}
				return nil
			}
			got := steptest.Outcome(t, b.makePlatformNamespace(t.Context(), b.newScope(project)))
			if !strings.HasPrefix(got, c.want) || !strings.Contains(got, c.says) {
				t.Errorf("got %q, want %q and %q", got, c.want, c.says)
			}
			b.fault = func(string, any, string) error { return nil }
			if there := b.get(ns); there == (c.fault != "") || ns.Labels[v1alpha1.AdoptedLabel] != c.label || ns.Labels["pod-security.kubernetes.io/enforce"] != c.level {
				t.Errorf("it has the labels %v, want adopted %q and the level %q", ns.Labels, c.label, c.level)
			}
		})
	}
}

// TestAnAdoptedNamespaceIsLeftAndNotDeleted: it loses the rights that kubeop made in it. A namespace that kubeop made is not left; another step
// deletes it.
func TestAnAdoptedNamespaceIsLeftAndNotDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(labels map[string]string)
		left   bool
	}{
		"adopted":                    {func(map[string]string) {}, true},
		"adopted before the label":   {func(l map[string]string) { delete(l, v1alpha1.AdoptedLabel) }, true},
		"made by kubeop":             {func(l map[string]string) { l[v1alpha1.AdoptedLabel] = "false" }, false},
		"taken by another meanwhile": {func(l map[string]string) { l[v1alpha1.ProjectLabel] = "another" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := platformFixture(t, kube.PlatformAppsNamespaced)
			s := b.newScope(platformProject("monitoring"))
			labels := s.labels()
			labels[v1alpha1.AdoptedLabel] = "true"
			c.change(labels)
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace, UID: "ns-1", Labels: labels}}
			if err := b.api.Create(t.Context(), ns); err != nil {
				t.Fatal(err)
			}
			if got := steptest.Outcome(t, b.grantPlatform(t.Context(), s)); got != "done" {
				t.Fatal(got)
			}
			rights := func() int {
				bindings := &rbacv1.RoleBindingList{}
				if err := b.api.List(t.Context(), bindings, client.InNamespace(s.namespace)); err != nil {
					t.Fatal(err)
				}
				return len(bindings.Items)
			}
			if rights() == 0 {
				t.Fatal("the account that delivers has no rights")
			}
			left, err := b.leavePlatformNamespace(t.Context(), b.again(s), pvc.Terms{})
			if err != nil || left != c.left {
				t.Errorf("left: %t, want %t; %v", left, c.left, err)
			}
			if kept := rights() > 0; kept == c.left {
				t.Errorf("the rights are kept: %t", kept)
			}
			if !b.get(ns) || ns.DeletionTimestamp != nil {
				t.Error("the namespace is deleted")
			}
		})
	}
}

// TestARemovedPlatformProjectDeletesNoNamespaceThatWasThereBefore, and none while its owner is unknown or while it cannot be left.
func TestARemovedPlatformProjectDeletesNoNamespaceThatWasThereBefore(t *testing.T) {
	away := func(verb string, kind client.ObjectList) func(string, any, string) error {
		return func(v string, o any, _ string) error {
			if v == verb && fmt.Sprintf("%T", o) == fmt.Sprintf("%T", kind) {
				return errAway
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		adopted string
		fault   func(verb string, o any, data string) error
		want    []string
		kept    bool
	}{
		"adopted":                 {"true", nil, []string{"done"}, true},
		"adopted, unknown claims": {"true", away("list", &corev1.PersistentVolumeClaimList{}), []string{"failed Failed: listing the claims of namespace monitoring: " + errAway.Error()}, true},
		"adopted, while apps of the platform are off": {"true", nil, []string{"failed Failed: " + kube.ErrPlatformOff.Error()}, true},
		"made, while apps of the platform are off":    {"false", nil, []string{"failed Failed: " + kube.ErrPlatformOff.Error()}, true},
		"made by kubeop":           {"false", nil, []string{"soon, after 500ms", "waits Deleting: namespace monitoring is being deleted, after 1s", "done"}, false},
		"made by kubeop, and gone": {"", nil, []string{"done"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			project := platformProject("monitoring")
			deletedProject(project)
			setting := kube.PlatformAppsNamespaced
			if strings.HasSuffix(name, "are off") {
				setting = kube.PlatformAppsOff
			}
			b := platformFixture(t, setting, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: project.Namespace}})
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "monitoring", UID: "ns-1", Labels: b.newScope(project).labels()}}
			ns.Labels[v1alpha1.AdoptedLabel] = c.adopted
			if c.adopted != "" {
				if err := b.api.Create(t.Context(), ns); err != nil {
					t.Fatal(err)
				}
			}
			if c.fault != nil {
				b.fault = c.fault
			}
			for i, want := range c.want {
				if got := steptest.Outcome(t, b.removeNamespace(t.Context(), b.newScope(project))); got != want {
					t.Errorf("look %d: got %q, want %q", i+1, got, want)
				}
			}
			if kept := b.get(ns) && ns.DeletionTimestamp == nil; kept != c.kept {
				t.Errorf("the namespace is kept: %t, want %t", kept, c.kept)
			}
		})
	}
}
