package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/classes"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/podsecurity"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

func TestARefusalIsStalledUntilTheSourceChanges(t *testing.T) {
	unknown, forbidden := &policy.Violation{Object: "Bucket/a", Rule: policy.UnknownKind}, &policy.Violation{Object: "Node/a", Rule: policy.ClusterScoped}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":                     {nil, false},
		"a limit":                     {fmt.Errorf("a: %w", &budget.Exceeded{Field: budget.AppObjects}), true},
		"an object that is forbidden": {errors.Join(forbidden), true},
		"a kind that is unknown yet":  {errors.Join(unknown), false},
		"both":                        {errors.Join(unknown, forbidden), true},
		"an error of the API server":  {errors.New("down"), false},
	} {
		if got := refused(c.err); got != c.want {
			t.Errorf("%s: stalled is %t, want %t", name, got, c.want)
		}
	}
}

// TestTheSizeOfAllAppsCountsAgainstTheTenant: two apps share a limit.
func TestTheSizeOfAllAppsCountsAgainstTheTenant(t *testing.T) {
	a := &admitter{sources: &source.Fetcher{}, tenants: Tenants{Rendered: &usage.Rendered{}}}
	of := func(tenant, name string) *scope {
		app := &v1alpha1.App{}
		app.Namespace, app.Name = "kubeop-"+tenant+"-shop", name
		s := scopeOf(app, &releaser{admitter: a})
		s.Owner.Tenant, s.Limits.RenderedBytes = tenant, 100
		return s
	}
	if err := a.weigh(of("acme", "web"))(60); err != nil {
		t.Fatal(err)
	}
	if err := a.weigh(of("acme", "api"))(40); err != nil {
		t.Errorf("a size at the limit is refused: %v", err)
	}
	if err := a.weigh(of("acme", "api"))(41); !errors.As(err, new(*budget.Exceeded)) {
		t.Errorf("one byte over the limit: got %v, want an error", err)
	}
	if err := a.weigh(of("beta", "api"))(100); err != nil {
		t.Errorf("an app of another tenant is refused: %v", err)
	}
	if err := a.weigh(of("acme", "web"))(61); !errors.As(err, new(*budget.Exceeded)) {
		t.Errorf("an app that grows over the limit: got %v, want an error", err)
	}
}

func TestClaimsThatBlockAReleaseReportASolution(t *testing.T) {
	err := releaseError(fmt.Errorf("upgrading: %w", &fault.ClaimsInTheWay{}))
	if !errors.As(err, new(*fault.ClaimsInTheWay)) || step.Waits(err) {
		t.Errorf("got %v", err)
	}
	other := errors.New("down")
	if got := releaseError(other); !errors.Is(got, other) || got.Error() != other.Error() {
		t.Errorf("another error was changed to %v", got)
	}
}

// TestOneRefusalSaysEverything: a pod breaks a rule of kubeop and one of Pod Security.
func TestOneRefusalSaysEverything(t *testing.T) {
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	a := &admitter{sources: &source.Fetcher{}, clients: kube.NewClients(nil, nil, kinds, kube.Deployers{}), podSecurity: api.LatestVersion()}
	app := &v1alpha1.App{}
	app.Namespace, app.Name = "kubeop-acme-shop", "agent"
	s := scopeOf(app, &releaser{admitter: a})
	s.PodSecurity, s.Limits.App = string(api.LevelRestricted), budget.Default().App
	s.PriorityClasses, s.GracePeriod = []string{"low"}, time.Minute
	s.Usual = classes.Usual{Storage: "standard"}
	s.Guardrails = &v1alpha1.GuardrailsSpec{Deny: []v1alpha1.AppliedPolicy{{Policy: "few", PolicyRules: v1alpha1.PolicyRules{Classes: &v1alpha1.ClassRules{Storage: []string{"fast"}}}}}}
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "agent"},
		"spec": map[string]any{
			"hostNetwork": true, "containers": []any{map[string]any{"name": "agent", "image": "agent"}},
			"volumes":     []any{map[string]any{"name": "v", "ephemeral": map[string]any{"volumeClaimTemplate": map[string]any{"spec": map[string]any{}}}}},
			"tolerations": []any{map[string]any{"operator": "Exists"}}, "priorityClassName": "urgent", "terminationGracePeriodSeconds": int64(61),
		},
	}}
	_, err := a.own(s, []*unstructured.Unstructured{pod})
	if !refused(err) {
		t.Fatalf("got %v, want a refusal", err)
	}
	for _, want := range []string{
		"Pod/agent tolerates every taint", "Pod/agent has priorityClassName urgent, with which its pods would push others off their nodes; allowed are low: ",
		"Pod/agent names no storageClassName, and so gets standard, the default of the cluster; allowed are: fast; ", "Pod/agent has terminationGracePeriodSeconds 61, of which 60 are allowed: ", "Pod/agent breaks rule hostNamespaces", policy.AskPlatform,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

// admitFixture has an App whose objects are checked.
func admitFixture(t *testing.T, change ...func(*v1alpha1.App)) *fixture {
	t.Helper()
	kinds := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Pod", "ConfigMap"} {
		kinds.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	kinds.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	kinds.Add(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), meta.RESTScopeRoot)
	b := newFixture(t, webApp(change...), interceptor.Funcs{})
	b.admitter.clients, b.admitter.podSecurity = kube.NewClients(nil, nil, kinds, kube.Deployers{}), api.LatestVersion()
	b.s.Owner = own.Owner{Tenant: "acme", Project: "shop", App: "web", Namespace: shop}
	b.s.PodSecurity, b.s.Limits = string(api.LevelRestricted), budget.Default()
	b.s.Fill = podsecurity.FillRestricted
	return b
}

func objectOf(apiVersion, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	return o
}

func podOf(name string) *unstructured.Unstructured {
	pod := objectOf("v1", "Pod", name)
	pod.Object["spec"] = map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web"}}}
	return pod
}

// TestOnlyAnUnknownKindIsTriedAgainWithoutAChange: only a kind that is unknown may be allowed later without a change of the source.
func TestOnlyAnUnknownKindIsTriedAgainWithoutAChange(t *testing.T) {
	for name, c := range map[string]struct {
		objects []*unstructured.Unstructured
		change  func(*scope)
		want    string
	}{
		"allowed":                   {objects: []*unstructured.Unstructured{objectOf("v1", "ConfigMap", "a"), podOf("b")}, want: "done"},
		"nothing":                   {want: "done"},
		"of another namespace":      {objects: []*unstructured.Unstructured{ofNamespace(objectOf("v1", "ConfigMap", "a"), "kube-system")}, want: "stopped NotAllowed: "},
		"cluster-scoped":            {objects: []*unstructured.Unstructured{objectOf("v1", "Node", "a")}, want: "stopped NotAllowed: "},
		"cluster-scoped, permitted": {objects: []*unstructured.Unstructured{objectOf("scheduling.k8s.io/v1", "PriorityClass", "acme-shop-a")}, change: func(s *scope) { s.ClusterKinds = []string{"PriorityClass.scheduling.k8s.io"} }, want: "done"},
		"an unknown kind":           {objects: []*unstructured.Unstructured{objectOf("example.com/v1", "Bucket", "a")}, want: "failed NotAllowed: "},
		"unknown, and cluster-wide": {objects: []*unstructured.Unstructured{objectOf("example.com/v1", "Bucket", "a"), objectOf("v1", "Node", "a")}, want: "stopped NotAllowed: "},
		"more than an app may have": {objects: []*unstructured.Unstructured{podOf("a"), podOf("b")}, change: func(s *scope) { s.Limits.App.Objects = 1 }, want: "stopped TooLarge: "},
		"more than the tenant may":  {objects: []*unstructured.Unstructured{podOf("a")}, change: func(s *scope) { s.Limits.RenderedBytes = 10 }, want: "stopped TooLarge: "},
		"pods that are not filled":  {objects: []*unstructured.Unstructured{podOf("a")}, change: func(s *scope) { s.Fill = podsecurity.FillNothing }, want: "stopped NotAllowed: "},
		"pods at a privileged level": {objects: []*unstructured.Unstructured{podOf("a")}, change: func(s *scope) {
			s.PodSecurity = string(api.LevelPrivileged)
			s.Fill = podsecurity.FillNothing
		}, want: "done"},
	} {
		t.Run(name, func(t *testing.T) {
			b := admitFixture(t)
			b.s.objects = c.objects
			if c.change != nil {
				c.change(b.s)
			}
			got := b.ended(b.admitter.admit(t.Context(), b.s))
			if !endsAs(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if counted := b.s.admitted.bytes > 0; counted != (c.want == "done" && len(c.objects) > 0) {
				t.Errorf("counted are %d bytes", b.s.admitted.bytes)
			}
			if bytes, _ := b.admitter.tenants.Rendered.LastAdmitted(b.s.Key()); bytes != b.s.admitted.bytes {
				t.Errorf("the tenant has %d bytes, the app %d", bytes, b.s.admitted.bytes)
			}
		})
	}
}

func ofNamespace(o *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	o.SetNamespace(namespace)
	return o
}

// TestAdmittedObjectsAreStampedAndFilled: with the labels of the App, in its namespace unless they are cluster-scoped, and with what Pod
// Security requires.
func TestAdmittedObjectsAreStampedAndFilled(t *testing.T) {
	b := admitFixture(t)
	b.s.ClusterKinds = []string{"PriorityClass.scheduling.k8s.io"}
	b.s.objects = []*unstructured.Unstructured{podOf("a"), objectOf("scheduling.k8s.io/v1", "PriorityClass", "acme-shop-a")}
	if got := b.ended(b.admitter.admit(t.Context(), b.s)); got != "done" {
		t.Fatal(got)
	}
	for i, namespace := range []string{shop, ""} {
		o := b.s.objects[i]
		if o.GetNamespace() != namespace || o.GetLabels()[v1alpha1.TenantLabel] != "acme" || o.GetLabels()[v1alpha1.AppLabel] != "web" {
			t.Errorf("%s is in %q, with labels %v", o.GetKind(), o.GetNamespace(), o.GetLabels())
		}
	}
	if escalates, set, _ := unstructured.NestedBool(b.s.objects[0].Object, "spec", "securityContext", "runAsNonRoot"); !set || !escalates {
		t.Errorf("the pod has %v", b.s.objects[0].Object["spec"])
	}
	b.s.Record()
	if filled := strings.Join(b.s.App.Status.Filled, "\n"); !strings.Contains(filled, "Pod/a") {
		t.Errorf("the status says that %q was filled in", filled)
	}
}

// TestAHookIsCheckedLikeTheObjects.
func TestAHookIsCheckedLikeTheObjects(t *testing.T) {
	b := admitFixture(t)
	admit := b.admitter.admitHook(t.Context(), b.s)
	for want, o := range map[string]*unstructured.Unstructured{
		"done": podOf("a"), "stopped NotAllowed: ": objectOf("v1", "Node", "a"), "failed Failed: ": objectOf("example.com/v1", "Bucket", "a"),
	} {
		if got := b.ended(admit(o)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", o.GetKind(), got, want)
		}
	}
}

// TestManifestsAndHooksOfAChartAreChecked, and what was filled in for either is reported.
func TestManifestsAndHooksOfAChartAreChecked(t *testing.T) {
	b := admitFixture(t)
	admit := b.admitter.admitRendered(t.Context(), b.s)
	for _, name := range []string{"manifest", "hook"} {
		if err := admit([]*unstructured.Unstructured{podOf(name)}); err != nil {
			t.Fatal(err)
		}
	}
	next := b.newScope(b.app)
	next.Record()
	for _, name := range []string{"Pod/manifest", "Pod/hook"} {
		if filled := strings.Join(next.App.Status.Filled, "\n"); !strings.Contains(filled, name) {
			t.Errorf("the status says that %q was filled in, without %s", filled, name)
		}
	}
	if err := admit([]*unstructured.Unstructured{objectOf("v1", "Node", "a")}); !refused(err) {
		t.Errorf("a Node is not refused: %v", err)
	}
	b.admitter.Forget(b.app)
	if filled := b.newScope(b.app).admitted.filled; filled != nil {
		t.Errorf("of a deleted app it is known that %v was filled in", *filled)
	}
}

// TestObjectsOfThePlatformGoToTheTargetNamespace, except those that are cluster-scoped. A Namespace object of that name is left out.
func TestObjectsOfThePlatformGoToTheTargetNamespace(t *testing.T) {
	b := admitFixture(t, func(app *v1alpha1.App) { app.Spec.TargetNamespace = "ingress" })
	b.admitter.clients.Deployers = kube.Deployers{Operator: "kubeop-system", PlatformApps: kube.PlatformAppsClusterAdmin}
	b.s.Owner.Tenant, b.s.PodSecurity = v1alpha1.PlatformTenant, string(api.LevelPrivileged)
	b.s.objects = []*unstructured.Unstructured{objectOf("v1", "ConfigMap", "a"), ofNamespace(objectOf("v1", "ConfigMap", "b"), "other"), objectOf("v1", "Node", "c")}
	if got := b.ended(b.admitter.admit(t.Context(), b.s)); got != "done" {
		t.Fatal(got)
	}
	var where []string
	for _, o := range b.s.objects {
		where = append(where, o.GetNamespace()+"/"+o.GetName())
	}
	if got := strings.Join(where, " "); got != "ingress/a ingress/b /c" {
		t.Errorf("they are in %s", got)
	}
}

// TestARefusalNamesTheLineOfTheManifest in the app's folder, or in the files of a Git App.
func TestARefusalNamesTheLineOfTheManifest(t *testing.T) {
	files := map[string]string{"m/all.yaml": "kind: ConfigMap\nmetadata: {name: a}\n---\nkind: Node\nmetadata: {name: a}\n", "base/b.yaml": "kind: Node\nmetadata: {name: b}\n"}
	own, plain := folderOf(t, files), fstest.MapFS{}
	for name, text := range files {
		plain[name] = &fstest.MapFile{Data: []byte(text)}
	}
	raw := func(a *v1alpha1.App) {
		a.Spec.Type, a.Spec.Image, a.Spec.Raw = v1alpha1.AppRaw, nil, &v1alpha1.RawSource{Path: "m"}
	}
	git := func(a *v1alpha1.App) {
		a.Spec.Type, a.Spec.Image, a.Spec.Git = v1alpha1.AppGit, nil, &v1alpha1.GitSource{Path: "m"}
	}
	for name, c := range map[string]struct {
		app    func(*v1alpha1.App)
		object string
		want   string
	}{
		"a folder":             {raw, "a", "stopped NotAllowed: m/all.yaml:4: Node/a is cluster-scoped"},
		"a commit":             {git, "a", "stopped NotAllowed: m/all.yaml:4: Node/a is cluster-scoped"},
		"a base":               {git, "b", "stopped NotAllowed: base/b.yaml:1: Node/b is cluster-scoped"},
		"no manifest":          {raw, "c", "stopped NotAllowed: Node/c is cluster-scoped"},
		"an app without files": {func(*v1alpha1.App) {}, "a", "stopped NotAllowed: Node/a is cluster-scoped"},
	} {
		b := admitFixture(t, c.app)
		b.s.found.Folder, b.s.found.Files.FS, b.s.objects = own, plain, []*unstructured.Unstructured{objectOf("v1", "Node", c.object)}
		if got := b.ended(b.admitter.admit(t.Context(), b.s)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestARefusedReleaseIsTriedAgainUnderOtherTerms: its trial is another one.
func TestARefusedReleaseIsTriedAgainUnderOtherTerms(t *testing.T) {
	b := newFixture(t, webApp(), interceptor.Funcs{})
	before := b.admitter.allowance(t.Context(), b.s)
	if again := b.admitter.allowance(t.Context(), b.s); again != before {
		t.Errorf("without a change %q becomes %q", before, again)
	}
	for name, change := range map[string]func(*scope){
		"Pod Security":        func(s *scope) { s.PodSecurity = "baseline" },
		"objects of an app":   func(s *scope) { s.Limits.App.Objects++ },
		"what all deliver":    func(s *scope) { s.Limits.RenderedBytes++ },
		"cluster kinds":       func(s *scope) { s.ClusterKinds = []string{"ClusterRole.rbac.authorization.k8s.io"} },
		"taints":              func(s *scope) { s.Taints = []string{"gpu"} },
		"Ingress annotations": func(s *scope) { s.IngressAnnotations = []string{"example.com/snippet"} },
		"CSI drivers":         func(s *scope) { s.CSIDrivers = []string{"csi.example.com"} },
		"PriorityClasses":     func(s *scope) { s.PriorityClasses = []string{"high"} },
		"a default class":     func(s *scope) { s.Usual.Storage = "standard" },
		"the time of pods":    func(s *scope) { s.GracePeriod = 40e9 },
	} {
		subject := *b.s.Subject
		changed := *b.s
		changed.Subject = &subject
		if change(&changed); b.admitter.allowance(t.Context(), &changed) == before {
			t.Errorf("%s: the allowance is the same", name)
		}
	}
}
