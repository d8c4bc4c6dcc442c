package usage

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// granting is a tenant with a budget of processors, whose quotas are in a watch that shows what is written only when the test says so.
type granting struct {
	*Grants
	t      *testing.T
	tenant *v1alpha1.Tenant
	clock  *clocktesting.FakeClock
	mu     sync.Mutex
	live   map[string]string
	reads  int
	err    error
	woken  []string
}

func newGranting(t *testing.T, budget string, projects ...string) *granting {
	w := &granting{t: t, tenant: tenantWith(budget), clock: clocktesting.NewFakeClock(time.Unix(1e9, 0)), live: map[string]string{}}
	var objects []client.Object
	for _, name := range projects {
		objects = append(objects, projectWith(name, ""))
	}
	w.Grants = &Grants{Reader: budgets(t, objects...).Reader, Clock: w.clock, Quota: func(namespace string) (*corev1.ResourceQuota, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.reads++
		if amount, there := w.live[namespace]; there {
			return &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: cpus(amount)}}, w.err
		}
		return nil, w.err
	}}
	w.OnChange(func(tenant, project string) { w.woken = append(w.woken, tenant+"/"+project) })
	return w
}

// grant returns what a project gets of what it wants; with a "!" if that is refused.
func (w *granting) grant(project, cpu string) string {
	w.t.Helper()
	hard, over, err := w.Grant(w.t.Context(), w.tenant, project, cpus(cpu))
	if err != nil {
		w.t.Fatal(err)
	}
	amount := hard[corev1.ResourceRequestsCPU]
	if over != nil {
		return amount.String() + "!"
	}
	return amount.String()
}

// shows has the watch show a quota; "" for none.
func (w *granting) shows(project, cpu string) {
	namespace := v1alpha1.ProjectNamespace("acme", project)
	w.mu.Lock()
	if w.live[namespace] = cpu; cpu == "" {
		delete(w.live, namespace)
	}
	w.mu.Unlock()
	w.Changed("acme", namespace)
}

func (w *granting) want(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

func TestAGrantCountsBeforeTheWatchShowsIt(t *testing.T) {
	w := newGranting(t, "10")
	w.want("the first", w.grant("a", "6"), "6")
	w.want("the second, before the first is seen", w.grant("b", "6"), "0!")
	w.want("what fits", w.grant("c", "4"), "4")
	w.want("the first again", w.grant("a", "6"), "6")
	w.shows("a", "6")
	w.shows("c", "4")
	w.want("more", w.grant("a", "7"), "6!")
	w.want("less", w.grant("a", "3"), "3")
	w.want("what is given back and not seen yet", w.grant("b", "3"), "0!")
	w.shows("a", "3")
	w.want("what is given back", w.grant("b", "3"), "3")
}

// TestABudgetIsForProjects: the namespace of the tenant itself has a quota of its own.
func TestABudgetIsForProjects(t *testing.T) {
	w := newGranting(t, "10")
	home := v1alpha1.HomeNamespace("acme")
	w.live[home] = "6"
	w.Changed("acme", home)
	w.want("beside the home namespace", w.grant("a", "10"), "10")
}

// TestQuotasAreReadAgainOnlyAfterAChange: a tenant may have a thousand projects.
func TestQuotasAreReadAgainOnlyAfterAChange(t *testing.T) {
	w := newGranting(t, "10", "a", "b")
	w.grant("a", "1")
	if w.reads != 2 {
		t.Errorf("%d quotas are read first, want 2", w.reads)
	}
	if w.grant("a", "1"); w.reads != 2 {
		t.Errorf("%d more quotas are read although none changed", w.reads-2)
	}
}

// TestADeletedProjectFreesItsShareAtOnce, however short ago it was granted.
func TestADeletedProjectFreesItsShareAtOnce(t *testing.T) {
	w := newGranting(t, "10")
	w.grant("a", "10")
	w.shows("a", "10")
	w.grant("a", "10")
	w.want("while it is there", w.grant("b", "1"), "0!")
	w.shows("a", "")
	w.want("when it is gone", w.grant("b", "1"), "1")
	// A late event about an earlier quota of the same name frees nothing that was granted since.
	w.want("anew", w.grant("a", "9"), "9")
	w.shows("a", "")
	w.want("before the new quota is seen", w.grant("c", "1"), "0!")
}

func TestAGrantThatWasNeverWrittenLapses(t *testing.T) {
	w := newGranting(t, "10")
	w.grant("a", "10")
	w.clock.Step(unseenFor)
	w.want("within a minute", w.grant("b", "1"), "0!")
	w.clock.Step(time.Second)
	w.want("after it", w.grant("b", "1"), "1")
}

// TestALoweredBudgetTakesNothing: projects keep what they have.
func TestALoweredBudgetTakesNothing(t *testing.T) {
	w := newGranting(t, "4")
	w.shows("a", "6")
	w.shows("b", "2")
	w.want("what is there", w.grant("a", "6"), "6")
	w.want("a grow", w.grant("b", "3"), "2!")
	w.want("a shrink", w.grant("a", "5"), "5")
	w.tenant.Spec.Budget = cpus("100")
	w.want("a raised budget", w.grant("b", "3"), "3")
	w.tenant.Spec.Budget = nil
	w.want("no budget", w.grant("b", "1k"), "1k")
}

// TestANamespaceThatIsLeftBehindCounts, as with deletionPolicy Orphan.
func TestANamespaceThatIsLeftBehindCounts(t *testing.T) {
	w := newGranting(t, "10")
	w.shows("orphan", "8")
	w.want("beside what was left", w.grant("a", "4"), "0!")
	w.shows("orphan", "")
	w.want("when it is gone", w.grant("a", "4"), "4")
}

func TestARefusedProjectIsWokenWhenAnotherGivesSomethingBack(t *testing.T) {
	w := newGranting(t, "10")
	w.grant("a", "10")
	w.shows("a", "10")
	w.grant("b", "1")
	w.shows("b", "0")
	w.Changed("acme", v1alpha1.ProjectNamespace("acme", "a")) // Only its use changed.
	if len(w.woken) > 0 {
		t.Errorf("woken are %v", w.woken)
	}
	w.grant("a", "8")
	w.shows("a", "8")
	if diff := cmp.Diff([]string{"acme/b"}, w.woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	w.want("then", w.grant("b", "1"), "1")
	w.shows("b", "1")
	w.shows("a", "7")
	if len(w.woken) != 1 {
		t.Errorf("what was granted is woken again: %v", w.woken)
	}
}

// TestOnlyWhatDoesNotFitIsRefused: the rest of the quota is granted.
func TestOnlyWhatDoesNotFitIsRefused(t *testing.T) {
	w := newGranting(t, "10")
	w.tenant.Spec.Budget[corev1.ResourcePods] = resource.MustParse("100")
	w.shows("a", "8")
	hard := corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("5"), corev1.ResourcePods: resource.MustParse("50"), corev1.ResourceRequestsMemory: resource.MustParse("1Ti")}
	got, over, err := w.Grant(t.Context(), w.tenant, "b", hard)
	cpu, pods, memory := got[corev1.ResourceRequestsCPU], got[corev1.ResourcePods], got[corev1.ResourceRequestsMemory]
	if err != nil || over == nil || cpu.String() != "0" || pods.String() != "50" || memory.String() != "1Ti" {
		t.Errorf("got %s, %s, %s; %v, %v", cpu.String(), pods.String(), memory.String(), over, err)
	}
	if asked := hard[corev1.ResourceRequestsCPU]; asked.String() != "5" {
		t.Error("the quota of the caller was changed")
	}
}

func TestQuotasThatCannotBeReadGrantNothing(t *testing.T) {
	w := newGranting(t, "10", "a")
	w.err = errors.New("not listed yet")
	if _, _, err := w.Grant(t.Context(), w.tenant, "b", cpus("1")); err == nil {
		t.Error("what cannot be read counts as nothing")
	}
	w = newGranting(t, "10")
	w.Reader = failing{}
	if _, _, err := w.Grant(t.Context(), w.tenant, "b", cpus("1")); err == nil {
		t.Error("what cannot be listed counts as nothing")
	}
}

// TestConcurrentGrantsNeverExceedTheBudget has 50 projects ask at once.
func TestConcurrentGrantsNeverExceedTheBudget(t *testing.T) {
	w := newGranting(t, "20")
	granted := make(chan string, 50)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			hard, _, err := w.Grant(t.Context(), w.tenant, fmt.Sprint("p", i), cpus("3"))
			if err != nil {
				t.Error(err)
			}
			amount := hard[corev1.ResourceRequestsCPU]
			granted <- amount.String()
		})
	}
	all.Wait()
	close(granted)
	sum := resource.Quantity{}
	for amount := range granted {
		sum.Add(resource.MustParse(amount))
	}
	if sum.String() != "18" {
		t.Errorf("%s of 20 are granted, want 18", sum.String())
	}
}
