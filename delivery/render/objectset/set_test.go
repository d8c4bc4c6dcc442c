package objectset

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parsed(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestDocumentsThatAreNoObjectsAreRefusedWithAReason(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"an object":                    {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", ""},
		"nothing":                      {"", ""},
		"a text":                       {"hello", "not a Kubernetes object: it must be a mapping with apiVersion, kind and metadata"},
		"a list":                       {"[1]", "not a Kubernetes object: it must be a mapping with apiVersion, kind and metadata"},
		"a kustomization without kind": {"{resources: [a.yaml]}", "apiVersion and kind are missing; a kustomization must be at the path of an app of type Git, which builds it"},
		"any mapping":                  {"{a: b}", "apiVersion and kind are missing: not a Kubernetes object"},
		"no apiVersion":                {"{kind: ConfigMap, metadata: {name: a}}", "ConfigMap has no apiVersion"},
		"no kind":                      {"{apiVersion: v1, metadata: {name: a}}", "kind is missing"},
		"a bad apiVersion":             {"{apiVersion: a/b/c, kind: X, metadata: {name: a}}", `X: apiVersion "a/b/c" must be <group>/<version> or v1`},
		"a kustomization":              {"{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, metadata: {name: a}}", "Kustomization is built with kustomize; it must be at the path of an app of type Git"},
		"no metadata":                  {"{apiVersion: v1, kind: ConfigMap}", "ConfigMap has no metadata"},
		"metadata of text":             {"{apiVersion: v1, kind: ConfigMap, metadata: a}", "ConfigMap has no metadata"},
		"no name":                      {"{apiVersion: v1, kind: ConfigMap, metadata: {}}", "ConfigMap: metadata.name is missing"},
		"a name of no text":            {"{apiVersion: v1, kind: ConfigMap, metadata: {name: 1}}", "ConfigMap: metadata.name must be a text; put it in quotes"},
		"a generated name":             {"{apiVersion: v1, kind: Job, metadata: {generateName: a-}}", "Job: metadata.generateName is refused: every pass would make another object; set metadata.name"},
		"both names":                   {"{apiVersion: v1, kind: Job, metadata: {name: a, generateName: a-}}", ""},
		"a namespace of no text":       {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: 1}}", "ConfigMap: metadata.namespace must be a text; put it in quotes"},
		"labels of no mapping":         {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: [1]}}", "ConfigMap: metadata.labels must be a mapping"},
		"a label of no text":           {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {b: x, a: 1}}}", `ConfigMap: metadata.labels: the value of "a" must be a text; put it in quotes`},
		"an annotation of no text": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {a: true}}}",
			`ConfigMap: metadata.annotations: the value of "a" must be a text; put it in quotes`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var s Set
			s.Add("a.yaml:3", parsed(t, c.text))
			_, err := s.Result()
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || err.Error() != "a.yaml:3: "+c.want):
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFieldsOfTheAPIServerAndEmptyOnesAreDropped(t *testing.T) {
	var s Set
	s.Add("a", parsed(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: null, labels: null, annotations: {x: z}, uid: "1", resourceVersion: "2",
		generation: 3, creationTimestamp: null, managedFields: [], selfLink: /a, finalizers: [a/b]}}`))
	objects, err := s.Result()
	if err != nil {
		t.Fatal(err)
	}
	want := parsed(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {x: z}, finalizers: [a/b]}}")
	if diff := cmp.Diff(want, any(objects[0].Object)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnObjectMayNotComeTwice(t *testing.T) {
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}"
	cases := map[string]struct {
		second string
		twice  bool
	}{
		"the same":                     {deployment, true},
		"in another version":           {"{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: a}}", true},
		"in a namespace that is named": {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}}", true},
		"of another name":              {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}", false},
		"of another group":             {"{apiVersion: x.example/v1, kind: Deployment, metadata: {name: a}}", false},
		"of another kind":              {"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}}", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var s Set
			s.Add("first.yaml:1", parsed(t, deployment))
			s.Add("second.yaml:1", parsed(t, c.second))
			_, err := s.Result()
			if (err != nil) != c.twice || (c.twice && err.Error() != "second.yaml:1: Deployment/a is already at first.yaml:1: keep one") {
				t.Errorf("got %v", err)
			}
		})
	}
	var s Set
	for _, namespace := range []string{"b", "c"} {
		s.Add(namespace, parsed(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: "+namespace+"}}"))
	}
	if _, err := s.Result(); err != nil || s.Len() != 2 {
		t.Errorf("in two namespaces: %d objects, %v", s.Len(), err)
	}
}

func TestTheItemsOfAListAreObjectsOfTheirOwn(t *testing.T) {
	const item = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}"
	cases := map[string]struct {
		text  string
		names string
		want  string
	}{
		"no list":               {fmt.Sprintf(item, "a"), "ConfigMap/a", ""},
		"a List":                {fmt.Sprintf("{apiVersion: v1, kind: List, items: ["+item+","+item+"]}", "a", "b"), "ConfigMap/a ConfigMap/b", ""},
		"a List in a List":      {fmt.Sprintf("{kind: List, items: [{kind: List, items: ["+item+"]}, "+item+"]}", "a", "b"), "ConfigMap/a ConfigMap/b", ""},
		"an empty List":         {"{kind: List}", "", ""},
		"a List of one kind":    {"{apiVersion: v1, kind: SecretList, items: [{metadata: {name: a}}]}", "Secret/a", ""},
		"items with a kind":     {fmt.Sprintf("{apiVersion: v1, kind: SecretList, items: ["+item+"]}", "a"), "ConfigMap/a", ""},
		"a kind that ends so":   {"{apiVersion: x.example/v1, kind: AllowList, metadata: {name: a}}", "AllowList/a", ""},
		"items that are none":   {"{kind: List, items: {a: b}}", "", "items of a List must be a list"},
		"an item that is none":  {fmt.Sprintf("{kind: List, items: ["+item+", 1]}", "a"), "", "items[1]: not an object"},
		"an inner item is none": {"{kind: List, items: [{kind: List, items: [1]}]}", "", "items[0]: items[0]: not an object"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			objects, err := Expand(&unstructured.Unstructured{Object: parsed(t, c.text).(map[string]any)})
			var names []string
			for _, o := range objects {
				names = append(names, o.GetKind()+"/"+o.GetName())
			}
			if got := strings.Join(names, " "); got != c.names {
				t.Errorf("got %s, want %s", got, c.names)
			}
			if (err == nil) != (c.want == "") || (err != nil && err.Error() != c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestTwentyProblemsAreReportedAndTheOthersCounted(t *testing.T) {
	for n, more := range map[int]string{1: "", 20: "", 21: "and 1 more", 22: "and 2 more", 40: "and 20 more"} {
		var s Set
		for range n {
			s.Refuse("a.yaml:1", errors.New("is wrong"))
		}
		if s.Overfull() != (n > 20) {
			t.Errorf("%d problems are too many: %t", n, s.Overfull())
		}
		_, err := s.Result()
		lines := strings.Split(err.Error(), "\n")
		last := lines[len(lines)-1]
		if want := min(n, 20); strings.Count(err.Error(), "is wrong") != want || (more != "" && last != more) || (more == "" && last != "a.yaml:1: is wrong") {
			t.Errorf("of %d problems it says %v", n, err)
		}
	}
}

func TestOneProblemLeavesNoObject(t *testing.T) {
	var s Set
	s.Keep(&unstructured.Unstructured{})
	s.Fail(errors.New("b.yaml: is wrong"))
	if objects, err := s.Result(); objects != nil || err == nil || s.Len() != 1 {
		t.Errorf("got %v, %v", objects, err)
	}
}
