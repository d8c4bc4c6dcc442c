package policy

import (
	"errors"
	"fmt"
	"testing"
)

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
