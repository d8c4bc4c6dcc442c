package usage

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
)

// world has a tenant acme of two projects, and the quotas of namespaces, which count ConfigMaps.
type world struct {
	t      *testing.T
	store  *Store
	clock  *testclock.FakeClock
	mu     sync.Mutex
	quotas map[string]*corev1.ResourceQuota
	reads  int
	err    error
	tenant *v1alpha1.Tenant
}

// newWorld allows acme 100 ConfigMaps.
func newWorld(t *testing.T) *world {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	limit := resource.MustParse("3200Ki")
	w := &world{
		t: t, clock: testclock.NewFakeClock(time.Unix(1_700_000_000, 0)), quotas: map[string]*corev1.ResourceQuota{},
		tenant: &v1alpha1.Tenant{ObjectMeta: objectMeta("", "acme", 1), Spec: v1alpha1.TenantSpec{Limits: v1alpha1.TenantLimits{StoreBytes: &limit}}},
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.tenant, &v1alpha1.Project{ObjectMeta: objectMeta("kubeop-acme", "shop", 1)},
		&v1alpha1.Project{ObjectMeta: objectMeta("kubeop-acme", "blog", 1)}).Build()
	w.store = &Store{Reader: reader, Limits: budget.Default(), Clock: w.clock, Quota: func(namespace string) (*corev1.ResourceQuota, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.reads++
		return w.quotas[namespace], w.err
	}}
	return w
}

func configMaps(n int64) corev1.ResourceList {
	return corev1.ResourceList{"count/configmaps": *resource.NewQuantity(n, resource.DecimalSI)}
}

// has sets what a namespace has, and sends the change.
func (w *world) has(namespace string, n int64) {
	w.mu.Lock()
	w.quotas[namespace] = &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: configMaps(60)}, Status: corev1.ResourceQuotaStatus{Used: configMaps(n)}}
	w.mu.Unlock()
	w.store.Changed("acme", namespace)
}

func (w *world) shares(namespace string) int64 {
	w.t.Helper()
	hard, less, err := w.store.Share(w.t.Context(), w.tenant, namespace, configMaps(60))
	if err != nil {
		w.t.Fatal(err)
	}
	most := hard["count/configmaps"]
	if lowered := w.store.Lowered("acme", namespace); less != (most.Value() < 60) || less != lowered {
		w.t.Errorf("%s may have %s of 60: less %t, lowered %t", namespace, most.String(), less, lowered)
	}
	return most.Value()
}

func TestShareCountsAllNamespacesOfTheTenant(t *testing.T) {
	w := newWorld(t)
	w.has("kubeop-acme", 5) // Its home.
	w.has("kubeop-acme-blog", 40)
	if got := w.shares("kubeop-acme-shop"); got != 60 {
		t.Errorf("below half the project may have %d, want 60", got)
	}
	w.has("kubeop-acme-blog", 50)
	if got := w.shares("kubeop-acme-shop"); got != 45 {
		t.Errorf("of 45 that are left the project may have %d, want 45", got)
	}
	taken, err := w.store.Taken(t.Context(), "acme")
	if err != nil || taken != 55*32<<10 {
		t.Errorf("taken is %d: %v", taken, err)
	}
	before := w.reads
	w.shares("kubeop-acme-shop")
	if read := w.reads - before; read != 1 {
		t.Errorf("nothing changed, and %d quotas were read, want 1", read)
	}
	w.tenant.Spec.MaxObjectSize = ptr.To(resource.MustParse("64Ki"))
	if got := w.shares("kubeop-acme-shop"); got != 0 {
		t.Errorf("with objects twice as large the project may have %d, want 0", got)
	}
	w.mu.Lock()
	delete(w.quotas, "kubeop-acme-blog")
	w.mu.Unlock()
	w.store.Changed("acme", "kubeop-acme-blog")
	if got := w.shares("kubeop-acme-shop"); got != 60 {
		t.Errorf("the other project is gone, and this one may have %d, want 60", got)
	}
	w.store.Changed("acme", "kubeop-acme-blog")
	w.shares("kubeop-acme-shop")
	w.has("kubeop-acme-blog", 44)
	if got := w.shares("kubeop-acme-shop"); got != 1 {
		t.Errorf("the other project is back, and this one may have %d, want 1", got)
	}
	w.err = errors.New("not listed yet")
	w.store.Changed("acme", "kubeop-acme-blog")
	if _, _, err := w.store.Share(t.Context(), w.tenant, "kubeop-acme-shop", configMaps(60)); err == nil {
		t.Error("what cannot be read counts as nothing")
	}
	if taken, err := w.store.Taken(t.Context(), "other"); err != nil || taken != 0 {
		t.Errorf("of nobody %d is taken: %v", taken, err)
	}
}

// wakes starts the store and returns what it wakes, a second after the change.
func (w *world) wakes() func(want ...string) {
	woken := make(chan string, 10)
	w.store.OnChange(func(_ context.Context, tenant string) { woken <- tenant })
	go func() { _ = w.store.Start(w.t.Context()) }()
	return func(want ...string) {
		w.t.Helper()
		for range 200 { // It begins to wait shortly after the change.
			if w.clock.HasWaiters() {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		w.clock.Step(gather)
		var got []string
		for limit := time.After(300 * time.Millisecond); ; {
			select {
			case tenant := <-woken:
				got = append(got, tenant)
				continue
			case <-limit:
			}
			break
		}
		if !slices.Equal(got, want) {
			w.t.Errorf("woken are the projects of %v, want %v", got, want)
		}
	}
}

func TestProjectsAreWokenWhenAnotherUsesTheRest(t *testing.T) {
	w := newWorld(t)
	expect := w.wakes()
	w.has("kubeop-acme-blog", 30)
	expect()
	w.has("kubeop-acme-blog", 55)
	w.has("kubeop-acme-shop", 3)
	expect("acme")
	w.has("kubeop-acme-shop", 3)
	expect()
	w.has("kubeop-acme-shop", 10)
	expect("acme")
	// Less is taken: there is no haste.
	w.has("kubeop-acme-shop", 4)
	expect()
	w.clock.Step(loosen)
	expect("acme")
	w.store.Changed("nobody", "kubeop-nobody")
	expect()
}

// TestAChangeIsKeptUntilThereIsSomethingToWake: the store may get changes before the controller of projects is set up.
func TestAChangeIsKeptUntilThereIsSomethingToWake(t *testing.T) {
	w := newWorld(t)
	w.has("kubeop-acme-blog", 55)
	if tenants, _ := w.store.due(t.Context()); tenants != nil {
		t.Errorf("the projects of %v are woken by nothing", tenants)
	}
	w.store.OnChange(func(context.Context, string) {})
	if tenants, wake := w.store.due(t.Context()); !slices.Equal(tenants, []string{"acme"}) || wake == nil {
		t.Errorf("woken are the projects of %v, want those of acme", tenants)
	}
}

// TestStartGetsTheFirstChange, whether it begins to wait before or after it.
func TestStartGetsTheFirstChange(t *testing.T) {
	for name, early := range map[string]bool{"before": true, "after": false} {
		w := newWorld(t)
		var signals <-chan struct{}
		if early {
			signals = w.store.signals()
		}
		if w.has("kubeop-acme-blog", 55); !early {
			signals = w.store.signals()
		}
		select {
		case <-signals:
		default:
			t.Errorf("%s: there is no signal of the change", name)
		}
	}
}

// TestADeletedTenantIsForgotten, with all that was counted for it.
func TestADeletedTenantIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.has("kubeop-acme-blog", 55)
	if taken, err := w.store.Taken(t.Context(), "acme"); taken == 0 || err != nil {
		t.Errorf("%d bytes are counted: %v", taken, err)
	}
	if err := w.store.Reader.(client.Client).Delete(t.Context(), w.tenant); err != nil {
		t.Fatal(err)
	}
	if taken, err := w.store.Taken(t.Context(), "acme"); taken != 0 || err != nil || len(w.store.tenants) != 0 {
		t.Errorf("%d bytes are counted, of %d tenants: %v", taken, len(w.store.tenants), err)
	}
}

// TestProjectsAreDueWhenTheTenantNearsItsLimit: of 100 ConfigMaps, it is near from 50 on.
func TestProjectsAreDueWhenTheTenantNearsItsLimit(t *testing.T) {
	away := errors.New("not listed yet")
	for name, tc := range map[string]struct {
		was, is int64
		after   time.Duration
		err     error
		due     bool
		// kept: the tenant is looked at again. reported are the ConfigMaps with which its projects were woken last.
		kept     bool
		reported int64
	}{
		"the same":                      {was: 55, is: 55, reported: 55},
		"more":                          {was: 55, is: 56, due: true, reported: 56},
		"less, soon":                    {was: 55, is: 54, after: loosen - 1, kept: true, reported: 55},
		"less, later":                   {was: 55, is: 54, after: loosen, due: true, reported: 54},
		"less, and not near any more":   {was: 55, is: 10, after: loosen, due: true, reported: 10},
		"more, but far from the limit":  {was: 10, is: 20, reported: 20},
		"what cannot be counted":        {was: 55, is: 56, err: away, kept: true, reported: 55},
		"near the limit since just now": {was: 10, is: 60, due: true, reported: 60},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.store.OnChange(func(context.Context, string) {})
			w.has("kubeop-acme-blog", tc.was)
			w.store.due(t.Context())
			w.clock.Step(tc.after)
			w.has("kubeop-acme-blog", tc.is)
			w.err = tc.err
			tenants, _ := w.store.due(t.Context())
			if due := slices.Equal(tenants, []string{"acme"}); due != tc.due || !due && tenants != nil {
				t.Errorf("due are %v", tenants)
			}
			if kept := w.store.changed["acme"]; kept != tc.kept {
				t.Errorf("looked at again: %t", kept)
			}
			if got := w.store.tenants["acme"].reported; got != tc.reported*32<<10 {
				t.Errorf("reported are %d bytes, want those of %d ConfigMaps", got, tc.reported)
			}
		})
	}
}

// TestANamespaceThatWasNotCheckedIsLoweredNearTheLimit.
func TestANamespaceThatWasNotCheckedIsLoweredNearTheLimit(t *testing.T) {
	w := newWorld(t)
	if w.store.Lowered("acme", "kubeop-acme-shop") {
		t.Error("it is lowered before anything was counted")
	}
	for n, want := range map[int64]bool{40: false, 60: true} {
		w.has("kubeop-acme-blog", n)
		if w.store.Lowered("acme", "kubeop-acme-shop") && n == 40 {
			t.Error("it is lowered before the change was counted")
		}
		if _, err := w.store.Taken(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		if got := w.store.Lowered("acme", "kubeop-acme-shop"); got != want {
			t.Errorf("with %d of 100: lowered %t, want %t", n, got, want)
		}
		w = newWorld(t)
	}
}
