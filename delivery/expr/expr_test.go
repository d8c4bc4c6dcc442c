package expr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestCompileRefusesWrongAndCostlyExpressions(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"sound":                {"dep.status.phase == 'Running'", ""},
		"an optional":          {"dep.?status.?phase.orValue('') == 'Running'", ""},
		"a syntax error":       {"dep.status.phase ==", "1:20: Syntax error"},
		"another variable":     {"dap.status", "1:1: undeclared reference to 'dap'"},
		"on the second line":   {"dep.a &&\n  foo.b", "2:3: undeclared reference to 'foo'"},
		"no truth":             {"'text'", "1:1: the expression makes a string"},
		"a regular expression": {"dep.a.matches('(a+)+b')", "undeclared reference to 'matches'"},
		"replace":              {"dep.a.replace('a', 'aa') == ''", "undeclared reference to 'replace'"},
		"a set":                {"sets.intersects(dep.a, dep.b)", "undeclared reference to 'sets'"},
		"too long":             {strings.Repeat("true || ", 300) + "true", "more than the limit of 2048"},
		"optMap":               {"dep.?a" + strings.Repeat(".optMap(v,v)", 20) + ".hasValue()", "undeclared reference to 'optMap'"},
		"optFlatMap":           {"dep.?a" + strings.Repeat(".optFlatMap(v,v)", 20) + ".hasValue()", "undeclared reference to"},
		"many loops":           {"true" + strings.Repeat("&&[].all(a,true)", 25), "has 25 loops (all, exists, exists_one, map, filter), more than the limit of 24"},
		"many maps":            {"[{}" + strings.Repeat(",{}", 64) + "] == []", "makes more lists and maps than the limit of 64"},
		"too deep":             {strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200), "recursion"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(c.text, "dep", "self")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %q", err)
			}
		})
	}
}

func TestTrueEvaluatesTheStateOfAnObject(t *testing.T) {
	dep := map[string]any{
		"metadata": map[string]any{"generation": int64(2)},
		"status": map[string]any{"phase": "Running", "secret": "hidden-1", "conditions": []any{
			map[string]any{"type": "Ready", "status": "True"},
		}},
	}
	cases := map[string]struct {
		text string
		want bool
		err  string
		gone bool
	}{
		"true":                   {text: "dep.status.phase == 'Running'", want: true},
		"false":                  {text: "dep.status.phase == 'Pending'"},
		"a condition":            {text: "dep.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", want: true},
		"a number":               {text: "dep.metadata.generation > 1.5", want: true},
		"has":                    {text: "has(dep.status.replicas)"},
		"a field that is absent": {text: "dep.status.replicas == 1", gone: true, err: "replicas"},
		"an item that is absent": {text: "dep.status.conditions[7].type == 'x'", gone: true, err: "7"},
		"of another type":        {text: "dep.status.phase > 1", err: "no such overload"},
		"no truth":               {text: "dep.status.phase", err: "makes a string"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e, err := Compile(c.text, "dep", "self")
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.True(t.Context(), map[string]any{"dep": dep, "self": map[string]any{}})
			if got != c.want || errors.Is(err, ErrMissing) != c.gone || (err != nil) != (c.err != "") {
				t.Errorf("got %t, %v", got, err)
			}
			if err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("the error %q does not say %q", err, c.err)
			}
		})
	}
}

func TestAnEvaluationEndsWithItsContext(t *testing.T) {
	e, err := Compile("list.all(a, a >= 0)", "list")
	if err != nil {
		t.Fatal(err)
	}
	list := make([]any, 1000)
	for i := range list {
		list[i] = int64(i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if ok, err := e.True(ctx, map[string]any{"list": list}); err != nil || !ok {
		t.Errorf("got %t, %v", ok, err)
	}
	cancel()
	if ok, err := e.True(ctx, map[string]any{"list": list}); !errors.Is(err, context.Canceled) || ok {
		t.Errorf("got %t, %v", ok, err)
	}
}

// TestAnExpressionThatGrowsWithoutEndIsRefused evaluates what would take hours or gigabytes.
func TestAnExpressionThatGrowsWithoutEndIsRefused(t *testing.T) {
	numbers := make([]any, 1000)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	grow := "dep.text"
	for range 7 {
		grow = fmt.Sprintf("[%s].map(x, x+x+x+x+x+x+x+x)[0]", grow)
	}
	for name, text := range map[string]string{
		"loops in loops":      "dep.list.all(a, dep.list.all(b, dep.list.all(c, dep.list.all(d, a + b + c + d >= 0))))",
		"a text that doubles": grow + " == ''",
		"objects compared":    "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, dep == dep))))",
		"texts searched":      "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, !dep.text.contains('y')))))",
		"texts converted":     "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, bytes(dep.text) != b''))))",
		"a list searched":     "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, !(dep in dep.list))))",
		"a list that grows":   "dep.list.map(a, dep.list.map(b, dep.list.map(c, dep.list))).size() > 0",
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Compile(text, "dep", "self")
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, err = e.True(t.Context(), map[string]any{"dep": map[string]any{"list": numbers, "text": strings.Repeat("x", 1000)}})
			if err == nil || !strings.Contains(err.Error(), "more than the limit of 50000") {
				t.Errorf("got %v", err)
			}
			if d := time.Since(began); d > 5*time.Second {
				t.Errorf("it took %s", d)
			}
		})
	}
}

// TestAnItemCostsTheSameInALongList: the items beside it are not read.
func TestAnItemCostsTheSameInALongList(t *testing.T) {
	items := make([]any, 1000)
	for i := range items {
		items[i] = int64(i)
	}
	e, err := Compile("dep.list.all(i, [dep.list][0].size() == 1000)", "dep", "self")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := e.True(t.Context(), map[string]any{"dep": map[string]any{"list": items}}); err != nil || !got {
		t.Errorf("got %t, %v", got, err)
	}
}
