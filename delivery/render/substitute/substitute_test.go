package substitute

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/render/manifests"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/internal/testenv/rendering"
)

// substituted puts variables into a manifest. The data of each referred object is its name's.
func substituted(t *testing.T, text string, with v1alpha1.Build, data map[string]map[string][]byte) ([]*unstructured.Unstructured, error) {
	t.Helper()
	objects, err := manifests.Folder(rendering.Repository(map[string]string{"a.yaml": text}), ".", budget.App{})
	if err != nil {
		t.Fatal(err)
	}
	return Variables(objects, &with, func(_, name string) (map[string][]byte, error) {
		if data[name] == nil {
			return nil, render.ErrMissing
		}
		return data[name], nil
	})
}

func TestVariablesAreReplacedByTheirValues(t *testing.T) {
	values := v1alpha1.Build{
		Substitute:     map[string]string{"NAME": "web", "PORT": "80", "QUOTED": `"80"`, "ON": "true", "EMPTY": "", "BOTH": "spec", "LINES": "a\nb: c"},
		SubstituteFrom: []v1alpha1.SubstituteReference{{Kind: "ConfigMap", Name: "one"}, {Kind: "Secret", Name: "two"}, {Kind: "Secret", Name: "none", Optional: true}},
	}
	data := map[string]map[string][]byte{
		"one": {"FROM": []byte("one"), "BOTH": []byte("one"), "SAME": []byte("one"), "a.file": []byte("x")}, "two": {"SAME": []byte("two")},
	}
	tests := map[string]struct{ in, want any }{
		"a value":                {"${NAME}", "web"},
		"within a text":          {"http://${NAME}:${PORT}/", "http://web:80/"},
		"a number":               {"${PORT}", int64(80)},
		"a boolean":              {"${ON}", true},
		"a number in quotes":     {"${QUOTED}", "80"},
		"nothing":                {"x${EMPTY}y", "xy"},
		"an object's value":      {"${FROM}", "one"},
		"the later object":       {"${SAME}", "two"},
		"the spec before all":    {"${BOTH}", "spec"},
		"a default":              {"${NONE:=it}", "it"},
		"the other default":      {"${NONE:-it}", "it"},
		"a default of the empty": {"${EMPTY:=it}", "it"},
		"no need for a default":  {"${NAME:=${NONE}}", "web"},
		"an empty default":       {"x${NONE:=}", "x"},
		"a default of a value":   {"${NONE:=${NAME}-${NONE2:-x}}!", "web-x!"},
		"an escape":              {"$${NAME} ${NAME}", "${NAME} web"},
		"no braces":              {"$NAME $(NAME) $", "$NAME $(NAME) $"},
		"several lines":          {"${LINES}", "ab: c"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := tc.in.(string)
			if !strings.HasPrefix(in, "'") {
				in = "'" + in + "'"
			}
			if name == "several lines" {
				in = "'x ${LINES}'"
			}
			got, err := substituted(t, rendering.ConfigMap("x")+"data: {a: "+in+"}\n", values, data)
			if name == "several lines" {
				if err == nil || !strings.Contains(err.Error(), "ConfigMap/x: is not YAML any more") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got[0].Object["data"].(map[string]any)["a"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestVariablesAreFoundAnywhereInAnObject: in the items of lists, at any depth, and in keys.
func TestVariablesAreFoundAnywhereInAnObject(t *testing.T) {
	for in, want := range map[string]string{
		"list: [a, '${NAME}']": "list: [a, web]", "list: [[{a: '${NAME}'}]]": "list: [[{a: web}]]", "map: {'${NAME}': a}": "map: {web: a}", "map: {a: {b: '${NAME}'}}": "map: {a: {b: web}}",
	} {
		got, err := substituted(t, rendering.ConfigMap("x")+in+"\n", v1alpha1.Build{Substitute: map[string]string{"NAME": "web"}}, nil)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		expected, err := manifests.Folder(rendering.Repository(map[string]string{"a.yaml": rendering.ConfigMap("x") + want + "\n"}), ".", budget.App{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expected[0].Object, got[0].Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

// TestAnObjectThatCannotBeReadIsNoMissingOne, even an optional one: its values may change what is delivered.
func TestAnObjectThatCannotBeReadIsNoMissingOne(t *testing.T) {
	away := errors.New("no API server")
	with := &v1alpha1.Build{SubstituteFrom: []v1alpha1.SubstituteReference{{Kind: "ConfigMap", Name: "a", Optional: true}}}
	_, err := Variables(nil, with, func(string, string) (map[string][]byte, error) { return nil, away })
	if !errors.Is(err, away) || errors.Is(err, render.ErrMissing) || err.Error() != "substituteFrom[0]: reading ConfigMap a: no API server" {
		t.Errorf("got %v", err)
	}
}

func TestTextWithoutVariablesIsLeftAlone(t *testing.T) {
	const in = "data: {a: '${NAME}'}\n"
	values := v1alpha1.Build{Substitute: map[string]string{"NAME": "web"}}
	tests := map[string]struct {
		manifest string
		with     v1alpha1.Build
	}{
		"without variables": {rendering.ConfigMap("x") + in, v1alpha1.Build{}},
		"Flux's annotation": {rendering.ConfigMap("x") + "  annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}\n" + in, values},
		"Flux's label":      {rendering.ConfigMap("x") + "  labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}\n" + in, values},
		"our annotation":    {rendering.ConfigMap("x") + "  annotations: {paas.kubeop.io/substitute: disabled}\n" + in, values},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := substituted(t, tc.manifest, tc.with, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text := got[0].Object["data"].(map[string]any)["a"]; text != "${NAME}" {
				t.Errorf("got %v, want %q", text, "${NAME}")
			}
		})
	}
}

func TestUnusableVariablesAreExplained(t *testing.T) {
	no := false
	big := v1alpha1.Build{Substitute: map[string]string{"BIG": strings.Repeat("x", 200_000)}}
	some := v1alpha1.Build{Substitute: map[string]string{"NAME": "web"}}
	tests := map[string]struct {
		value string
		with  v1alpha1.Build
		want  []string
		is    error
	}{
		"all that miss":           {"'${ONE} ${TWO}'\n  b: ${THREE}", some, []string{"ConfigMap/x: line 3: the variable ONE is not set", "variable TWO", "ConfigMap/x: line 4: the variable THREE is not set"}, nil},
		"one in a default":        {"${NAME2:=${ONE}}", some, []string{"the variable ONE is not set"}, nil},
		"another operator":        {"${NAME/a/b}", some, []string{"ConfigMap/x: line 3: ${NAME/a/b}: is none of ${name}, ${name:=default}"}, nil},
		"no name":                 {"'${1}'", some, []string{"line 3: ${1}: is none of"}, nil},
		"no end":                  {"'${NAME2:=x'", some, []string{"line 3: ${NAME2 has no }"}, nil},
		"a bad name":              {"a", v1alpha1.Build{Substitute: map[string]string{"a-b": ""}}, []string{`substitute: "a-b" cannot be the name of a variable`}, nil},
		"a missing object":        {"a", v1alpha1.Build{SubstituteFrom: []v1alpha1.SubstituteReference{{Kind: "Secret", Name: "s"}}}, []string{"substituteFrom[0]: Secret s does not exist in this namespace: create it, or correct the name in app.yaml"}, render.ErrMissing},
		"too much":                {strings.Repeat("${BIG}", 6), big, []string{"ConfigMap/x: has more than 1048576 bytes with its variables set"}, render.ErrTooLarge},
		"defaults too deep":       {strings.Repeat("${N:=", 9) + "x" + strings.Repeat("}", 9), some, []string{"more than 8 deep"}, render.ErrTooLarge},
		"aliases in a value":      {"${A}", v1alpha1.Build{Substitute: map[string]string{"A": "{a: &a " + strings.Repeat("x", 2000) + ", b: [" + strings.Repeat("*a, ", 1000) + "]}"}}, []string{"YAML aliases stand for more than"}, yamlcheck.ErrTooLarge},
		"another object":          {"${A}", v1alpha1.Build{Substitute: map[string]string{"A": "x\n---\nkind: Secret"}}, []string{"ConfigMap/x: is not YAML any more"}, nil},
		"a default without a set": {"'${A}'", v1alpha1.Build{Substitute: map[string]string{"B": ""}, SubstituteStrict: &no}, nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := substituted(t, rendering.ConfigMap("x")+"data:\n  a: "+tc.value+"\n", tc.with, nil)
			if (err == nil) != (tc.want == nil) || tc.is != nil && !errors.Is(err, tc.is) {
				t.Fatalf("got %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
}

func FuzzVariables(f *testing.F) {
	for _, seed := range []string{"${A}", "$${A}", "${A:=${B:-x}}", "${", "${A:", "${A:={}}", "$$$${A}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		refused := false
		e := expansion{values: map[string]string{"A": "a"}, strict: true, room: render.MaxFileBytes, refuse: func(error) { refused = true }}
		out := e.text(text, 0)
		if !refused && !strings.Contains(text, "${") && out != text {
			t.Errorf("%q became %q without a variable in it", text, out)
		}
	})
}

func TestSubstituteReportsAFewProblemsAndCountsTheRest(t *testing.T) {
	const missing = 1000
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "bomb"}, "data": map[string]any{"text": strings.Repeat("${gone}", missing)},
	}}
	s := substitution{strict: true, room: maxBytes}
	s.object(o)
	if _, err := s.Result(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("and %d more", missing-20)) {
		t.Errorf("got %v", err)
	}
}
