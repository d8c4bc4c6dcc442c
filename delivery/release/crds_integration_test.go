package release

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	cached "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/charts"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// definitionOf is a CustomResourceDefinition in a group of the team's own.
func (t *team) definitionOf(field string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.` + t.namespace + `.example.com}
spec:
  group: ` + t.namespace + `.example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {` + field + `: {type: string}}}}}}
`
}

// mayDefine gives the deployer the right to write definitions and what they define, and PriorityClasses.
func (t *team) mayDefine() {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"*"}},
		{APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"priorityclasses"}, Verbs: []string{"*"}},
		{APIGroups: []string{t.namespace + ".example.com"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: t.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: t.namespace},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: deployer(t.namespace)}},
	}
	_, first := t.admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	_, second := t.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	if err := errors.Join(first, second); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := t.crd("none")
		if apierrors.IsNotFound(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// crd reads a definition as the deployer.
func (t *team) crd(name string) (*unstructured.Unstructured, error) {
	info, err := t.definition(name)
	if err != nil {
		return nil, err
	}
	live, err := cluster.Live(info)
	if live == nil && err == nil {
		err = apierrors.NewNotFound(info.Mapping.Resource.GroupResource(), name)
	}
	return live, err
}

// definition returns where a definition is stored, as the deployer sees it.
func (t *team) definition(name string) (*resource.Info, error) {
	text := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + "}\n"
	list, err := t.cluster().Build(strings.NewReader(text), false)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

func (t *team) withCRD(field string) fstest.MapFS {
	return sources.ChartFolder(map[string]string{
		"crds/thing.yaml":     t.definitionOf(field),
		"templates/inst.yaml": "apiVersion: " + t.namespace + ".example.com/v1\nkind: Thing\nmetadata: {name: one}\nspec: {" + field + ": x}\n",
	})
}

func TestAChartMayInstallItsCRDsAndInstances(t *testing.T) {
	tm := newTeam(t)
	out := tm.settle(tm.request(tm.withCRD("old")))
	for _, want := range []string{"CustomResourceDefinition/things." + tm.namespace + ".example.com (web/crds/thing.yaml)", "the whole cluster shares", "crds: Skip"} {
		if !errors.As(out.Failed, new(*fault.NotAllowed)) || !strings.Contains(out.Failed.Error(), want) {
			t.Errorf("without the right: %v, want NotAllowed with %q", out.Failed, want)
		}
	}
	tm.mayDefine()
	out = tm.deploy(tm.request(tm.withCRD("old"), "again=1"))
	if len(out.Deployed.Objects) != 1 {
		t.Errorf("objects %v", out.Deployed.Objects)
	}
	tm.deploy(tm.request(tm.withCRD("new")))
	crd, err := tm.crd("things." + tm.namespace + ".example.com")
	if err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	properties, _, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
	if properties["new"] == nil || properties["old"] != nil {
		t.Errorf("the upgrade left %v", properties)
	}
	if !slices.ContainsFunc(crd.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == "helm" }) {
		t.Errorf("managed by %v", crd.GetManagedFields())
	}
}

func TestTheCRDsPolicyDecidesWhetherDefinitionsAreReplaced(t *testing.T) {
	tm := newTeam(t)
	tm.mayDefine()
	install := func(field string, policy v1alpha1.CRDsPolicy) error {
		c, err := charts.Chart{Files: tm.withCRD(field)}.Load()
		if err != nil {
			t.Fatal(err)
		}
		conn, err := tm.dial(tm.request(nil))
		if err != nil {
			t.Fatal(err)
		}
		return conn.Client.InstallCRDs(t.Context(), c, policy)
	}
	name := "things." + tm.namespace + ".example.com"
	if err := install("a", v1alpha1.CRDsSkip); err != nil {
		t.Fatal(err)
	}
	if _, err := tm.crd(name); !apierrors.IsNotFound(err) {
		t.Errorf("Skip: %v", err)
	}
	var versions []int64
	for _, step := range []struct {
		field  string
		policy v1alpha1.CRDsPolicy
	}{{"a", v1alpha1.CRDsCreate}, {"a", v1alpha1.CRDsCreateReplace}, {"b", v1alpha1.CRDsCreate}, {"b", v1alpha1.CRDsCreateReplace}} {
		if err := install(step.field, step.policy); err != nil {
			t.Fatal(err)
		}
		crd, err := tm.crd(name)
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, crd.GetGeneration())
	}
	if want := []int64{1, 1, 1, 2}; !slices.Equal(versions, want) {
		t.Errorf("generations %v, want %v", versions, want)
	}
	c, err := charts.Chart{Files: sources.ChartFolder(map[string]string{"crds/a.yaml": configMap})}.Load()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tm.dial(tm.request(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Client.InstallCRDs(t.Context(), c, ""); !errors.As(err, new(*fault.NotAllowed)) || !strings.Contains(err.Error(), "ConfigMap/a in web/crds/a.yaml") {
		t.Errorf("what is no definition: %v", err)
	}
}

// TestForeignDefinitionsStay: a chart contains a definition that others made, by hand, as another release or as an app of the same name in
// another project.
func TestForeignDefinitionsStay(t *testing.T) {
	tm := newTeam(t)
	tm.mayDefine()
	name := "things." + tm.namespace + ".example.com"
	install := func(field string, take bool) error {
		c, err := charts.Chart{Files: tm.withCRD(field)}.Load()
		if err != nil {
			t.Fatal(err)
		}
		conn, err := tm.dial(tm.request(nil))
		if err != nil {
			t.Fatal(err)
		}
		conn.Client.Terms.TakeOwnership = take
		conn.Client.Terms.App = "web"
		return conn.Client.InstallCRDs(t.Context(), c, "")
	}
	if err := install("a", false); err != nil {
		t.Fatal(err)
	}
	mark := func(labels, annotations map[string]any) {
		data, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}})
		if err != nil {
			t.Fatal(err)
		}
		info, err := tm.definition(name)
		if err == nil {
			_, err = resource.NewHelper(info.Client, info.Mapping).Patch("", name, types.MergePatchType, data, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	none := map[string]any{cluster.NameAnnotation: nil, cluster.NamespaceAnnotation: nil}
	for _, step := range []struct {
		what                string
		labels, annotations map[string]any
		take, allowed       bool
	}{
		{"another release's", nil, map[string]any{cluster.NameAnnotation: "web", cluster.NamespaceAnnotation: "kubeop-other-shop"}, true, false},
		{"another app's", map[string]any{v1alpha1.TenantLabel: "other", v1alpha1.ProjectLabel: "shop", decide.AppLabel: "web"}, none, true, false},
		{"made by hand", map[string]any{v1alpha1.TenantLabel: nil, v1alpha1.ProjectLabel: nil, decide.AppLabel: nil}, none, false, false},
		{"made by hand, with takeOwnership", nil, none, true, false},
		{"handed over", nil, map[string]any{cluster.NameAnnotation: "web", cluster.NamespaceAnnotation: tm.namespace}, false, true},
	} {
		mark(step.labels, step.annotations)
		if err := install("a", false); err != nil {
			t.Errorf("%s, as the chart has it: %v", step.what, err)
		}
		err := install("b", step.take)
		if step.allowed != (err == nil) || err != nil && (!errors.As(err, new(*fault.NotAllowed)) || !strings.Contains(err.Error(), "administrators', and takeOwnership does not")) {
			t.Errorf("%s: %v", step.what, err)
		}
	}
}

// TestForceDeletesNoDefinition: a chart contains a change that the API server always refuses.
func TestForceDeletesNoDefinition(t *testing.T) {
	tm := newTeam(t)
	tm.mayDefine()
	install := func(definition string) error {
		c, err := charts.Chart{Files: sources.ChartFolder(map[string]string{"crds/thing.yaml": definition})}.Load()
		if err != nil {
			t.Fatal(err)
		}
		conn, err := tm.dial(tm.request(nil))
		if err != nil {
			t.Fatal(err)
		}
		conn.Client.Terms.Force = true
		return conn.Client.InstallCRDs(t.Context(), c, "")
	}
	if err := install(tm.definitionOf("a")); err != nil {
		t.Fatal(err)
	}
	before, err := tm.crd("things." + tm.namespace + ".example.com")
	if err != nil {
		t.Fatal(err)
	}
	err = install(strings.Replace(tm.definitionOf("a"), "scope: Namespaced", "scope: Cluster", 1))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "force does not delete a CustomResourceDefinition") {
		t.Errorf("got %v", err)
	}
	if after, err := tm.crd(before.GetName()); err != nil || after.GetUID() != before.GetUID() || after.GetDeletionTimestamp() != nil {
		t.Errorf("the definition was replaced: %v, %v", after, err)
	}
}

// A chart's hook has the name of a cluster-scoped object that administrators made. Helm deletes an object with a hook's name before it
// creates the hook.
func TestAHookDeletesNoClusterScopedObjectOfOthers(t *testing.T) {
	tm := newTeam(t)
	tm.mayDefine()
	classes := tm.admin.SchedulingV1().PriorityClasses()
	before, err := classes.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: tm.namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hook := "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: " + tm.namespace + ", annotations: {helm.sh/hook: pre-install}}\nvalue: 1\n"
	r := tm.request(sources.ChartFolder(fourObjects(map[string]string{"templates/hook.yaml": hook})))
	r.Policy.Admit = func(objects []*unstructured.Unstructured) error {
		for _, o := range objects {
			o.SetLabels(map[string]string{decide.AppLabel: "shop"})
		}
		return nil
	}
	r.Actions.Install.TakeOwnership = true
	r.Actions.Remediation = v1alpha1.HelmRemediation{Retries: new(int32), Strategy: v1alpha1.RemediationNone}
	if out := tm.settle(r); out.Failed == nil || !strings.Contains(out.Failed.Error(), "administrators', and takeOwnership does not") {
		t.Errorf("got %v", out.Failed)
	}
	if after, err := classes.Get(t.Context(), tm.namespace, metav1.GetOptions{}); err != nil || after.UID != before.UID {
		t.Errorf("it was replaced: %v, %v", after, err)
	}
	if err := classes.Delete(t.Context(), tm.namespace, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// asked lists the paths that were requested.
type asked struct {
	mu    sync.Mutex
	paths []string
}

func (a *asked) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.paths = append(a.paths, r.URL.Path)
		return next.RoundTrip(r)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCapabilitiesAreRequestedOnce(t *testing.T) {
	t.Parallel()
	var all asked
	config := rest.CopyConfig(env.Config)
	config.Wrap(all.wrap)
	plain, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	discovered := cached.NewMemCacheClient(plain)
	e := New(Options{Config: config, Discovery: discovered, Mapper: restmapper.NewDeferredDiscoveryRESTMapper(discovered), Holder: "me"})
	for range 3 {
		caps, err := e.kinds.Capabilities()
		if err != nil || !caps.APIVersions.Has("apps/v1/Deployment") || caps.KubeVersion.Version == "" {
			t.Fatalf("%v, %v", caps, err)
		}
	}
	if want := []string{"/version", "/api", "/apis"}; !slices.Equal(all.paths, want) {
		t.Errorf("asked %v, want %v", all.paths, want)
	}
	e.Refresh()
	if len(all.paths) != 3 {
		t.Errorf("Refresh itself asked %v", all.paths[3:])
	}
	if _, err := e.kinds.Capabilities(); err != nil || len(all.paths) != 6 {
		t.Errorf("after Refresh: %v, %v", err, all.paths)
	}
}
