package readiness

import (
	"context"
	"errors"
	"testing"

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
	if diff := cmp.Diff([]string{"hangs", "store"}, c.NotReady(t.Context())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
