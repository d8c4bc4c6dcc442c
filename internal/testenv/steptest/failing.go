package steptest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/controllers/step"
)

// Failing answers one request with an error, and passes all others on.
type Failing struct {
	mu sync.Mutex
	// until is the number of requests up to the one that fails, itself included.
	until int
	// failed names the request that failed; "" if there were too few requests.
	failed string
}

// EachRequest calls run once for each request that run makes through the client of Failing, and lets that request fail. It reports the requests
// whose error run does not return. A run without such an error may end with a step.Wait. It returns the number of requests.
func EachRequest(t *testing.T, run func(f *Failing) error) int {
	t.Helper()
	for n := 1; ; n++ {
		f := &Failing{until: n}
		err := run(f)
		if f.failed == "" {
			if err != nil && !step.Waits(err) {
				t.Errorf("no request failed: %v", err)
			}
			return n - 1
		}
		if err == nil || !strings.Contains(err.Error(), f.answer().Error()) {
			t.Errorf("the error of the request %s is not returned: %v", f.failed, err)
		}
	}
}

// Client returns a client that sends its requests to api, except for the one that fails.
func (f *Failing) Client(api client.WithWatch) client.WithWatch {
	return interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return f.or("get", o, func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return f.or("list", list, func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return f.or("create", o, func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return f.or("update", o, func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return f.or("patch", o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return f.or("apply", o, func() error { return c.Apply(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return f.or("delete", o, func() error { return c.Delete(ctx, o, opts...) })
		},
	})
}

func (f *Failing) or(verb string, o any, send func() error) error {
	f.mu.Lock()
	f.until--
	fails := f.until == 0
	if fails {
		f.failed = fmt.Sprintf("%s %T", verb, o)
	}
	f.mu.Unlock()
	if fails {
		return f.answer()
	}
	return send()
}

func (f *Failing) answer() error { return fmt.Errorf("the API server is away for: %s", f.failed) }
