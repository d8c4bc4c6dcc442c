package objectset

import (
	"errors"
	"strings"
	"testing"
)

// A tenant must not decide how much memory problems take.
func TestOnlyAsManyProblemsAreKeptAsAreReported(t *testing.T) {
	var s Set
	for range 1000 {
		s.Refuse("a.yaml:1", errors.New("is wrong"))
	}
	if len(s.problems) > maxProblems+1 {
		t.Errorf("%d problems are kept", len(s.problems))
	}
	if _, err := s.Result(); err == nil || !strings.HasSuffix(err.Error(), "and 980 more") {
		t.Errorf("got %v", err)
	}
}
