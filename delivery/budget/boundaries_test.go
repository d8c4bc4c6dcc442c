package budget

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestALimitIsTheMostThatIsLetThrough(t *testing.T) {
	l := App{Objects: 3, Bytes: 100, Values: 10}
	for n, refused := range map[int]bool{0: false, 3: false, 4: true} {
		if got := l.TooMany(n) != nil; got != refused {
			t.Errorf("%d objects are refused: %t, want %t", n, got, refused)
		}
	}
	for name, c := range map[string]struct {
		weight Weight
		field  string
	}{
		"nothing":            {Weight{}, ""},
		"just as much":       {Weight{Bytes: 100, Values: 10}, ""},
		"one byte too many":  {Weight{Bytes: 101, Values: 10}, "appBytes"},
		"one value too many": {Weight{Bytes: 100, Values: 11}, "appValues"},
		"too much of both":   {Weight{Bytes: 101, Values: 11}, "appBytes"},
	} {
		err := l.Over(c.weight, "manifests")
		if c.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		exceeds(t, err, c.field, "manifests")
	}
	for says, err := range map[string]error{
		"objects of the app: 4, and the limit is 3; ":                                 l.TooMany(4),
		"manifests: 101 bytes, and the limit is 100 bytes; ":                          l.Over(Weight{Bytes: 101}, "manifests"),
		"manifests, counted by mappings, lists and values: 11, and the limit is 10; ": l.Over(Weight{Values: 11}, "manifests"),
	} {
		if !strings.HasPrefix(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

func TestTheObjectThatIsTooMuchIsNamed(t *testing.T) {
	object := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
	}
	w := Weight{}
	w.add(object("a").Object)
	err := (App{Objects: 5, Bytes: 2 * w.Bytes, Values: 1000}).Check([]*unstructured.Unstructured{object("a"), object("b"), object("c")})
	exceeds(t, err, "appBytes", "ConfigMap/c: ")
}

func TestWeightCountsAsJSONDoes(t *testing.T) {
	for name, c := range map[string]struct {
		value any
		want  Weight
	}{
		"null":            {nil, Weight{4, 1}},
		"a boolean":       {true, Weight{4, 1}},
		"a text":          {"abc", Weight{5, 1}},
		"a number":        {int64(-12), Weight{3, 1}},
		"an empty object": {map[string]any{}, Weight{2, 1}},
		"an object":       {map[string]any{"ab": "c"}, Weight{2 + 6 + 3, 3}},
		"a list":          {[]any{"a", "b"}, Weight{2 + 2 + 6, 3}},
	} {
		w := Weight{}
		if w.add(c.value); w != c.want {
			t.Errorf("%s: %+v, want %+v", name, w, c.want)
		}
	}
}

func TestEachFileThatDeclaresCountsAtLeastOneKibibyte(t *testing.T) {
	for size, want := range map[int64]int64{0: 1024, 1: 1024, 1024: 1024, 1025: 1025} {
		if got := Declared(size); got != want {
			t.Errorf("%d bytes count %d, want %d", size, got, want)
		}
	}
}

func TestNoMoreThanTheMostIsOffered(t *testing.T) {
	most := &Exceeded{Field: AppObjects, What: "objects of the app", Is: 5001, Limit: 5000}
	if got := most.Error(); got != "objects of the app: 5001, and more than 5000 are not possible; remove some in Git" {
		t.Errorf("at the most: %s, want %q", got, "objects of the app: 5001, and more than 5000 are not possible; remove some in Git")
	}
	below := &Exceeded{Field: AppObjects, What: "objects of the app", Is: 5000, Limit: 4999}
	if got := below.Error(); got != "objects of the app: 5000, and the limit is 4999; remove some, or ask an administrator of the cluster for more with spec.limits.appObjects of the Tenant, in tenant.yaml of the platform repository" {
		t.Errorf("below the most: %s, want %q", got, "objects of the app: 5000, and the limit is 4999; remove some, or ask an administrator of the cluster for more with spec.limits.appObjects of the Tenant, in tenant.yaml of the platform repository")
	}
}

func TestARepositoryIsNoTenant(t *testing.T) {
	repository := OfRepository("acme")
	if repository == "acme" || NameOf(repository) != "acme" || NameOf("acme") != "acme" {
		t.Errorf("the repository counts as %q", repository)
	}
	if Describe(repository) != "repository acme" || Describe("acme") != "tenant acme" {
		t.Errorf("they are called %q and %q", Describe(repository), Describe("acme"))
	}
}

func TestAFieldIsFoundByItsName(t *testing.T) {
	for _, f := range fields {
		if found, ok := FieldOf(f.Name); !ok || found.Name != f.Name {
			t.Errorf("%s is not found", f.Name)
		}
	}
	if _, ok := FieldOf("none"); ok {
		t.Error("a field that is none is found")
	}
}
