package guardrails

import (
	"fmt"
	"sync"
	"testing"
)

// TestPatternsAreCompiledOnce, while they are used, and not so many are kept that all patterns of a large cluster fill the memory.
func TestPatternsAreCompiledOnce(t *testing.T) {
	first := compiled("ghcr.io/acme/*")
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			for j := range 1000 {
				if pattern := fmt.Sprintf("r%d-%d.example.com/*", i, j); !matchesAny([]string{"ghcr.io", pattern}, fmt.Sprintf("r%d-%d.example.com/a/b", i, j)) {
					t.Errorf("%s does not match", pattern)
				}
				if compiled("ghcr.io/acme/*") != first {
					t.Error("a pattern in use was compiled again")
				}
			}
		})
	}
	all.Wait()
	if kept := recent.compiled.Len(); kept != maxPatterns {
		t.Errorf("%d patterns are kept, want %d", kept, maxPatterns)
	}
}
