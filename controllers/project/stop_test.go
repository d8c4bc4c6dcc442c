package project

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/delivered"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/stop"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
	"github.com/kubeop/kubeop/internal/testenv/watchtest"
)

var quotaKind = corev1.SchemeGroupVersion.WithKind("ResourceQuota")

func stopped(tenant *v1alpha1.Tenant) { tenant.Spec.Stopped = true }

func podOf(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: name, UID: "pod"}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func ofReplicaSet(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: new(true)}}
}

// TestAStopReportsWhatStillRuns: the condition is True only when nothing does, and a look follows soon while something is about to end.
func TestAStopReportsWhatStillRuns(t *testing.T) {
	const until = "no pod is admitted in namespace kubeop-acme-shop until an administrator of the cluster removes spec.stopped from tenant.yaml of the platform repository in Git"
	for name, c := range map[string]struct {
		pods            []client.Object
		status          metav1.ConditionStatus
		reason, message string
		again           time.Duration
		ended           string
	}{
		"nothing": {nil, metav1.ConditionTrue, v1alpha1.StoppedReason, "nothing runs, and " + until, time.Second, ""},
		"a pod of a workload": {[]client.Object{podOf("web-1", ofReplicaSet), podOf("web-2", ofReplicaSet)}, metav1.ConditionUnknown, v1alpha1.StoppingReason,
			"waits for 2 pods to end: web-1; web-2; " + until, time.Second, "web-1 web-2"},
		"a pod of nobody": {[]client.Object{podOf("stray")}, metav1.ConditionFalse, v1alpha1.StillRunningReason,
			"kubeop leaves 1 pod running, which nothing would make again: stray; an owner of tenant acme with the role edit may delete one with " +
				"kubectl delete pod -n kubeop-acme-shop <pod>, or replace it by a Deployment in Git; " + until, time.Second, ""},
		"both": {[]client.Object{podOf("stray"), podOf("web-1", ofReplicaSet)}, metav1.ConditionFalse, v1alpha1.StillRunningReason, "kubeop leaves 1 pod running, which nothing would make again: stray; an owner of tenant acme with the role edit may delete one with kubectl delete pod -n kubeop-acme-shop <pod>, or replace it by a Deployment in Git; no pod is admitted in namespace kubeop-acme-shop until an administrator of the cluster removes spec.stopped from tenant.yaml of the platform repository in Git", time.Second, "web-1"},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := acme(stopped)
			elsewhere := podOf("other", ofReplicaSet, func(p *corev1.Pod) { p.Namespace = "kubeop-acme-blog" })
			b := newFixture(t, append(c.pods, tenant, elsewhere)...)
			s := b.with(shop(), tenant)
			if err := b.stop(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if n := s.stopped.note; n.Status != c.status || n.Reason != c.reason || n.Message != c.message {
				t.Errorf("got %s %s %q", n.Status, n.Reason, n.Message)
			}
			if s.Again() != c.again {
				t.Errorf("looks again after %s, want %s", s.Again(), c.again)
			}
			var ended []string
			for _, request := range b.requests {
				if pod, is := strings.CutPrefix(request, "system:serviceaccount:kubeop-acme-shop:kubeop-deployer DELETE /api/v1/namespaces/kubeop-acme-shop/pods/"); is {
					ended = append(ended, pod)
				}
			}
			slices.Sort(ended)
			if got := strings.Join(ended, " "); got != c.ended {
				t.Errorf("ended %q, want %q; requests %v", got, c.ended, b.requests)
			}
			if !b.get(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: stop.Quota}}) {
				t.Error("there is no quota")
			}
			if !slices.ContainsFunc(s.Notes(), func(n step.Note) bool { return n.Condition == v1alpha1.StoppedCondition }) || s.Heading() != "Stopped by administrators; " {
				t.Errorf("notes %v, heading %q", s.Notes(), s.Heading())
			}
		})
	}
}

// TestAnAppMakesOnlyPodsAgainThatItPutsBack: one that a chart made, or that nobody looks after, would be lost.
func TestAnAppMakesOnlyPodsAgainThatItPutsBack(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.App)
		want   bool
	}{
		"an app of manifests":       {func(*v1alpha1.App) {}, true},
		"a chart":                   {func(a *v1alpha1.App) { a.Spec.Type = v1alpha1.AppHelm }, false},
		"a chart that is corrected": {func(a *v1alpha1.App) { a.Spec.Type, a.Spec.Drift.Mode = v1alpha1.AppHelm, v1alpha1.DriftCorrect }, false},
		"drift is only reported":    {func(a *v1alpha1.App) { a.Spec.Drift.Mode = v1alpha1.DriftWarn }, false},
		"it is suspended":           {func(a *v1alpha1.App) { a.Spec.Suspend = true }, false},
		"it is suspended until then": {func(a *v1alpha1.App) {
			a.Annotations = map[string]string{v1alpha1.SuspendAnnotation: deletedAt.Add(time.Hour).Format(time.RFC3339)}
		}, false},
		"it was suspended until then": {func(a *v1alpha1.App) {
			a.Annotations = map[string]string{v1alpha1.SuspendAnnotation: deletedAt.Add(-time.Hour).Format(time.RFC3339)}
		}, true},
		"it is being deleted":        {func(a *v1alpha1.App) { a.DeletionTimestamp = &metav1.Time{Time: deletedAt} }, false},
		"the pod left its source":    {func(a *v1alpha1.App) { a.Status.Inventory.Entries[0].Stale = true }, false},
		"it has another kind":        {func(a *v1alpha1.App) { a.Status.Inventory.Entries[0].ID = shopNamespace + "_lone__ConfigMap" }, false},
		"it has a pod of that group": {func(a *v1alpha1.App) { a.Status.Inventory.Entries[0].ID = shopNamespace + "_lone_example.com_Pod" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			app := appOf(shopNamespace, "web")
			app.Spec.Type = v1alpha1.AppRaw
			app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{{ID: shopNamespace + "_lone__Pod", Version: "v1"}}
			c.change(app)
			b := newFixture(t, acme(stopped), app)
			remade, err := b.remade(t.Context(), b.with(shop(), acme(stopped)))
			if err != nil {
				t.Fatal(err)
			}
			if remade("lone") != c.want || remade("other") {
				t.Errorf("made again: %t, want %t", remade("lone"), c.want)
			}
		})
	}
}

// stopQuota is the quota of a stopped project.
func stopQuota(since time.Time) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: stop.Quota, Labels: maps.Clone(shopLabels), CreationTimestamp: metav1.NewTime(since)}}
}

// TestTheLongerAProjectIsStoppedTheRarerItIsLookedAt: soon while pods end, and from then on only for pods that something else makes, or that people delete.
func TestTheLongerAProjectIsStoppedTheRarerItIsLookedAt(t *testing.T) {
	for name, c := range map[string]struct {
		pods  []client.Object
		since time.Duration
		again time.Duration
	}{
		"nothing runs":         {nil, 0, time.Minute},
		"a pod of nobody":      {[]client.Object{podOf("stray")}, 0, 10 * time.Second},
		"a pod ends":           {[]client.Object{podOf("web-1", ofReplicaSet)}, 0, time.Second},
		"a pod ends for long":  {[]client.Object{podOf("web-1", ofReplicaSet)}, 50 * time.Second, 5 * time.Second},
		"one ends, one is not": {[]client.Object{podOf("stray"), podOf("web-1", ofReplicaSet)}, 50 * time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := acme(stopped)
			b := newFixture(t, append(c.pods, tenant, stopQuota(deletedAt.Add(-c.since)))...)
			b.Watch = watchtest.New(t, b.api, quotaKind)
			s := b.with(shop(), tenant)
			if err := b.stop(t.Context(), s); err != nil || s.Again() != c.again {
				t.Errorf("%v, looks again after %s, want %s", err, s.Again(), c.again)
			}
		})
	}
}

// TestAStopWaitsUntilQuotasAreKnown: otherwise it takes one that is there for a new one, and a tenant that runs again for one that was never stopped.
func TestAStopWaitsUntilQuotasAreKnown(t *testing.T) {
	tenant := acme(stopped)
	b := newFixture(t, tenant)
	b.fault = func(verb string, _ any, _ string) error {
		if verb == "list" {
			return errAway
		}
		return nil
	}
	b.Watch = watchtest.New(t, b.api)
	if err := b.stop(t.Context(), b.with(shop(), tenant)); err == nil || b.get(stopQuota(deletedAt)) {
		t.Errorf("got %v", err)
	}
}

// TestAProjectIsResumedOnceItsTenantRunsAgain, for as long as the quota shows that it was stopped.
func TestAProjectIsResumedOnceItsTenantRunsAgain(t *testing.T) {
	tenant := acme()
	b := newFixture(t, tenant, stopQuota(deletedAt))
	b.Watch = watchtest.New(t, b.api, quotaKind)
	s := b.with(shop(), tenant)
	if err := b.stop(t.Context(), s); err != nil || s.stopped.note.Reason != v1alpha1.ResumingReason || s.Again() != time.Second {
		t.Errorf("%v, %+v", err, s.stopped)
	}
	theirs := stopQuota(deletedAt)
	theirs.Labels[v1alpha1.ProjectLabel] = "blog"
	b = newFixture(t, theirs)
	for _, c := range []*v1alpha1.Tenant{tenant, acme(stopped)} {
		b.Watch = watchtest.New(t, b.api, quotaKind)
		if got := steptest.Outcome(t, b.stop(t.Context(), b.with(shop(), c))); !strings.Contains(got, "ApplyFailed: ResourceQuota/"+stop.Quota) {
			t.Errorf("with a quota of another project: %q", got)
		}
	}
}

// TestATenantThatRunsIsNotLookedAt: it costs no request.
func TestATenantThatRunsIsNotLookedAt(t *testing.T) {
	b := newFixture(t, acme())
	b.fault = func(string, any, string) error { return errAway }
	s := b.with(shop(), acme())
	if err := b.stop(t.Context(), s); err != nil || s.stopped.note.Status != "" || s.Again() != 0 {
		t.Errorf("%v, %+v, again %s", err, s.stopped, s.Again())
	}
}

// TestAResumeEndsByDeletingTheQuota: as long as it is there, an operator that was ended meanwhile goes on.
func TestAResumeEndsByDeletingTheQuota(t *testing.T) {
	tenant := acme(stopped)
	b := newFixture(t, tenant)
	s := b.with(shop(), tenant)
	if err := b.stop(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	tenant.Spec.Stopped = false
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: stop.Quota}}
	deployer := stop.Namespace{Name: shopNamespace, Reader: b.api, Writer: b.api}
	for _, after := range []time.Duration{0, time.Second} {
		s = b.again(s)
		b.clock.SetTime(deletedAt.Add(after))
		if err := b.resume(t.Context(), s, deployer); err != nil {
			t.Fatal(err)
		}
		if s.stopped.note.Status != metav1.ConditionUnknown || s.stopped.note.Reason != v1alpha1.ResumingReason || s.Again() != time.Second {
			t.Errorf("after %s: %+v, again %s", after, s.stopped, s.Again())
		}
		if !b.get(quota) || len(quota.Spec.Hard) != 0 {
			t.Errorf("after %s, the quota allows %v", after, quota.Spec.Hard)
		}
	}
	s = b.again(s)
	b.clock.SetTime(deletedAt.Add(3 * time.Second))
	if err := b.resume(t.Context(), s, deployer); err != nil || s.stopped.note != (step.Note{Condition: v1alpha1.StoppedCondition}) || s.Again() != 0 {
		t.Errorf("%v, %+v, again %s", err, s.stopped, s.Again())
	}
	if b.get(quota) {
		t.Error("the quota stays")
	}
	if s.Record(); len(s.project.Status.Inventory.Entries) != 0 {
		t.Errorf("it is still recorded: %v", s.project.Status.Inventory.Entries)
	}
	if err := b.resume(t.Context(), b.again(s), deployer); err != nil {
		t.Errorf("without a quota: %v", err)
	}
}

func TestEachRequestOfAStopThatFailsIsAnError(t *testing.T) {
	quota := stopQuota(deletedAt)
	quota.Annotations = map[string]string{v1alpha1.ResumedAtAnnotation: deletedAt.Add(-time.Hour).Format(time.RFC3339)} // So that this look is the last one.
	for name, c := range map[string]struct {
		do    func(*fixture, *scope) error
		least int
	}{
		"stopped": {func(b *fixture, s *scope) error { return b.stop(t.Context(), s) }, 4},
		"resumed": {func(b *fixture, s *scope) error {
			return b.resume(t.Context(), s, stop.Namespace{Name: shopNamespace, Reader: b.Direct, Writer: b.Direct})
		}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			requests := steptest.EachRequest(t, func(f *steptest.Failing) error {
				tenant := acme(stopped)
				b := newFixture(t, tenant)
				if name == "resumed" {
					if err := b.api.Create(t.Context(), quota.DeepCopy()); err != nil {
						t.Fatal(err)
					}
				}
				away := f.Client(b.api)
				b.Client, b.Direct = away, away
				return c.do(b, b.with(shop(), tenant))
			})
			if requests < c.least {
				t.Errorf("%d requests, want %d at least", requests, c.least)
			}
		})
	}
}

func TestAProjectIsLookedAtAgainAtTheSoonestTime(t *testing.T) {
	for name, c := range map[string]struct{ apps, stop, hosts, want time.Duration }{
		"none": {0, 0, 0, 0}, "apps": {time.Second, 0, 0, time.Second}, "a stop": {0, time.Minute, 0, time.Minute}, "a host name": {0, 0, time.Hour, time.Hour},
		"apps are sooner": {time.Second, time.Minute, time.Hour, time.Second}, "a stop is sooner": {time.Hour, time.Minute, time.Hour, time.Minute},
		"a host name is sooner": {time.Hour, time.Minute, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{counted: counted{delivered: &delivered.Report{Again: c.apps}}, stopped: halt{again: c.stop}, again: c.hosts}
			if got := s.Again(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
