package image

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// TestTheCostOfAPatternCountsItsRepetitions: it is the length of the compiled pattern, with repetitions written out.
func TestTheCostOfAPatternCountsItsRepetitions(t *testing.T) {
	for pattern, want := range map[string]int{
		"a": 1, "abc": 3, "a*": 2, "a{5}": 10, "a{2,}": 4, "(ab){3}": 12, "(a{3}){4}": 32, "ab|c.": 6,
		strings.Repeat("a", maxPatternCost): maxPatternCost,
	} {
		filter, steps, err := compilePattern(pattern)
		if err != nil || filter == nil || steps != want {
			t.Errorf("%.20s costs %d, want %d; %v", pattern, steps, want, err)
		}
	}
	for _, pattern := range []string{strings.Repeat("a", maxPatternCost+1), "(a{100}){100}", "((a{50}){50}){50}"} {
		if filter, _, err := compilePattern(pattern); !errors.Is(err, failure.ErrInvalid) || filter != nil {
			t.Errorf("%.20s is accepted: %v", pattern, err)
		}
	}
}

// TestCostlyPatternsRunInAProcessOfTheirOwn: it depends on the letters of all tags.
func TestCostlyPatternsRunInAProcessOfTheirOwn(t *testing.T) {
	chooser := func(pattern string) *tagChooser {
		p := &v1alpha1.ImagePolicy{Alphabetical: v1alpha1.TagsAscending}
		if pattern != "" {
			p.FilterTags = &v1alpha1.TagFilter{Pattern: pattern}
		}
		c, err := newTagChooser(p)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	tags := make([]string, 1000)
	for i := range tags {
		tags[i] = strings.Repeat("a", 99) // 100,000 letters, one of each tag for its end.
	}
	for pattern, want := range map[string]bool{"": false, strings.Repeat("a", 10): false, strings.Repeat("a", 11): true} {
		if got := chooser(pattern).isExpensive(tags); got != want {
			t.Errorf("a pattern of %d letters is expensive: %v, want %v", len(pattern), got, want)
		}
	}
}

func TestAPolicyWithoutAnIntervalHasTheDefault(t *testing.T) {
	if got := PolicyInterval(&v1alpha1.ImagePolicy{}); got != policyInterval {
		t.Errorf("the default is %s, want %s", got, policyInterval)
	}
	if got := PolicyInterval(&v1alpha1.ImagePolicy{Interval: &metav1.Duration{Duration: time.Hour}}); got != time.Hour {
		t.Errorf("got %s, want %s", got, time.Hour)
	}
}
