package pool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMetricsNameTheOutcomeOfATask(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		reach Reach
		want  string
	}{
		"no error":        {nil, Answered, "fetched"},
		"an answer":       {errors.New("no such thing"), Answered, "failed"},
		"no answer":       {errSilent, Silent, "silent"},
		"no connection":   {errRefused, Unconnected, "unconnected"},
		"the timeout":     {fmt.Errorf("it takes longer than the %w of 1m", ErrTimeout), Silent, "timeout"},
		"another timeout": {context.DeadlineExceeded, Answered, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcomeOf(tc.err, tc.reach); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestMetricsCountTheTasksAndHostsOfAPool: tasks run, wait and end, and a host of an app and one of Repositories give no answer.
func TestMetricsCountTheTasksAndHostsOfAPool(t *testing.T) {
	b := newFixture(t, Options{PerTenant: 1})
	for i := range tries {
		for _, task := range []Task{b.task(fmt.Sprint("app", i), "bad", "acme"), of(Repository, b.task(fmt.Sprint("repository", i), "bad too", "shop"))} {
			b.submit(task)
			b.clock.Step(2 * time.Second)
			b.end(task.Source, errRefused)
		}
	}
	b.prove("good", "acme", App)
	b.prove("good", "shop", Repository)
	b.clock.Step(time.Minute)
	b.submit(b.task("probe", "bad", "acme"))
	b.submit(b.task("waits", "good", "acme"))
	b.submit(of(Repository, b.task("runs", "good", "shop")))
	b.submit(of(Platform, b.task("platform", "good", "platform")))
	canceled := b.submit(b.task("canceled", "good", "other"))
	b.clock.Step(30 * time.Second)
	canceled()
	_ = b.finished("canceled") // It was canceled.
	want := `
# HELP kubeop_fetch_hosts Hosts of sources, by the state of their circuit breaker.
# TYPE kubeop_fetch_hosts gauge
kubeop_fetch_hosts{of="apps",state="closed"} 2
kubeop_fetch_hosts{of="apps",state="open"} 0
kubeop_fetch_hosts{of="apps",state="probing"} 1
kubeop_fetch_hosts{of="repositories",state="closed"} 1
kubeop_fetch_hosts{of="repositories",state="open"} 1
kubeop_fetch_hosts{of="repositories",state="probing"} 0
# HELP kubeop_fetch_running Fetches under way.
# TYPE kubeop_fetch_running gauge
kubeop_fetch_running{priority="app"} 1
kubeop_fetch_running{priority="platform"} 1
kubeop_fetch_running{priority="repository"} 1
# HELP kubeop_fetch_waiting Fetches that wait for a slot.
# TYPE kubeop_fetch_waiting gauge
kubeop_fetch_waiting{priority="app"} 1
kubeop_fetch_waiting{priority="platform"} 0
kubeop_fetch_waiting{priority="repository"} 0
`
	if err := testutil.CollectAndCompare(b, strings.NewReader(want), "kubeop_fetch_hosts", "kubeop_fetch_running", "kubeop_fetch_waiting"); err != nil {
		t.Error(err)
	}
	type series struct{ priority, outcome string }
	got := map[series]string{}
	registry := prometheus.NewRegistry()
	registry.MustRegister(b)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				labels := map[string]string{}
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				got[series{labels["priority"], labels["outcome"]}] = fmt.Sprintf("%d in %gs", h.GetSampleCount(), h.GetSampleSum())
			}
		}
	}
	if diff := cmp.Diff(map[series]string{
		{"app", "unconnected"}: "3 in 6s", {"repository", "unconnected"}: "3 in 6s", {"app", "fetched"}: "1 in 0s", {"repository", "fetched"}: "1 in 0s",
		{"app", "canceled"}: "1 in 30s",
	}, got); diff != "" {
		t.Errorf("durations (-want +got):\n%s", diff)
	}
}

func TestUnsetOptionsOfAPoolHaveDefaults(t *testing.T) {
	p := New(Options{}, clocktesting.NewFakeClock(noon))
	got := p.Options
	if reach := got.Reach(errSilent); reach != Answered {
		t.Errorf("without Reach, an error means %v", reach)
	}
	got.Reach = nil
	if diff := cmp.Diff(Options{Name: "fetches", Slots: 32, Trials: 512, PerHost: 8, PerTenant: 4, Waiting: 1000, Slow: 500 * time.Millisecond}, got); diff != "" {
		t.Error(diff)
	}
	want := [lanes]lane{reserved: {slots: 1}, proven: {slots: 32, apps: 24}, trial: {slots: 512, apps: 128}}
	if diff := cmp.Diff(want, p.lanes, cmp.AllowUnexported(lane{})); diff != "" {
		t.Error(diff)
	}
	if p := New(Options{Slots: 1, Trials: 1}, clocktesting.NewFakeClock(noon)); p.lanes[proven].apps != 1 || p.lanes[trial].apps != 1 {
		t.Errorf("apps may use %d and %d of one slot each", p.lanes[proven].apps, p.lanes[trial].apps)
	}
}

// TestTheContextOfATaskEndsWithIt: what it left running ends, too.
func TestTheContextOfATaskEndsWithIt(t *testing.T) {
	b := newFixture(t, Options{})
	task := b.task("one", "host", "acme")
	left := make(chan context.Context, 1)
	task.Run = func(ctx context.Context) error { left <- ctx; return nil }
	b.submit(task)
	if err := b.finished("one"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-(<-left).Done():
	case <-time.After(30 * time.Second):
		t.Error("it does not end")
	}
	if b.clock.HasWaiters() {
		t.Error("its timers are not stopped")
	}
}
