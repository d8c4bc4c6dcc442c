package values

import (
	"fmt"
	"testing"
)

// TestAnIndexIsBounded: a list is filled up to it.
func TestAnIndexIsBounded(t *testing.T) {
	for index, good := range map[int]bool{0: true, maxPathIndex: true, maxPathIndex + 1: false} {
		steps, rest, err := cutIndexes(fmt.Sprintf("[%d].a", index))
		if (err == nil) != good || good && (len(steps) != 1 || rest != ".a") {
			t.Errorf("[%d]: %v, %q, %v", index, steps, rest, err)
		}
	}
}
