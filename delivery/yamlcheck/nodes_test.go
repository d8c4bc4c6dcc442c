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
