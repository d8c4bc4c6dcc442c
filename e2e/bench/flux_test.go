package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func fluxOf(kind string) *fluxSettings {
	return &fluxSettings{
		kind: kind, namespace: "bench", chartURL: "oci://registry.example.com/charts", gitURL: "https://git.example.com/bench.git", gitBranch: "main",
	}
}

// text is an object as YAML.
func text(t *testing.T, o *unstructured.Unstructured) []byte {
	t.Helper()
	out, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFluxSourcesAreSources reads the sources as Flux's own types.
func TestFluxSourcesAreSources(t *testing.T) {
	chart := &sourcev1.OCIRepository{}
	if err := yaml.UnmarshalStrict(text(t, fluxOf(helmRelease).source()), chart); err != nil {
		t.Fatal(err)
	}
	if chart.Spec.URL != "oci://registry.example.com/charts/reference" || chart.Spec.Reference.Tag != chartVersion || chart.GetLayerOperation() != sourcev1.OCILayerCopy || chart.Spec.Insecure {
		t.Errorf("got %+v", chart.Spec)
	}
	plain := fluxOf(helmRelease)
	plain.insecure = true
	if err := yaml.UnmarshalStrict(text(t, plain.source()), chart); err != nil || !chart.Spec.Insecure {
		t.Errorf("%v, %+v", err, chart.Spec)
	}
	repository := fluxOf(helmRelease)
	repository.chartURL = "https://charts.example.com"
	index := &sourcev1.HelmRepository{}
	if err := yaml.UnmarshalStrict(text(t, repository.source()), index); err != nil || index.Spec.URL != "https://charts.example.com" || index.Namespace != "bench" {
		t.Errorf("%v, %+v", err, index)
	}
	git := &sourcev1.GitRepository{}
	if err := yaml.UnmarshalStrict(text(t, fluxOf(kustomization).source()), git); err != nil || git.Spec.URL != "https://git.example.com/bench.git" || git.Spec.Reference.Branch != "main" {
		t.Errorf("%v, %+v", err, git)
	}
	if git.GroupVersionKind() != sourcev1.GroupVersion.WithKind(sourcev1.GitRepositoryKind) {
		t.Errorf("it is a %s", git.GroupVersionKind())
	}
}

func TestAnAppBecomesTheObjectsOfFlux(t *testing.T) {
	a := app{Name: "app-0001", Turn: 2, Interval: time.Minute}
	repository := fluxOf(helmRelease)
	repository.chartURL = "https://charts.example.com"
	tests := map[string]struct {
		flux *fluxSettings
		want string
	}{
		"a chart of a registry": {fluxOf(helmRelease), `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app-0001, namespace: bench}
spec:
  interval: 1m0s
  releaseName: app-0001
  chartRef: {kind: OCIRepository, name: bench}
  values: {turn: 2, padding: {}}
`},
		"a chart of a repository": {repository, `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app-0001, namespace: bench}
spec:
  interval: 1m0s
  releaseName: app-0001
  chart: {spec: {chart: reference, version: 0.1.0, sourceRef: {kind: HelmRepository, name: bench}}}
  values: {turn: 2, padding: {}}
`},
		"a folder": {fluxOf(kustomization), `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app-0001, namespace: bench}
spec:
  interval: 1m0s
  path: ./bench/app-0001
  prune: true
  targetNamespace: bench
  sourceRef: {kind: GitRepository, name: bench}
`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var want, got map[string]any
			if err := yaml.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			o := test.flux.app(a)
			o = o.DeepCopy() // panics if it contains types that an unstructured object may not contain
			if err := yaml.Unmarshal(text(t, o), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestManifestsAreThoseOfTheChart checks that a Kustomization delivers the same four objects.
func TestManifestsAreThoseOfTheChart(t *testing.T) {
	files, err := manifests(app{Name: "app-0001", Turn: 7}, fluxFolder("app-0001"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for name, content := range files {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal(content, &o.Object); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, content)
		}
		if o.GetName() != "app-0001" || !strings.HasPrefix(name, "bench/app-0001/") {
			t.Errorf("%s is %s", name, o.GetName())
		}
		kinds[o.GetKind()] = true
		turn, _, err := unstructured.NestedString(o.Object, "spec", "template", "metadata", "annotations", "turn")
		if o.GetKind() == "Deployment" && (turn != "7" || err != nil) {
			t.Errorf("the Deployment's turn is %q (%v)", turn, err)
		}
	}
	want := map[string]bool{"ServiceAccount": true, "Service": true, "Deployment": true, "Ingress": true}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheStatusOfAHelmReleaseShowsItsProgress(t *testing.T) {
	a := app{Name: "a", Turn: 2, Interval: time.Minute}
	f := &flux{fluxSettings: *fluxOf(helmRelease)}
	o := f.app(a)
	o.SetGeneration(2)
	condition := func(kind string, generation int64) any {
		return map[string]any{"type": kind, "status": "True", "observedGeneration": generation, "message": "why"}
	}
	if got := f.progress(o); got.Input != a.input() || got.Applied || got.Ready {
		t.Errorf("not looked at: %+v", got)
	}
	o.Object["status"] = map[string]any{"observedGeneration": int64(1), "conditions": []any{condition("Released", 1), condition("Ready", 1)}}
	if got := f.progress(o); got.Applied || got.Ready {
		t.Errorf("ready with what was there before: %+v", got)
	}
	o.Object["status"] = map[string]any{"observedGeneration": int64(2), "lastHandledReconcileAt": "now", "conditions": []any{condition("Released", 2), condition("Ready", 2)}}
	if got := f.progress(o); !got.Applied || !got.Ready || got.Handled != "now" || got.Message != "why" {
		t.Errorf("ready: %+v", got)
	}
}

// TestTheStatusOfAKustomizationHasTheAppliedCommit pushes two turns and checks which one the status reports as applied.
func TestTheStatusOfAKustomizationHasTheAppliedCommit(t *testing.T) {
	a := app{Name: "app-0001", Turn: 1, Interval: time.Minute}
	f := &flux{fluxSettings: *fluxOf(kustomization), turns: map[string]map[string]int{}}
	f.gitClone = newClone(t)
	var commits []string
	for range 2 {
		if err := f.push(t.Context(), []app{a}); err != nil {
			t.Fatal(err)
		}
		commit, err := f.git(t.Context(), "rev-parse", "origin/main")
		if err != nil {
			t.Fatal(err)
		}
		commits = append(commits, commit)
		a.Turn++
	}
	for i, commit := range commits {
		o := f.app(a)
		o.Object["status"] = map[string]any{"lastAppliedRevision": "main@sha1:" + commit}
		if got := f.progress(o).Input; got != inputOf(i+1, time.Minute) {
			t.Errorf("commit %d: %s", i, got)
		}
	}
}

// newClone returns a clone of an empty repository.
func newClone(t *testing.T) string {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	for _, person := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+person+"_NAME", "dev")
		t.Setenv("GIT_"+person+"_EMAIL", "dev@acme.example")
	}
	origin, clone := t.TempDir(), t.TempDir()
	for _, args := range [][]string{{"init", "--quiet", "--bare", "--initial-branch", "main", origin}, {"clone", "--quiet", origin, clone}} {
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
	return clone
}
