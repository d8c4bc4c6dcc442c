package policy

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestViolationsNameTheLinesOfTheirObjects: all objects are looked for at once, and what is known stays.
func TestViolationsNameTheLinesOfTheirObjects(t *testing.T) {
	remedy := []Remedy{{About: "policy a", Text: "change it"}}
	err := join([]*Violation{
		{Object: "Pod/a", Rule: "X", Why: "is wrong", Remedies: remedy}, {Object: "Pod/a", Rule: "Y", Why: "is bad", Remedies: remedy}, {Object: "Pod/b", Rule: "X", Why: "is wrong"},
		{Object: "Pod/c", Rule: "X", Why: "is wrong", At: Place{File: "c.yaml", Line: 7}},
	})
	var looked [][]string
	find := func(objects []string) map[string]Place {
		looked = append(looked, objects)
		return map[string]Place{"Pod/a": {File: "m/a.yaml", Line: 3}, "Pod/c": {File: "another.yaml", Line: 1}}
	}
	want := "m/a.yaml:3: Pod/a is bad\nm/a.yaml:3: Pod/a is wrong\nPod/b is wrong\nc.yaml:7: Pod/c is wrong\nfor policy a: change it"
	for range 2 {
		if err = Located(err, find); err.Error() != want {
			t.Fatalf("got %q, want %q", err, want)
		}
	}
	if diff := cmp.Diff([][]string{{"Pod/a", "Pod/b"}, {"Pod/b"}}, looked); diff != "" {
		t.Errorf("looked for (-want +got):\n%s", diff)
	}
	found, other := Violations(err)
	if len(found) != 5 || other != nil {
		t.Errorf("got %d violations, and %v", len(found), other)
	}
}

// TestErrorsAboutSomethingElseStay as they are, and only so many objects are looked for.
func TestErrorsAboutSomethingElseStay(t *testing.T) {
	away, v := errors.New("away"), &Violation{Object: "Pod/a", Rule: "X", Why: "is wrong"}
	both := errors.Join(v, away)
	nothing := func([]string) map[string]Place { return map[string]Place{"Pod/a": {File: "a", Line: 1}} }
	located := &Violation{Object: "Pod/a", Rule: "X", Why: "is wrong", At: Place{File: "b", Line: 2}}
	for _, err := range []error{both, fmt.Errorf("chart web: %w", v), located, &Violation{Object: "a", Rule: "X", Why: "is named without a kind"}} {
		if got := Located(err, nothing); got != err { //nolint:errorlint // the same error
			t.Errorf("got %v", got)
		}
	}
	if err := Located(nil, nothing); err != nil {
		t.Errorf("of none: %v", err)
	}
	if found, other := Violations(both); len(found) != 1 || !errors.Is(other, away) || errors.Is(other, v) {
		t.Errorf("got %v, %v", found, other)
	}
	var many []*Violation
	for i := range maxLocated + 5 {
		many = append(many, &Violation{Object: fmt.Sprintf("Pod/%03d", i), Rule: "X", Why: "is wrong"})
	}
	looked := 0
	err := Located(join(many), func(objects []string) map[string]Place {
		looked = len(objects)
		return map[string]Place{"Pod/000": {File: "a", Line: 1}}
	})
	found, _ := Violations(err)
	if looked != maxLocated || found[0].At == (Place{}) || found[maxLocated].At != (Place{}) {
		t.Errorf("looked for %d objects", looked)
	}
}
