package release

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func input(change ...func(*Request)) *Request {
	r := &Request{Name: "web", Namespace: "team", Chart: Chart{Digest: "sha256:1"}, Values: map[string]any{"a": 1, "b": map[string]any{"c": "x"}}}
	for _, c := range change {
		c(r)
	}
	return r
}

func TestDigestChangesWithTheInput(t *testing.T) {
	base, err := input().digest()
	if err != nil {
		t.Fatal(err)
	}
	if len(validation.IsValidLabelValue(base)) > 0 {
		t.Errorf("%s is no label value", base)
	}
	tests := map[string]struct {
		change func(*Request)
		same   bool
	}{
		"same":              {func(*Request) {}, true},
		"other order":       {func(r *Request) { r.Values = map[string]any{"b": map[string]any{"c": "x"}, "a": 1} }, true},
		"other number type": {func(r *Request) { r.Values["a"] = float64(1) }, true},
		"other user":        {func(r *Request) { r.User = "someone" }, true},
		"chart":             {func(r *Request) { r.Chart.Digest = "sha256:2" }, false},
		"name":              {func(r *Request) { r.Name = "api" }, false},
		"value":             {func(r *Request) { r.Values["a"] = 2 }, false},
		"nested value":      {func(r *Request) { r.Values["b"] = map[string]any{"c": "y"} }, false},
		"no values":         {func(r *Request) { r.Values = nil }, false},
		"null is a value":   {func(r *Request) { r.Values["z"] = nil }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := input(test.change).digest()
			if err != nil {
				t.Fatal(err)
			}
			if (got == base) != test.same {
				t.Errorf("digest %s, base %s, want the same: %v", got, base, test.same)
			}
		})
	}
}

func TestDigestOfNoValues(t *testing.T) {
	none, err := input(func(r *Request) { r.Values = nil }).digest()
	if err != nil {
		t.Fatal(err)
	}
	empty, err := input(func(r *Request) { r.Values = map[string]any{} }).digest()
	if err != nil || none != empty {
		t.Errorf("nil is %s, empty is %s, %v", none, empty, err)
	}
}

func TestDigestErrors(t *testing.T) {
	if _, err := input(func(r *Request) { r.Chart.Digest = "" }).digest(); err == nil {
		t.Error("a chart without digest has one")
	}
	_, err := input(func(r *Request) { r.Values["a"] = func() {} }).digest()
	if !errors.Is(err, ErrRender) {
		t.Errorf("got %v, want ErrRender", err)
	}
}

func TestLabelValue(t *testing.T) {
	for _, name := range []string{"kubeop-7f9c", strings.Repeat("x", 200), "a b", "ü", ""} {
		got := labelValue(name)
		if len(validation.IsValidLabelValue(got)) > 0 {
			t.Errorf("%q became %q, which is no label value", name, got)
		}
		if got != labelValue(name) {
			t.Errorf("%q becomes something else each time", name)
		}
	}
	if labelValue("kubeop-7f9c") != "kubeop-7f9c" {
		t.Error("a good name was changed")
	}
}

func TestMasked(t *testing.T) {
	cause := errors.New("no")
	tests := map[string]struct {
		err       error
		sensitive []string
		want      string
	}{
		"nothing to hide": {errors.New("image pull failed"), []string{"hunter22"}, "image pull failed"},
		"plain":           {errors.New("'hunter22' does not match"), []string{"hunter22"}, "'***' does not match"},
		"quoted":          {errors.New(`got "two\nlines"`), []string{"two\nlines"}, `got "***"`},
		"encoded":         {errors.New("data: aHVudGVyMjI="), []string{"hunter22"}, "data: ***"},
		"too short":       {errors.New("a 1 b"), []string{"1", ""}, "a 1 b"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := masked(test.err, test.sensitive); got.Error() != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if !errors.Is(masked(cause, []string{"other"}), cause) {
		t.Error("an error with nothing to hide was replaced")
	}
	if masked(nil, []string{"x"}) != nil {
		t.Error("no error became one")
	}
}
