package v1alpha1_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// TestTheAPIServerRefuses creates objects, and changes them, as the API server must not let anyone. The rules that need no
// former object are tested file by file in gitops/tree too, which holds them before anything is applied.
func TestTheAPIServerRefuses(t *testing.T) {
	c := install(t)
	const app = "{apiVersion: paas.kubeop.io/v1alpha1, kind: App, metadata: {name: %s, namespace: default}, spec: %s}"
	const repository = "{apiVersion: paas.kubeop.io/v1alpha1, kind: Repository, metadata: {name: %s}, spec: %s}"
	const tenant = "{apiVersion: paas.kubeop.io/v1alpha1, kind: Tenant, metadata: {name: %s}, spec: %s}"
	const policy = "{apiVersion: paas.kubeop.io/v1alpha1, kind: Policy, metadata: {name: p}, spec: %s}"
	const project = "{apiVersion: paas.kubeop.io/v1alpha1, kind: Project, metadata: {name: %s, namespace: default}, spec: %s}"
	cases := map[string]struct {
		// first is created, then changed to second; with second empty, first itself is refused. want is "" for no error.
		first, second, want string
	}{
		"an app of an image":               {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web}}"), "", ""},
		"another type":                     {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web}}"), fmt.Sprintf(app, "web", "{type: Raw, raw: {path: m}}"), "type is immutable"},
		"another release name":             {fmt.Sprintf(app, "web", "{type: Helm, helm: {path: chart, releaseName: a}}"), fmt.Sprintf(app, "web", "{type: Helm, helm: {path: chart, releaseName: b}}"), ""},
		"a release name taken away":        {fmt.Sprintf(app, "web", "{type: Helm, helm: {path: chart, releaseName: a}}"), fmt.Sprintf(app, "web", "{type: Helm, helm: {path: chart}}"), ""},
		"another path of the chart":        {fmt.Sprintf(app, "web", "{type: Helm, helm: {path: chart, releaseName: a}}"), fmt.Sprintf(app, "web", "{type: Helm, helm: {path: other, releaseName: a}}"), ""},
		"a member of another type":         {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web}, raw: {path: m}}"), "", "raw is required when type is Raw, and only then"},
		"no member":                        {fmt.Sprintf(app, "web", "{type: Git}"), "", "git is required when type is Git, and only then"},
		"a host without ports":             {fmt.Sprintf(app, "web", "{type: Image, host: a.example, image: {reference: web}}"), "", "host needs image.ports"},
		"a chart without repository":       {fmt.Sprintf(app, "web", "{type: Helm, helm: {path: chart, chart: web}}"), "", "chart is required with repository, and only then"},
		"a path out of the folder":         {fmt.Sprintf(app, "web", "{type: Raw, raw: {path: ../other}}"), "", "path must stay inside the app's folder"},
		"a local URL":                      {fmt.Sprintf(app, "web", "{type: Git, git: {url: \"file:///etc\"}}"), "", "spec.git.url"},
		"an interval that is none":         {fmt.Sprintf(app, "web", "{type: Raw, raw: {path: m}, interval: often}"), "", "spec.interval"},
		"an interval that never rests":     {fmt.Sprintf(app, "web", "{type: Raw, raw: {path: m}, interval: 10ms}"), "", "interval must be at least 1s"},
		"a timeout of an hour":             {fmt.Sprintf(app, "web", "{type: Raw, raw: {path: m}, timeout: 1h}"), "", ""},
		"a timeout past an hour":           {fmt.Sprintf(app, "web", "{type: Raw, raw: {path: m}, timeout: 61m}"), "", "timeout must be at least 1s and at most 1h"},
		"a timeout of nothing":             {fmt.Sprintf(app, "web", "{type: Raw, raw: {path: m}, timeout: 0s}"), "", "timeout must be at least 1s and at most 1h"},
		"pruning a release":                {fmt.Sprintf(app, "web", "{type: Helm, helm: {path: chart}, prune: true}"), "", "prune is not for type Helm"},
		"keeping all of a release":         {fmt.Sprintf(app, "web", "{type: Helm, helm: {path: chart}, prune: false}"), "", "prune is not for type Helm"},
		"keeping what left a folder":       {fmt.Sprintf(app, "web", "{type: Raw, raw: {path: m}, prune: false}"), "", ""},
		"a probe without a port":           {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web, probes: {readiness: {path: /}}}}"), "", "a probe by path or tcp needs a port"},
		"a liveness probe without one":     {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web, probes: {liveness: {tcp: true}}}}"), "", "a probe by path or tcp needs a port"},
		"a startup probe without one":      {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web, probes: {liveness: {command: [x]}, startup: {tcp: true}}}}"), "", "a probe by path or tcp needs a port"},
		"probes that need no port":         {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web, probes: {readiness: {tcp: true, port: 80}, liveness: {command: [x]}}}}"), "", ""},
		"a probe of the first port":        {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web, ports: [{name: http, port: 80}], probes: {readiness: {path: /}}}}"), "", ""},
		"a host on UDP":                    {fmt.Sprintf(app, "web", "{type: Image, host: a.example, image: {reference: web, ports: [{name: dns, port: 53, protocol: UDP}, {name: http, port: 80}]}}"), "", "host needs the first of image.ports to be TCP"},
		"a host on TCP":                    {fmt.Sprintf(app, "web", "{type: Image, host: a.example, image: {reference: web, ports: [{name: http, port: 80}, {name: dns, port: 53, protocol: UDP}]}}"), "", ""},
		"two ports that are one":           {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web, ports: [{name: a, port: 80}, {name: b, port: 8080, servicePort: 80}]}}"), "", "the same port of the Service"},
		"a port by two protocols":          {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web, ports: [{name: a, port: 53}, {name: b, port: 53, protocol: UDP}]}}"), "", ""},
		"one port as two of the Service":   {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web, ports: [{name: a, port: 80}, {name: b, port: 80, servicePort: 81}]}}"), "", ""},
		"an insecure Helm repository":      {fmt.Sprintf(app, "web", "{type: Helm, helm: {repository: \"https://a.example\", chart: web, insecure: true}}"), "", "insecure is for an oci:// repository only"},
		"an insecure folder":               {fmt.Sprintf(app, "web", "{type: Helm, helm: {path: chart, insecure: true}}"), "", "insecure is for an oci:// repository only"},
		"an insecure registry":             {fmt.Sprintf(app, "web", "{type: Helm, helm: {repository: \"oci://a.example/x\", chart: web, insecure: true}}"), "", ""},
		"a claim that is made and exists":  {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web, volumes: [{name: a, mountPath: /a, size: 1Gi, claimName: b}]}}"), "", "not both"},
		"a claim that exists":              {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web, volumes: [{name: a, mountPath: /a, claimName: b, accessMode: ReadWriteMany}]}}"), "", ""},
		"a class of a claim that exists":   {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web, volumes: [{name: a, mountPath: /a, claimName: b, storageClassName: c}]}}"), "", "storageClassName needs a size"},
		"an access mode of no claim":       {fmt.Sprintf(app, "web", "{type: Image, image: {reference: web, volumes: [{name: a, mountPath: /a, accessMode: ReadWriteMany}]}}"), "", "accessMode needs a size or a claimName"},
		"claims of another app":            {fmt.Sprintf(app, "web", "{type: Image, movedFrom: {app: old}, image: {reference: web}}"), "", ""},
		"claims of another for manifests":  {fmt.Sprintf(app, "web", "{type: Raw, movedFrom: {app: old}, raw: {path: m}}"), "", "movedFrom is for type Image"},
		"a claim policy that is none":      {fmt.Sprintf(project, "shop", "{claimDeletionPolicy: Orphan}"), "", "claimDeletionPolicy"},
		"a quantity that is none":          {fmt.Sprintf(project, "shop", "{quota: {pods: many}}"), "", "spec.quota.pods"},
		"a project's name too long":        {fmt.Sprintf(project, strings.Repeat("a", 36), "{}"), "", "at most 35"},
		"a tenant's name with a dash":      {fmt.Sprintf(tenant, "a-b", "{}"), "", "without a dash"},
		"a reserved tenant":                {fmt.Sprintf(tenant, "system", "{}"), "", "reserved"},
		"an owner that is Kubernetes":      {fmt.Sprintf(tenant, "a", "{owners: [{kind: Group, name: \"system:masters\"}]}"), "", "belong to Kubernetes"},
		"an egress that is no range":       {fmt.Sprintf(tenant, "a", "{egress: [everywhere]}"), "", "CIDR"},
		"a policy's egress, no range":      {fmt.Sprintf(policy, "{egress: {cidrs: [203.0.113.0]}}"), "", "every entry of cidrs must be a CIDR"},
		"a policy's egress, backwards":     {fmt.Sprintf(policy, "{egress: {cidrs: [0.0.0.0/0], ports: [{port: 9, endPort: 8}]}}"), "", "endPort must not be below port"},
		"a policy's egress":                {fmt.Sprintf(policy, "{egress: {cidrs: [0.0.0.0/0, \"::/0\"], ports: [{port: 8, endPort: 8}]}}"), "", ""},
		"a repository for another tenant":  {fmt.Sprintf(repository, "a", "{url: \"https://a.example\", tenant: a}"), fmt.Sprintf(repository, "a", "{url: \"https://a.example\", tenant: b}"), "equal to its name"},
		"a repository at another address":  {fmt.Sprintf(repository, "a", "{url: \"https://a.example\", tenant: a}"), fmt.Sprintf(repository, "a", "{url: \"https://b.example\", tenant: a}"), ""},
		"the platform's repository":        {fmt.Sprintf(repository, "platform", "{url: \"https://a.example\"}"), "", ""},
		"the platform's with a tenant":     {fmt.Sprintf(repository, "platform", "{url: \"https://a.example\", tenant: platform}"), "", "named platform has no spec.tenant"},
		"the platform's, given to one":     {fmt.Sprintf(repository, "platform", "{url: \"https://a.example\"}"), fmt.Sprintf(repository, "platform", "{url: \"https://a.example\", tenant: a}"), "named platform has no spec.tenant"},
		"a second platform repository":     {fmt.Sprintf(repository, "a", "{url: \"https://a.example\"}"), "", "every other one has spec.tenant equal to its name"},
		"one that becomes the platform's":  {fmt.Sprintf(repository, "a", "{url: \"https://a.example\", tenant: a}"), fmt.Sprintf(repository, "a", "{url: \"https://a.example\"}"), "every other one has spec.tenant equal to its name"},
		"a repository of another tenant":   {fmt.Sprintf(repository, "a", "{url: \"https://a.example\", tenant: b}"), "", "every other one has spec.tenant equal to its name"},
		"a repository of no tenant's name": {fmt.Sprintf(repository, "a", "{url: \"https://a.example\", tenant: a-b}"), "", "spec.tenant"},
		"a repository of an empty tenant":  {fmt.Sprintf(repository, "platform", "{url: \"https://a.example\", tenant: \"\"}"), "", "spec.tenant"},
		"a fetch that never ends":          {fmt.Sprintf(repository, "a", "{url: \"https://a.example\", tenant: a, timeout: 1h1s}"), "", "timeout must be at least 1s and at most 1h"},
	}
	for name, each := range cases {
		t.Run(name, func(t *testing.T) { judged(t, c, each.first, each.second, each.want) })
	}
}

// judged creates an object, and changes it if there is a second. The last write must fail with the text want; with "", it must succeed.
func judged(t *testing.T, c client.Client, one, other, want string) {
	t.Helper()
	first := parse(t, one)
	err := c.Create(t.Context(), first)
	if other != "" {
		if err != nil {
			t.Fatal(err)
		}
		second := parse(t, other)
		second.SetResourceVersion(first.GetResourceVersion())
		err = c.Update(t.Context(), second)
	}
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("got %v, want %q", err, want)
	}
	if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), first)); err != nil {
		t.Error(err)
	}
}

func TestTheAPIServerSetsTheDefaultsOfAnApp(t *testing.T) {
	c := install(t)
	app := parse(t, "{apiVersion: paas.kubeop.io/v1alpha1, kind: App, metadata: {name: defaults, namespace: default}, spec: {type: Raw, raw: {path: m}}}")
	if err := c.Create(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]any{
		"spec.interval": "10m", "spec.timeout": "5m", "spec.prune": nil, "spec.deletionPolicy": "Delete", "status.observedGeneration": int64(-1),
	} {
		got, _, _ := unstructured.NestedFieldNoCopy(app.Object, strings.Split(path, ".")...)
		if got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}

// TestNoFieldIsSilentlyIgnored looks for fields that the API server would accept although they have no effect.
func TestNoFieldIsSilentlyIgnored(t *testing.T) {
	c := install(t)
	for kind, namespace := range map[string]string{"Tenant": "", "Project": "default"} {
		t.Run(kind, func(t *testing.T) {
			o := parse(t, fmt.Sprintf("{apiVersion: paas.kubeop.io/v1alpha1, kind: %s, metadata: {name: idle}, spec: {timeout: 1m}}", kind))
			o.SetNamespace(namespace)
			err := client.WithFieldValidation(c, metav1.FieldValidationStrict).Create(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), `unknown field "spec.timeout"`) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// install applies the definitions that the chart installs and waits until they are served.
func install(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../charts/kubeop/crds/*.yaml")
	if err != nil || len(files) != 10 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := parse(t, string(content))
		if err := client.IgnoreAlreadyExists(c.Create(t.Context(), crd)); err != nil {
			t.Fatal(err)
		}
		awaitServed(t, c, crd)
	}
	return c
}

// awaitServed waits until the objects of a definition can be listed.
func awaitServed(t *testing.T, c client.Client, crd *unstructured.Unstructured) {
	t.Helper()
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
	var err error
	for range 200 {
		if err = c.List(t.Context(), list); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s is not served: %v", crd.GetName(), err)
}
