package readiness

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

func TestChecksThatFailOrHangAreNamed(t *testing.T) {
	var c Checks
	if not := c.NotReady(t.Context()); not != nil {
		t.Errorf("without checks: %v", not)
	}
	c.Add("good", func(context.Context) error { return nil })
	c.Add("store", func(context.Context) error { return errors.New("it is closed") })
	never := make(chan struct{})
	defer close(never)
	c.Add("hangs", func(context.Context) error { <-never; return nil })
	var lines []string
	c.Log = funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	for range 2 {
		if diff := cmp.Diff([]string{"hangs", "store"}, c.NotReady(t.Context())); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	c.Add("store", func(context.Context) error { return nil })
	c.NotReady(t.Context())
	slices.Sort(lines)
	want := []string{
		`"level"=0 "msg"="Not ready" "check"="hangs" "why"="context deadline exceeded"`, `"level"=0 "msg"="Not ready" "check"="store" "why"="it is closed"`,
		`"level"=0 "msg"="Ready again" "check"="store"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}
