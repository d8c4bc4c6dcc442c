package release

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/fair"
	"github.com/kubeop/kubeop/delivery/release/pool"
	"github.com/kubeop/kubeop/internal/sandbox"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// endless is a template that never ends.
const endless = `{{ range until 30000 }}{{ range until 30000 }}{{ end }}{{ end }}`

// Three tenants have as many endless charts evaluated as they may start; the chart of another tenant is nevertheless evaluated and
// released. An evaluation occupies no Helm worker: here are four workers and 24 evaluations. Without slices, a turn would come when an endless
// evaluation has used its minute of processor time.
func TestEndlessTemplatesDelayNoOtherTenant(t *testing.T) {
	needsProcesses(t)
	p := sandbox.New(sandbox.Options{Processes: 2, Limits: sandbox.Limits{CPU: time.Minute}})
	t.Cleanup(p.Close)
	tm := newTeam(t)
	turns := fair.NewSlices("test", 2, 250*time.Millisecond, nil, clock.RealClock{})
	var mu sync.Mutex
	var longest time.Duration
	tm.turn = func(ctx context.Context, tenant string, work func(context.Context) error) error {
		asked := time.Now()
		return turns.Run(ctx, tenant, func(ctx context.Context) error {
			if tenant == "beta" {
				mu.Lock()
				longest = max(longest, time.Since(asked))
				mu.Unlock()
			}
			return work(ctx)
		})
	}
	tm.evaluate = evaluateIn(p)
	tm.restart("me")
	t.Cleanup(func() { _ = tm.Drain(context.Background()) })
	for i := range 3 * pool.MaxInFlight {
		r := tm.named(fmt.Sprint("alpha", i), fmt.Sprint("alpha", i%3), endless)
		if _, err := tm.Reconcile(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second) // The first of them have exceeded their slices.
	for i := range 5 {
		at := time.Now()
		if out := tm.poll(tm.named(fmt.Sprint("beta", i), "beta", "good")); out.Failed != nil {
			t.Fatal(out.Failed)
		}
		t.Logf("released after %s", time.Since(at))
	}
	mu.Lock()
	defer mu.Unlock()
	if t.Logf("the longest wait for a turn: %s", longest); longest == 0 || longest > 30*time.Second {
		t.Errorf("a turn came after %s, want three slices of 250ms of processor time, which are a second each on a busy machine", longest)
	}
}

// named is an app of a tenant with a chart of one template.
func (t *team) named(name, tenant, text string) Request {
	r := t.request(sources.ChartFolder(inTemplate(templateOf("v1", "ConfigMap", "metadata:\n  name: {{ .Release.Name }}\ndata:\n  a: "+text+"\n"))))
	r.App.Name, r.Name, r.Tenant = name, name, tenant
	return r
}

// poll settles while other apps' actions end, too.
func (t *team) poll(r Request) Outcome {
	t.Helper()
	var out Outcome
	t.until(r.Name+" is released", func(ctx context.Context) (bool, error) {
		var err error
		out, err = t.Reconcile(ctx, r)
		return !out.Running, err
	})
	return out
}
