package differ

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestDifferencesAreOnlyThoseThatSomebodyMade(t *testing.T) {
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
	annotated := "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {%s}}\n"
	const kept = `kubectl.kubernetes.io/last-applied-configuration: "data: Yg=="`
	tests := map[string]struct {
		want, have string
		changes    []Change
	}{
		"none":                 {configMap, configMap, nil},
		"what the server does": {configMap + "status: {a: 1}\n", configMap + "status: {a: 2}\n", nil},
		"and its metadata": {
			"kind: A\nmetadata: {generation: 1, resourceVersion: '1', managedFields: [{manager: a}]}\n", "kind: A\nmetadata: {generation: 2, resourceVersion: '2', managedFields: [{manager: b}]}\n", nil,
		},
		"a status that is none": {configMap + "x: {status: 1}\n", configMap + "x: {status: 2}\n", []Change{{"/x/status", "1", "2"}}},
		"null is not nothing":   {configMap + "x: null\n", configMap, []Change{{"/x", "null", ""}}},
		"a Secret of others":    {"apiVersion: a.io/v1\nkind: Secret\ndata: {a: b}\n", "apiVersion: a.io/v1\nkind: Secret\ndata: {a: c}\n", []Change{{"/data/a", `"b"`, `"c"`}}},
		"what a Secret was given": {secret + "stringData: {a: b}\n", secret + "stringData: {a: c}\ndatabase: d\n", []Change{
			{"/database", "", `"d"`}, {"/stringData/a", "***", "***"},
		}},
		"changed":               {configMap + "data: {a: b}\n", configMap + "data: {a: c}\n", []Change{{"/data/a", `"b"`, `"c"`}}},
		"taken away":            {configMap + "data: {a: b}\n", configMap, []Change{{"/data", `{"a":"b"}`, ""}}},
		"added":                 {configMap + "data: {a: b}\n", configMap + "data: {a: b, a/b~c: d}\n", []Change{{"/data/a~1b~0c", "", `"d"`}}},
		"in a list":             {configMap + "x: [1, {z: 2}]\n", configMap + "x: [1, {z: 3}]\n", []Change{{"/x/1/z", "2", "3"}}},
		"a list's length":       {configMap + "x: [1]\n", configMap + "x: [1, 2]\n", []Change{{"/x", "[1]", "[1,2]"}}},
		"a secret":              {secret + "data: {a: Yg==}\n", secret + "data: {a: Yw==}\n", []Change{{"/data/a", "***", "***"}}},
		"a whole secret":        {secret + "data: {a: Yg==}\n", secret, []Change{{"/data", "***", ""}}},
		"one that is no longer": {"kind: Secret\ndata: {a: Yg==}\n", "kind: Other\ndata: {a: Yw==}\n", []Change{{"/data/a", "***", "***"}, {"/kind", `"Secret"`, `"Other"`}}},
		"one that was none":     {"kind: Other\ndata: {a: Yg==}\n", "kind: Secret\ndata: {a: Yw==}\n", []Change{{"/data/a", "***", "***"}, {"/kind", `"Other"`, `"Secret"`}}},
		"what kubectl keeps of a secret": {
			fmt.Sprintf(annotated, "x: z"), fmt.Sprintf(annotated, "x: z, "+kept),
			[]Change{{"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration", "", "***"}},
		},
		"all that it keeps": {secret, fmt.Sprintf(annotated, "x: z, "+kept), []Change{
			{"/metadata/annotations", "", `{"kubectl.kubernetes.io/last-applied-configuration":"***","x":"z"}`},
		}},
		"a map in the place of a text": {configMap + "x: {a: b}\n", configMap + "x: text\n", []Change{{"/x", `{"a":"b"}`, `"text"`}}},
		"sorted by path":               {configMap + "x: {b: 1}\nx-y: 1\n", configMap + "x: {b: 2}\nx-y: 2\n", []Change{{"/x-y", "1", "2"}, {"/x/b", "1", "2"}}},
		"a long text": {configMap + "x: " + strings.Repeat("a", maxChangeValue-2) + "\n", configMap + "x: " + strings.Repeat("a", maxChangeValue-1) + "\n", []Change{
			{"/x", `"` + strings.Repeat("a", maxChangeValue-2) + `"`, `"` + strings.Repeat("a", maxChangeValue-1) + "…"},
		}},
		"cut within a character": {configMap + "x: 1\n", configMap + "x: " + strings.Repeat("a", maxChangeValue-2) + "ää\n", []Change{{"/x", "1", `"` + strings.Repeat("a", maxChangeValue-2) + "…"}}},
		"a sensitive string":     {configMap + "x: pass=hunter22\n", configMap + "x: 1\n", []Change{{"/x", `"pass=***"`, "1"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Compare(object(t, test.want), object(t, test.have), func(text string) string { return strings.ReplaceAll(text, "hunter22", "***") })
			if diff := cmp.Diff(test.changes, got); diff != "" && len(test.changes)+len(got) > 0 {
				t.Error(diff)
			}
		})
	}
}

// TestOnlySomeDifferencesAreReported: the first of them by their paths.
func TestOnlySomeDifferencesAreReported(t *testing.T) {
	var want, have strings.Builder
	for i := range maxChanges + 5 {
		fmt.Fprintf(&want, "  f%02d: 1\n", i)
		fmt.Fprintf(&have, "  f%02d: 2\n", i)
	}
	got := Compare(object(t, configMap+"data:\n"+want.String()), object(t, configMap+"data:\n"+have.String()), func(text string) string { return text })
	if len(got) != 20 || got[0].Path != "/data/f00" || got[19].Path != "/data/f19" {
		t.Errorf("got %d of them: %v", len(got), got)
	}
}

func TestIgnoredFieldsAreLeftAsTheyAre(t *testing.T) {
	live := object(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: team, labels: {tier: front}, annotations: {x/y: z}}\nspec: {replicas: 7, list: [{a: 1}, {a: 2}]}\n")
	want := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1, list: [{a: 1}, {a: 3}]}\n"
	all := []v1alpha1.IgnoreRule{}
	rule := func(path string, target *kustomize.Selector) []v1alpha1.IgnoreRule {
		return append(all, v1alpha1.IgnoreRule{Paths: []string{path}, Target: target})
	}
	const yielded = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 7, list: [{a: 1}, {a: 3}]}\n"
	tests := map[string]struct {
		rules []v1alpha1.IgnoreRule
		want  string
		all   bool
	}{
		"no rule":            {nil, want, false},
		"every object":       {rule("/spec/replicas", nil), yielded, false},
		"by kind":            {rule("/spec/replicas", &kustomize.Selector{Group: "apps", Kind: "Deploy.*"}), yielded, false},
		"anchored":           {rule("/spec/replicas", &kustomize.Selector{Kind: "Deploy"}), want, false},
		"another name":       {rule("/spec/replicas", &kustomize.Selector{Name: "db"}), want, false},
		"by namespace":       {rule("/spec/replicas", &kustomize.Selector{Namespace: "team"}), yielded, false},
		"by version":         {rule("/spec/replicas", &kustomize.Selector{Version: "v1"}), yielded, false},
		"another version":    {rule("/spec/replicas", &kustomize.Selector{Version: "v2"}), want, false},
		"another group":      {rule("/spec/replicas", &kustomize.Selector{Group: "batch"}), want, false},
		"another namespace":  {rule("/spec/replicas", &kustomize.Selector{Namespace: "te"}), want, false},
		"another annotation": {rule("/spec/replicas", &kustomize.Selector{AnnotationSelector: "x/y=w"}), want, false},
		"two rules": {append(rule("/spec/replicas", nil), rule("/spec/list/1", nil)...),
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 7, list: [{a: 1}, {a: 2}]}\n", false},
		"by label":              {rule("/spec/replicas", &kustomize.Selector{LabelSelector: "tier in (front)"}), yielded, false},
		"by another label":      {rule("/spec/replicas", &kustomize.Selector{LabelSelector: "tier=back"}), want, false},
		"by annotation":         {rule("/spec/replicas", &kustomize.Selector{AnnotationSelector: "x/y=z"}), yielded, false},
		"in a list":             {rule("/spec/list/1/a", nil), "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1, list: [{a: 1}, {a: 2}]}\n", false},
		"an item of a list":     {rule("/spec/list/1", nil), "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1, list: [{a: 1}, {a: 2}]}\n", false},
		"before the list":       {rule("/spec/list/-1", nil), want, false},
		"no item of the list":   {rule("/spec/list/x", nil), want, false},
		"the end of the list":   {rule("/spec/list/2", nil), want, false},
		"beyond the list":       {rule("/spec/list/9/a", nil), want, false},
		"not in the chart":      {rule("/spec/nowhere/b", nil), want, false},
		"not in the cluster":    {rule("/spec/list/1/b", nil), want, false},
		"the object, empty":     {rule("", nil), want, true},
		"the object, one slash": {rule("/", nil), want, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rules, err := ReadRules(test.rules)
			if err != nil {
				t.Fatal(err)
			}
			paths, all := rules.Spared(live)
			if all != test.all {
				t.Errorf("all is %v, want %v", all, test.all)
			}
			if diff := cmp.Diff(object(t, test.want).Object, Yielding(object(t, want), live, paths).Object); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := ReadRules(rule("/a", &kustomize.Selector{Name: "("})); err == nil || !strings.Contains(err.Error(), "drift.ignore[0].target") {
		t.Errorf("a broken pattern: %v", err)
	}
}

func TestSelectorsThatCannotBeRead(t *testing.T) {
	for name, selector := range map[string]kustomize.Selector{
		"a kind": {Kind: "("}, "a name": {Name: "["}, "labels": {LabelSelector: "a in"}, "annotations": {AnnotationSelector: "a in"},
	} {
		if _, err := ReadSelector(&selector); err == nil {
			t.Errorf("%s is read", name)
		}
	}
	if s, err := ReadSelector(nil); err != nil || !s.Selects(object(t, configMap)) {
		t.Errorf("no selector selects everything: %v", err)
	}
}

// TestYieldingTakesWhatIsLive at a pointer with escaped characters, in lists of other lengths, and where a value is gone.
func TestYieldingTakesWhatIsLive(t *testing.T) {
	const want = "kind: A\nmetadata: {annotations: {a/b: w, c~d: w, e: w}}\nlist: [1, 2]\nshort: [1, 2, 3]\nmap: {}\n"
	live := object(t, "kind: A\nmetadata: {annotations: {a/b: l, c~d: l}}\nlist: [7, 8, 9]\nshort: [7, 8]\nmap: {}\n")
	for path, changed := range map[string]string{
		"/metadata/annotations/a~1b": strings.Replace(want, "a/b: w", "a/b: l", 1),
		"/metadata/annotations/c~0d": strings.Replace(want, "c~d: w", "c~d: l", 1),
		"/metadata/annotations/e":    strings.Replace(want, ", e: w", "", 1),
		"/list/0":                    strings.Replace(want, "list: [1, 2]", "list: [7, 2]", 1),
		"/list/1":                    strings.Replace(want, "list: [1, 2]", "list: [1, 8]", 1),
		"/list/2":                    want,
		"/short/2":                   want,
		"/short/1":                   strings.Replace(want, "short: [1, 2", "short: [1, 8", 1),
	} {
		rules, err := ReadRules([]v1alpha1.IgnoreRule{{Paths: []string{path}}})
		if err != nil {
			t.Fatal(err)
		}
		paths, all := rules.Spared(live)
		if diff := cmp.Diff(object(t, changed).Object, Yielding(object(t, want), live, paths).Object); diff != "" || all {
			t.Errorf("%s, all %t (-want +got):\n%s", path, all, diff)
		}
	}
}
