package examples

import (
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/render/manifests"
	"github.com/kubeop/kubeop/delivery/render/workload"
	"github.com/kubeop/kubeop/gitops/preview"
	"github.com/kubeop/kubeop/gitops/tree"
)

var places = Places{GitURL: "https://git.example", Registry: "registry.example"}

type commit struct{ fstest.MapFS }

func (commit) Digest(path string) (string, error) { return "digest of " + path, nil }

func (c commit) Sub(path string) (tree.Files, error) {
	sub := commit{fstest.MapFS{}}
	for name, file := range c.MapFS {
		if below, ok := strings.CutPrefix(name, path+"/"); ok {
			sub.MapFS[below] = file
		}
	}
	return sub, nil
}

func repository(t *testing.T, name string) commit {
	t.Helper()
	files, err := Repository(name, places)
	if err != nil {
		t.Fatal(err)
	}
	c := commit{fstest.MapFS{}}
	for file, text := range files {
		c.MapFS[file] = &fstest.MapFile{Data: text}
	}
	return c
}

func read(t *testing.T, name string, scope tree.Scope) *tree.Tree {
	t.Helper()
	reader, err := tree.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	got := reader.Read(repository(t, name), scope, nil)
	got.All(func(p tree.Problem) bool {
		t.Errorf("problem: %s", p)
		return true
	})
	return got
}

// declared returns the objects of one kind that a tree declares.
func declared[T client.Object](t *tree.Tree) []T {
	var all []T
	t.Walk(func(n tree.Node) bool {
		if n.Declared() {
			if o, ok := t.Object(n, "main@sha1:1").(T); ok {
				all = append(all, o)
			}
		}
		return true
	})
	return all
}

func TestPlatformDeclaresTheTenant(t *testing.T) {
	got := read(t, "platform", tree.Scope{Repository: "platform"})
	if c := got.Counts(); c.Tenants != 1 || c.Policies != 1 || c.PriceLists != 1 || c.Objects() != 3 || c.Problems != 0 {
		t.Fatalf("want the one tenant, its policy and a price list, got %+v", c)
	}
	if url := declared[*v1alpha1.Tenant](got)[0].Spec.Repository.URL; url != "https://git.example/acme.git" {
		t.Errorf("the tenant is bound to %s, want %q", url, "https://git.example/acme.git")
	}
}

func TestAcmeDeclaresOneAppOfEachType(t *testing.T) {
	got := read(t, "acme", tree.Scope{Repository: "acme", Tenant: "acme"})
	types := map[string]v1alpha1.AppType{}
	for _, a := range declared[*v1alpha1.App](got) {
		if a.Namespace == "kubeop-acme-images" {
			if a.Spec.Type != v1alpha1.AppImage {
				t.Errorf("%s is of type %s, want %s", a.Name, a.Spec.Type, v1alpha1.AppImage)
			}
			continue
		}
		types[a.Namespace+"/"+a.Name] = a.Spec.Type
	}
	want := map[string]v1alpha1.AppType{
		"kubeop-acme-shop/web": v1alpha1.AppImage, "kubeop-acme-shop/docs": v1alpha1.AppGit,
		"kubeop-acme-shop/api": v1alpha1.AppHelm, "kubeop-acme-shop/tools": v1alpha1.AppRaw,
	}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("apps (-want +got):\n%s", diff)
	}
}

// TestStagesHavePreviewsAndAPromotion checks that the sample would do what its README says.
func TestStagesHavePreviewsAndAPromotion(t *testing.T) {
	got := read(t, Stages, tree.Scope{Repository: "acme", Tenant: "acme"})
	apps := map[string]*v1alpha1.App{}
	for _, a := range declared[*v1alpha1.App](got) {
		apps[a.Namespace+"/"+a.Name] = a
	}
	stages := got.Parents()
	staging, production := stages["staging"], stages["production"]
	if len(stages) != 2 || staging == nil || production == nil || staging.Spec.Previews == nil || production.Spec.Promotion == nil {
		t.Fatalf("the projects are %v", stages)
	}
	if stages[production.Spec.Promotion.From] != staging || apps["kubeop-acme-staging/web"] == nil || apps["kubeop-acme-production/web"] == nil {
		t.Errorf("%+v promotes nothing to %v", production.Spec.Promotion, apps)
	}
	const branch = "feature/login"
	if !preview.Matches(staging.Spec.Previews.Branches, branch) {
		t.Errorf("%s has no preview", branch)
	}
	app := apps["kubeop-acme-staging/web"]
	preview.Adapt(app, "staging", preview.Name("staging", branch), staging.Spec.Previews.Host)
	if !strings.HasPrefix(app.Spec.Host, "feature-login-") || !strings.HasSuffix(app.Spec.Host, ".shop.example.com") {
		t.Errorf("the host of the preview is %s", app.Spec.Host)
	}
}

// What the three types that render here become must run under Pod Security "restricted" and be ready quickly. The chart
// is rendered where Helm is, in the end-to-end tests; its pod is the same text.
func TestPodsAreRestrictedAndReadyQuickly(t *testing.T) {
	acme := repository(t, "acme")
	apps := map[string]*v1alpha1.App{}
	for _, a := range declared[*v1alpha1.App](read(t, "acme", tree.Scope{Repository: "acme", Tenant: "acme"})) {
		apps[a.Name] = a
	}
	renders := map[string]func() ([]*unstructured.Unstructured, error){
		"web": func() ([]*unstructured.Unstructured, error) { return workload.Render(apps["web"], workload.Settings{}) },
		"docs": func() ([]*unstructured.Unstructured, error) {
			return build.Folder(repository(t, "docs").MapFS, ".", &v1alpha1.Build{}, budget.App{})
		},
		"tools": func() ([]*unstructured.Unstructured, error) {
			beside, err := fs.Sub(acme.MapFS, "projects/shop/apps/tools")
			if err != nil {
				return nil, err
			}
			return manifests.Raw(apps["tools"].Spec.Raw, beside, budget.App{})
		},
	}
	for name, objects := range renders {
		t.Run(name, func(t *testing.T) {
			list, err := objects()
			if err != nil {
				t.Fatal(err)
			}
			checkServing(t, name, list)
		})
	}
}

// Each Image app of the project images shows a part of the API; together they show every field.
func TestImagesShowEveryField(t *testing.T) {
	acme := repository(t, "acme")
	shown := map[string]bool{}
	for _, a := range declared[*v1alpha1.App](read(t, "acme", tree.Scope{Repository: "acme", Tenant: "acme"})) {
		if a.Namespace != "kubeop-acme-images" {
			continue
		}
		beside, err := fs.Sub(acme.MapFS, "projects/images/apps/"+a.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := workload.Render(a, workload.Settings{Files: beside, Gateway: workload.GatewayOf("infra/public")}); err != nil {
			t.Errorf("%s: %v", a.Name, err)
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.Spec.Image)
		if err != nil {
			t.Fatal(err)
		}
		for field := range fields {
			shown[field] = true
		}
	}
	for _, of := range reflect.VisibleFields(reflect.TypeFor[v1alpha1.ImageSource]()) {
		field, _, _ := strings.Cut(of.Tag.Get("json"), ",")
		if !of.Anonymous && !shown[field] && field != "imagePullPolicy" && field != "replicas" {
			t.Errorf("no example has %s", field)
		}
	}
}

func checkServing(t *testing.T, name string, list []*unstructured.Unstructured) {
	t.Helper()
	kinds := map[string]*unstructured.Unstructured{}
	for _, o := range list {
		kinds[o.GetKind()] = o
	}
	if kinds["Deployment"] == nil || kinds["Service"] == nil || kinds["Service"].GetName() != name {
		t.Fatalf("want a Deployment and the Service %s, got %v", name, list)
	}
	content, _, _ := unstructured.NestedMap(kinds["Deployment"].Object, "spec", "template", "spec")
	var pod corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &pod); err != nil {
		t.Fatal(err)
	}
	checkRestricted(t, pod)
}

// checkRestricted checks the rules of https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
// that a manifest has to follow actively.
func checkRestricted(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	c := pod.Containers[0]
	if c.Image != "registry.example/hello:v1" || c.ReadinessProbe == nil || c.ReadinessProbe.PeriodSeconds != 1 {
		t.Errorf("image %s, readiness %v", c.Image, c.ReadinessProbe)
	}
	nonRoot := pod.SecurityContext != nil && pod.SecurityContext.RunAsNonRoot != nil && *pod.SecurityContext.RunAsNonRoot
	seccomp := nonRoot && pod.SecurityContext.SeccompProfile != nil &&
		pod.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault
	escalates := c.SecurityContext == nil || c.SecurityContext.AllowPrivilegeEscalation == nil || *c.SecurityContext.AllowPrivilegeEscalation
	if !nonRoot || !seccomp || escalates || c.SecurityContext.Capabilities == nil ||
		!slices.Contains(c.SecurityContext.Capabilities.Drop, "ALL") {
		t.Errorf("the pod would be refused: %+v, %+v", pod.SecurityContext, c.SecurityContext)
	}
}

// The chart's pod is written once more for Helm; it must not drift from the one that is checked above.
func TestChartHasTheSamePod(t *testing.T) {
	template := string(repository(t, "acme").MapFS["projects/shop/apps/api/chart/templates/deployment.yaml"].Data)
	manifest := string(repository(t, "acme").MapFS["projects/shop/apps/tools/manifests/deployment.yaml"].Data)
	for _, part := range []string{"\n      securityContext:", "\n        securityContext:", "\n        readinessProbe:"} {
		if got, want := block(template, part), block(manifest, part); got != want || want == "" {
			t.Errorf("%s differs:\n%s\nwant\n%s", strings.TrimSpace(part), got, want)
		}
	}
	var chart struct{ Name, Version string }
	if err := yaml.Unmarshal(repository(t, "acme").MapFS["projects/shop/apps/api/chart/Chart.yaml"].Data, &chart); err != nil || chart.Name == "" || chart.Version == "" {
		t.Errorf("Chart.yaml: %+v, %v", chart, err)
	}
}

// block returns the lines below a key that are indented deeper than it.
func block(text, key string) string {
	_, after, _ := strings.Cut(text, key+"\n")
	indent := len(key) - len(strings.TrimLeft(key, "\n "))
	var b strings.Builder
	for line := range strings.Lines(after) {
		if len(line)-len(strings.TrimLeft(line, " ")) < indent {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

func TestRepositoryRefusesUnknownNamesAndMissingPlaces(t *testing.T) {
	tests := map[string]struct {
		name   string
		places Places
	}{
		"unknown name":     {name: "nobody", places: places},
		"no Git URL":       {name: "platform", places: Places{Registry: "r"}},
		"no registry":      {name: "docs", places: Places{GitURL: "g"}},
		"out of the files": {name: "../examples", places: places},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if files, err := Repository(tc.name, tc.places); err == nil {
				t.Errorf("got %d files, want an error", len(files))
			}
		})
	}
}

func TestNoPlaceholderIsLeft(t *testing.T) {
	for _, name := range append(Names(), Stages) {
		for file, data := range repository(t, name).MapFS {
			if strings.Contains(string(data.Data), "${") {
				t.Errorf("%s/%s still has a placeholder:\n%s", name, file, data.Data)
			}
		}
	}
}

// TestTheExampleOfAPlatformAppIsValid reads the project.yaml and app.yaml of docs/platform-apps.md.
func TestTheExampleOfAPlatformAppIsValid(t *testing.T) {
	text, err := os.ReadFile("../../docs/platform-apps.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	project, app, ok := strings.Cut(block, "---\n")
	if !ok {
		t.Fatal("the page has no project.yaml and app.yaml")
	}
	reader, err := tree.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	reader.Platform = true
	files := commit{fstest.MapFS{}}
	for name, content := range map[string]string{
		"kubeop.yaml": "layout: v1\n", "platform/cert-manager/project.yaml": project, "platform/cert-manager/apps/cert-manager/app.yaml": app,
	} {
		files.MapFS[name] = &fstest.MapFile{Data: []byte(content)}
	}
	read := reader.Read(files, tree.Scope{Repository: v1alpha1.PlatformRepository}, nil)
	read.All(func(p tree.Problem) bool {
		t.Error(p)
		return true
	})
	if got := read.Counts(); got.Projects != 1 || got.Apps != 1 {
		t.Errorf("the example declares %+v", got)
	}
}
