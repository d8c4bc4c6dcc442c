package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestARemedyOfSeveralViolationsIsSaidOnce(t *testing.T) {
	ask, install := Remedy{"cluster-scoped objects", "or ask an administrator"}, Remedy{"unknown kinds", "install it"}
	found := []*Violation{
		{Object: "Node/a", Rule: ClusterScoped, Why: "is refused", Remedies: []Remedy{{"", "take it out"}, ask}},
		{Object: "Node/b", Rule: ClusterScoped, Why: "is refused", Remedies: []Remedy{ask}},
		{Object: "Node/c", Rule: ClusterScoped, Why: "is refused", Remedies: []Remedy{ask}},
		{Object: "Thing/d", Rule: UnknownKind, Why: "is unknown", Remedies: []Remedy{install}},
	}
	want := []string{
		"Node/a is refused; take it out", "Node/b is refused", "Node/c is refused", "Thing/d is unknown; install it",
		"for cluster-scoped objects: ask an administrator",
	}
	if diff := cmp.Diff(want, strings.Split(join(found).Error(), "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestViolationsOfSomeRulesCanBeLeftOut(t *testing.T) {
	unknown, scoped := &Violation{Object: "Thing/a", Rule: UnknownKind, Why: "is unknown"}, &Violation{Object: "Node/b", Rule: ClusterScoped, Why: "is cluster-scoped"}
	other := errors.New("away")
	empty := &noErrors{}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"none":                         {nil, ""},
		"the only one":                 {join([]*Violation{unknown}), ""},
		"one of two":                   {errors.Join(join([]*Violation{unknown}), join([]*Violation{scoped})), "Node/b is cluster-scoped"},
		"another one":                  {fmt.Errorf("checking: %w", join([]*Violation{scoped})), "Node/b is cluster-scoped"},
		"beside an error":              {errors.Join(unknown, other), unknown.Error() + "\naway"},
		"an error that joins no other": {empty, "nothing is joined"},
	} {
		got := Without(c.err, UnknownKind)
		if text := fmt.Sprint(got); got == nil && c.want != "" || got != nil && text != c.want {
			t.Errorf("%s: got %v, want %q", name, got, c.want)
		}
		if OnlyUnknownKinds(c.err) != (c.err != nil && c.want == "") {
			t.Errorf("%s: only unknown kinds: %t", name, OnlyUnknownKinds(c.err))
		}
	}
}

type noErrors struct{}

func (noErrors) Error() string   { return "nothing is joined" }
func (noErrors) Unwrap() []error { return nil }
