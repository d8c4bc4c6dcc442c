package evaluate

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// recordOf is what is recorded of templates, and the error with which Helm, or the gate, ends; it has no chart.
func recordOf(t *testing.T, templates map[string]string) (*helm.Release, error) {
	t.Helper()
	plain, err := Plain(&chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "web", Version: "1.0.0"}}, templates)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := dryRun(plain)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "failed to render resource: "))
	}
	rel.Chart, rel.Info = nil, &helm.Info{Notes: rel.Info.Notes}
	if _, err := manifest.Parse(rel.Manifest); err != nil {
		return nil, err
	}
	for _, h := range rel.Hooks {
		if _, err := manifest.Parse(h.Manifest); err != nil {
			return nil, fault.Render(errors.New("hook " + h.Path + ": " + err.Error()))
		}
	}
	return rel, asRecorded(rel)
}

const (
	configHead = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "
	hookHead   = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  annotations: {helm.sh/hook: 'pre-install,post-upgrade', helm.sh/hook-weight: '-3', helm.sh/hook-delete-policy: before-hook-creation}\n  name: "
)

// TestInJSONIsRecordedTheSame: what Helm and the gate make of templates, of their hooks, and of what is wrong with them, is the same in JSON.
func TestInJSONIsRecordedTheSame(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "white space": " \n\n", "a comment": "# nothing\n", "null": "null\n", "comments and objects": "# a\n---\n# b\n" + configHead + "a\n---\n",
		"objects in order":         configHead + "b\n---\n" + configHead + "a\n---\n" + configHead + "c\n",
		"of kinds that Helm sorts": strings.Replace(configHead, "ConfigMap", "Service", 1) + "a\n---\n" + configHead + "a\n---\nkind: Zebra\napiVersion: z/v1\nmetadata: {name: z}\n",
		"a hook and an object":     hookHead + "h\n---\n" + configHead + "a\n", "windows lines": strings.ReplaceAll(configHead, "\n", "\r\n") + "a\r\n---\r\n" + configHead + "b\r\n",
		"a list":                       "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n",
		"a list without kinds in it":   "apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: a}}]\n",
		"numbers":                      configHead + "a\ndata:\n  a: 1.0\n  b: 1e3\n  c: 12345678901234567890123\n  d: 0o17\n  e: 017\n  f: 1_000\n  g: 9223372036854775807\n  h: 1.5\n  i: -0\n  j: 1e400x\n  k: 0x1F\n  l: 12e03\n  m: 1.0e21\n  n: 18446744073709551615\n",
		"words":                        configHead + "a\ndata:\n  a: yes\n  b: 'yes'\n  c: ~\n  d: null\n  e: 2001-01-01\n  f: .5\n  g: \"\"\n  h: on\n  yes: no\n  1: one\n  null: x\n  l: .nan\n",
		"text":                         configHead + "a\ndata:\n  a: |\n    one\n     two\n    # three\n    --- four\n  b: >-\n    a\n    b\n  c: \"<a href='x'>&amp;\\t\\x41</a>\"\n  d: '{{ .Values.a }} }} {{'\n  e: 'ü 🙂 \\n'\n",
		"line ends of other alphabets": configHead + "a\ndata: {a: \"\\u2028\\u0085\\x01\"}\n",
		"aliases":                      configHead + "a\ndata: &a {x: y}\nbinaryData: *a\nother: {<<: *a, z: z}\n", "the same key twice": configHead + "a\ndata: {a: b, a: c}\n",
		"flow": `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {"a": 1.0}}`, "JSON": `{"metadata":{"name":"a"},"kind":"ConfigMap","apiVersion":"v1","data":{"n":1.0,"m":1e2}}`,
		"the end of a document": configHead + "a\n...\nkind: Other\n", "a separator with text": configHead + "a\n---foo: bar\n",
		"a separator in text": configHead + "a\ndata:\n  a: |\n    b\n---\n" + configHead + "b\n", "a directive": "%YAML 1.2\n---\n" + configHead + "a\n", "a tag": configHead + "a\ndata: !!map {a: !!str 1}\n",
		"no YAML": "a: [\n", "a text": "hello\n", "a sequence": "- a\n", "no kind": "apiVersion: v1\nmetadata: {name: a}\n", "a bad annotation": configHead + "a\n  annotations: {a: 1}\n",
		"a list of texts": "apiVersion: v1\nkind: List\nitems: [a]\n", "items that are none": "apiVersion: v1\nkind: List\nitems: a\n", "infinity": configHead + "a\ndata: {a: .inf}\n",
		"a hook without a kind": "apiVersion: v1\nkind: ''\nmetadata: {name: a, annotations: {helm.sh/hook: pre-install}}\n", "a tab": configHead + "a\ndata:\n\ta: b\n",
		"a hook of a broken list": "apiVersion: v1\nkind: List\nmetadata: {annotations: {helm.sh/hook: pre-install}}\nitems: [a]\n", "a key that is none": configHead + "a\ndata: {[a]: b}\n",
	} {
		t.Run(name, func(t *testing.T) {
			templates := map[string]string{
				"web/templates/a.yaml": text, "web/templates/z.yaml": configHead + "z\n", "web/templates/h.yaml": hookHead + "h\n",
				"web/templates/NOTES.txt": "a: {{ [\n",
			}
			before := maps.Clone(templates)
			want, failed := recordOf(t, templates)
			changed, err := manifest.InJSON(templates, func(string) {})
			var got *helm.Release
			if err == nil {
				got, err = recordOf(t, changed)
			}
			if diff := cmp.Diff(textOf(failed), textOf(err)); diff != "" {
				t.Fatal(diff)
			}
			if !maps.Equal(before, templates) || failed == nil && changed["web/templates/NOTES.txt"] != before["web/templates/NOTES.txt"] {
				t.Error("it changed what it was given, or the notes")
			}
			if failed != nil {
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			for name, text := range changed {
				for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
					_, ok := manifest.Written([]byte("---\n" + manifest.SourcePrefix + name + "\n" + line + "\n"))
					if !manifest.NotesFile(name) && line != "" && line != "---" && line != "null" && !ok {
						t.Errorf("%s: the operator would parse %q as YAML", name, line)
					}
				}
			}
		})
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestAliasesAreCountedWrittenOut: each may be within the bound of aliases, and all together past that of values.
func TestAliasesAreCountedWrittenOut(t *testing.T) {
	templates := map[string]string{"web/templates/a.yaml": ""}
	one := configHead + "a\ndata: &a [" + strings.Repeat("1,", 900) + "]\nmore: [" + strings.Repeat("*a,", 90) + "]\n---\n"
	templates["web/templates/a.yaml"] = strings.Repeat(one, 10)
	if err := fewNodesIn(templates, func(string) {}); err != nil {
		t.Fatalf("it is refused before: %v", err)
	}
	if _, err := manifest.InJSON(templates, func(string) {}); !failedWith(err).TooLarge || !strings.Contains(textOf(err), "web/templates/a.yaml renders to") {
		t.Errorf("got %v", err)
	}
}

// TestATemplateOutsideTheChartIsRefused: Helm would look it up under another path and record it as one of the chart.
func TestATemplateOutsideTheChartIsRefused(t *testing.T) {
	web := &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "web", Version: "1.0.0"}}
	for _, key := range []string{"db/templates/a.yaml", "a.yaml", "web/../db/a.yaml"} {
		if _, err := Plain(web, map[string]string{key: "a: b"}); !errors.Is(err, fault.ErrRender) || !strings.Contains(err.Error(), key+" is in no folder of chart web") {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := Plain(web, map[string]string{"web/templates/a.yaml": "a: b"}); err != nil {
		t.Error(err)
	}
}

// TestTooMuchInATemplateOrInTheValuesIsNamed, each with the limit that Helm's own parsers do not have.
func TestTooMuchInATemplateOrInTheValuesIsNamed(t *testing.T) {
	bomb := "a: &a " + strings.Repeat("x", 20<<10) + "\nb: [*a" + strings.Repeat(",*a", 100) + "]\n"
	many := "a: [" + strings.Repeat("0,", yamlcheck.MaxNodes) + "0]\n"
	for name, c := range map[string]struct {
		templates map[string]string
		says      string
	}{
		"aliases":             {map[string]string{"web/templates/a.yaml": bomb}, "what template web/templates/a.yaml renders to: "},
		"values":              {map[string]string{"web/templates/a.yaml": many}, "what template web/templates/a.yaml renders to"},
		"notes are no values": {map[string]string{"web/templates/NOTES.txt": many + bomb}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := fewNodesIn(c.templates, func(string) {})
			if (err != nil) != (c.says != "") || err != nil && (!errors.Is(err, fault.ErrRender) || !failedWith(err).TooLarge || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	web := &chart.Chart{Metadata: &chart.Metadata{Name: "web"}}
	sub := &chart.Chart{Metadata: &chart.Metadata{Name: "sub"}, Values: map[string]any{"a": make([]any, yamlcheck.MaxNodes+1)}}
	web.SetDependencies(sub)
	if err := fewNodes(web, func(string) {}); !errors.Is(err, yamlcheck.ErrNodes) || !strings.HasPrefix(err.Error(), "the values of chart sub: ") {
		t.Errorf("the values of a subchart: %v", err)
	}
}
