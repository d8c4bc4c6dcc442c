package yamlcheck

import (
	"errors"
	"strings"
	"testing"
)

func TestNodeCountAddsUpToMaxNodes(t *testing.T) {
	n := &NodeCount{Note: func(string) {}}
	list := []byte("[" + strings.Repeat("1,", MaxNodes/2) + "1]")
	if err := n.Text("first.yaml", list); err != nil {
		t.Fatal(err)
	}
	err := n.Text("second.yaml", list)
	if !errors.Is(err, ErrTooLarge) || !strings.HasPrefix(err.Error(), "second.yaml: there are more than 500000 ") {
		t.Errorf("got %v", err)
	}
	if n.Tree("one more") {
		t.Error("a tree is counted anew")
	}
}

func TestNodesOfAllValuesAddUp(t *testing.T) {
	value := map[string]any{"a": []any{1.0, "b"}, "c": map[string]any{"d": nil}} // six nodes
	for left, fits := range map[int]bool{6: true, 5: false, 4: false, 3: false, 2: false, 1: false, 0: false} {
		n := NodeCount{Sum: MaxNodes - left}
		if got := n.Tree(value); got != fits {
			t.Errorf("with room for %d: got %t", left, got)
		}
		if fits && n.Sum != MaxNodes {
			t.Errorf("%d nodes are counted, want %d", n.Sum, MaxNodes)
		}
	}
	for _, nested := range []any{[]any{[]any{1.0, 2.0}, 3.0}, map[string]any{"a": map[string]any{"b": 1.0, "c": 2.0}}} {
		n := NodeCount{Sum: MaxNodes - 3}
		if n.Tree(nested) {
			t.Errorf("%v fits into three nodes", nested)
		}
	}
}

func TestATextThatMayHaveManyNodesHasToBeYAML(t *testing.T) {
	noted := ""
	n := NodeCount{Sum: MaxNodes, Note: func(text string) { noted = text }}
	if err := n.Text("values.yaml", []byte("a: [")); err == nil || !strings.HasPrefix(err.Error(), "values.yaml: ") || errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if noted != "reading values.yaml" {
		t.Errorf("noted %q", noted)
	}
}

func TestAPositionHasItsFileLineAndColumn(t *testing.T) {
	for want, at := range map[string]Position{"a.yaml": {}, "a.yaml:3": {Line: 3}, "a.yaml:3:7": {Line: 3, Column: 7}} {
		if got := at.In("a.yaml"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := (Position{Column: 7}).In("a.yaml"); got != "a.yaml" {
		t.Errorf("a column without a line: %s", got)
	}
	for offset, want := range map[int]Position{-1: {Line: 1}, 0: {1, 1}, 2: {1, 3}, 3: {2, 1}, 6: {2, 3}} {
		if got := positionAt([]byte("ab\nä c"), offset); got != want {
			t.Errorf("offset %d: got %v, want %v", offset, got, want)
		}
	}
}
