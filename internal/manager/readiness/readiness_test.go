package readiness

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestChecksThatFailOrHangAreNamed(t *testing.T) {
	if missing := New(logr.Discard(), time.Now).Missing(t.Context()); missing != nil {
		t.Errorf("without checks: %v", missing)
	}
	var lines []string
	now := time.Unix(0, 0)
	c := New(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}), func() time.Time { return now })
	closed := true
	c.Add("good", func(context.Context) error { return nil })
	c.Add("store", func(context.Context) error {
		if closed {
			return errors.New("it is closed")
		}
		return nil
	})
	never := make(chan struct{})
	defer close(never)
	c.Add("hangs", func(context.Context) error { <-never; return nil })
	for range 2 {
		if diff := cmp.Diff([]string{"hangs", "store"}, c.Missing(t.Context())); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		now = now.Add(memory)
	}
	metrics := `# HELP kubeop_manager_missing 1 if this is missing, so that requests that need it are answered by 503, or from what was there before; 0 if it is there.
# TYPE kubeop_manager_missing gauge
kubeop_manager_missing{name="good"} 0
kubeop_manager_missing{name="hangs"} 1
kubeop_manager_missing{name="store"} 1
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(metrics)); err != nil {
		t.Error(err)
	}
	closed, now = false, now.Add(memory)
	c.Missing(t.Context())
	slices.Sort(lines)
	want := []string{
		`"level"=0 "msg"="Missing" "check"="hangs" "why"="context deadline exceeded"`, `"level"=0 "msg"="Missing" "check"="store" "why"="it is closed"`,
		`"level"=0 "msg"="There again" "check"="store"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

// TestManyWhoAskMakeOneCheck in a second, and it does not end with the request of the first one.
func TestManyWhoAskMakeOneCheck(t *testing.T) {
	now := time.Unix(0, 0)
	c := New(logr.Discard(), func() time.Time { return now })
	var made atomic.Int32
	c.Add("store", func(ctx context.Context) error {
		made.Add(1)
		return ctx.Err()
	})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if missing := c.Missing(gone); missing != nil {
				t.Errorf("missing: %v", missing)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("%d checks were made", made.Load())
	}
	now = now.Add(memory)
	if c.Missing(t.Context()); made.Load() != 2 {
		t.Errorf("after a second %d checks were made", made.Load())
	}
}
