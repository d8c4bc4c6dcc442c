package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/internal/testenv/watchtest"
)

func TestTheDriftModeDecidesWhatBecomesOfADeletedObject(t *testing.T) {
	mode := func(helm bool, m v1alpha1.DriftMode) *v1alpha1.AppSpec {
		spec := &v1alpha1.AppSpec{}
		spec.Drift.Mode = m
		if helm {
			spec.Helm = &v1alpha1.HelmSource{}
		}
		return spec
	}
	for name, c := range map[string]struct {
		spec *v1alpha1.AppSpec
		want string
	}{
		"drift is corrected":              {mode(false, v1alpha1.DriftCorrect), ", and is put back"},
		"drift of a release is corrected": {mode(true, v1alpha1.DriftCorrect), ", and is put back"},
		"drift is not looked for":         {mode(false, v1alpha1.DriftOff), ", and stays away until its manifest changes, because drift.mode is " + string(v1alpha1.DriftOff)},
		"drift of a release is not":       {mode(true, v1alpha1.DriftOff), ", and stays away until the release is upgraded, because drift.mode is " + string(v1alpha1.DriftOff)},
	} {
		if got := afterDeletion(c.spec); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestTheHealthTimeoutIsThatOfTheAction: install and upgrade have their own timeouts.
func TestTheHealthTimeoutIsThatOfTheAction(t *testing.T) {
	install, upgrade := metav1.Duration{Duration: time.Minute}, metav1.Duration{Duration: 2 * time.Minute}
	for name, c := range map[string]struct {
		outcome *release.Outcome
		timeout bool
		want    time.Duration
		field   string
	}{
		"an install":                   {&release.Outcome{Deployed: release.Deployed{Installed: true}}, true, time.Minute, "spec.helm.install.timeout"},
		"an upgrade":                   {&release.Outcome{}, true, 2 * time.Minute, "spec.helm.upgrade.timeout"},
		"the engine was not called":    {nil, true, time.Minute, "spec.helm.install.timeout"},
		"an upgrade without a timeout": {&release.Outcome{}, false, 7 * time.Minute, "spec.timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.App{Spec: v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{}}}
			app.Spec.Timeout = metav1.Duration{Duration: 7 * time.Minute}
			if c.timeout {
				app.Spec.Helm.Install.Timeout, app.Spec.Helm.Upgrade.Timeout = &install, &upgrade
			}
			s := scopeOf(app, &releaser{admitter: &admitter{sources: &source.Fetcher{}}})
			s.release.outcome = c.outcome
			if got, field := healthDeadline(s); got != c.want || field != c.field {
				t.Errorf("got %s of %s, want %s of %s", got, field, c.want, c.field)
			}
		})
	}
}

func TestHealthExpressionsAreCompiledAgainForEachGeneration(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 1}}
	a := &assessor{}
	if err := a.compile(app); err != nil || a.checks.Get(app).compiled != nil {
		t.Fatalf("an app without expressions has checks: %v", err)
	}
	app.Spec.HealthCheckExprs = []kustomize.CustomHealthCheck{{APIVersion: "v1", Kind: "ConfigMap", HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: "true"}}}
	app.Generation = 2
	if err := a.compile(app); err != nil || a.checks.Get(app).generation != 2 || a.checks.Get(app).compiled == nil {
		t.Errorf("generation %d, %v", a.checks.Get(app).generation, err)
	}
	once := a.checks.Get(app).compiled
	if err := a.compile(app); err != nil || a.checks.Get(app).compiled != once {
		t.Errorf("the expressions of a generation are compiled twice: %v", err)
	}
	app.Spec.HealthCheckExprs[0].Current = "1 +"
	app.Generation = 3
	for range 2 {
		if err := a.compile(app); err == nil {
			t.Error("invalid expressions are compiled")
		}
	}
	a.Forget(app)
	if a.checks.Get(app).generation != 0 {
		t.Error("the checks of a deleted app are still remembered")
	}
}

// objectsLive has the assessor see objects, all of which the App delivers.
func (b *fixture) objectsLive(objects ...client.Object) {
	b.t.Helper()
	scheme := b.api.Scheme()
	api := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(watchtest.Mapper(scheme, "")).WithObjects(objects...).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string { return []string{string(o.(*corev1.Event).InvolvedObject.UID)} }).Build()
	b.assessor.watch = watchtest.New(b.t, api, appsv1.SchemeGroupVersion.WithKind("Deployment"), batchv1.SchemeGroupVersion.WithKind("Job"))
	b.assessor.explainer = func(_ string, mask func(string) string) (health.Explainer, error) {
		return health.Explainer{Client: api, Mask: mask}, nil
	}
	for _, o := range objects {
		gvk, err := api.GroupVersionKindFor(o)
		if err != nil {
			b.t.Fatal(err)
		}
		declared := &unstructured.Unstructured{}
		declared.SetGroupVersionKind(gvk)
		declared.SetNamespace(o.GetNamespace())
		declared.SetName(o.GetName())
		b.s.objects = append(b.s.objects, declared)
		b.s.inventory.Entries = append(b.s.inventory.Entries, v1alpha1.InventoryEntry{ID: shop + "_" + o.GetName() + "_" + gvk.Group + "_" + gvk.Kind, Version: gvk.Version})
	}
}

// deployment is one of the App, with some of its two pods ready.
func deployment(name string, ready int32) *appsv1.Deployment {
	two := int32(2)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, Generation: 1}, Spec: appsv1.DeploymentSpec{
		Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
	}}
	available := corev1.ConditionFalse
	if ready == two {
		available = corev1.ConditionTrue
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: two, UpdatedReplicas: two, ReadyReplicas: ready, AvailableReplicas: ready, Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: available}, {Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
	}}
	return labelled(d, "web")
}

func failedJob(name string) *batchv1.Job {
	return labelled(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}, Status: batchv1.JobStatus{
		Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit"}},
	}}, "web")
}

// TestTheExplanationOfAnUnhealthyObjectIsMasked, because it quotes what the object and its pods say.
func TestTheExplanationOfAnUnhealthyObjectIsMasked(t *testing.T) {
	b := newFixture(t, webApp(), interceptor.Funcs{})
	job := failedJob("migrate")
	job.Status.Conditions[0].Message = "cannot log in with hunter22hunter22"
	b.objectsLive(job)
	b.s.Hide("hunter22hunter22")
	verdict, err := b.assessor.look(t.Context(), b.s)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(verdict.Failed, " "); !strings.Contains(got, "cannot log in with ***") || strings.Contains(got, "hunter22") {
		t.Errorf("the verdict is %+v", verdict)
	}
}

// TestHealthThatCannotBeReadIsAnError, and does not count as healthy.
func TestHealthThatCannotBeReadIsAnError(t *testing.T) {
	b := newFixture(t, webApp(), interceptor.Funcs{})
	b.objectsLive(deployment("web", 2))
	b.assessor.explainer = func(string, func(string) string) (health.Explainer, error) {
		return health.Explainer{}, errors.New("no client")
	}
	if got := b.ended(b.assessor.assess(t.Context(), b.s)); got != "failed Failed: no client" {
		t.Errorf("got %q", got)
	}
}

// TestUnhealthyObjectsAreReportedAfterAWhile: waiting is not reported at once, and not longer than the timeout; a failure is reported at once.
func TestUnhealthyObjectsAreReportedAfterAWhile(t *testing.T) {
	helm := func(change func(*v1alpha1.HelmAction)) func(*v1alpha1.App) {
		return func(app *v1alpha1.App) {
			app.Spec.Type, app.Spec.Helm = v1alpha1.AppHelm, &v1alpha1.HelmSource{}
			change(&app.Spec.Helm.Install.HelmAction)
		}
	}
	long := func(app *v1alpha1.App) { app.Status.UnhealthySince = &metav1.Time{Time: time.Unix(1_000_000-300, 0)} }
	future := func(app *v1alpha1.App) { app.Status.UnhealthySince = &metav1.Time{Time: time.Unix(1_000_000+300, 0)} }
	for name, c := range map[string]struct {
		app     func(*v1alpha1.App)
		objects []client.Object
		// waited is the time between two looks, of which the second counts.
		waited  time.Duration
		gone    string
		kept    bool
		want    string
		since   int64
		settled bool
	}{
		"healthy":                             {objects: []client.Object{deployment("web", 2)}, want: "done", settled: true},
		"healthy after a long time":           {app: long, objects: []client.Object{deployment("web", 2)}, want: "done", settled: true},
		"nothing to judge":                    {want: "done", settled: true},
		"it just began":                       {objects: []client.Object{deployment("web", 1)}, want: "soon, after 2s", since: 1_000_000},
		"it waits":                            {objects: []client.Object{deployment("web", 1)}, waited: 2 * time.Second, want: "waits Progressing: Deployment/web: ", since: 1_000_000},
		"one of two waits":                    {objects: []client.Object{deployment("api", 2), deployment("web", 1)}, waited: time.Minute, want: "waits Progressing: Deployment/web: ", since: 1_000_000},
		"just within the timeout":             {objects: []client.Object{deployment("web", 1)}, waited: 299 * time.Second, want: "waits Progressing: Deployment/web: ", since: 1_000_000},
		"at the timeout":                      {objects: []client.Object{deployment("web", 1)}, waited: 300 * time.Second, want: "failed Unhealthy: not healthy within 5m0s (spec.timeout): Deployment/web: ", since: 1_000_000},
		"at the timeout, before a restart":    {app: long, objects: []client.Object{deployment("web", 1)}, want: "failed Unhealthy: not healthy within 5m0s (spec.timeout): Deployment/web: ", since: 1_000_000 - 300},
		"since a time in the future":          {app: future, objects: []client.Object{deployment("web", 1)}, want: "soon, after 2s", since: 1_000_000},
		"a failure":                           {objects: []client.Object{failedJob("migrate")}, want: "failed Unhealthy: Job/migrate: ", since: 1_000_000},
		"an object was deleted":               {objects: []client.Object{deployment("web", 2)}, gone: "api", waited: time.Minute, want: "waits Progressing: Deployment/api: was deleted, and is put back", since: 1_000_000},
		"only in the source, which is away":   {objects: []client.Object{deployment("web", 2)}, gone: "api", kept: true, want: "done", settled: true},
		"a release":                           {app: helm(func(*v1alpha1.HelmAction) {}), objects: []client.Object{deployment("web", 1)}, waited: time.Minute, want: "waits Progressing: Deployment/web: ", since: 1_000_000},
		"a release that is not waited for":    {app: helm(func(a *v1alpha1.HelmAction) { a.DisableWait = true }), objects: []client.Object{deployment("web", 1)}, want: "done", settled: true},
		"a release whose Jobs are waited for": {app: helm(func(*v1alpha1.HelmAction) {}), objects: []client.Object{failedJob("migrate")}, want: "failed Unhealthy: Job/migrate: ", since: 1_000_000},
		"a release whose Jobs are not":        {app: helm(func(a *v1alpha1.HelmAction) { a.DisableWaitForJobs = true }), objects: []client.Object{failedJob("migrate"), deployment("web", 2)}, want: "done", settled: true},
	} {
		t.Run(name, func(t *testing.T) {
			app := webApp(func(app *v1alpha1.App) {
				app.Spec.Timeout = metav1.Duration{Duration: 5 * time.Minute}
				app.Spec.Drift.Mode = v1alpha1.DriftCorrect
			})
			if c.app != nil {
				c.app(app)
			}
			b := newFixture(t, app, interceptor.Funcs{})
			b.s.Owner.Tenant, b.s.found.Kept = "acme", c.kept
			b.objectsLive(c.objects...)
			if c.gone != "" {
				declared := b.s.objects[0].DeepCopy()
				declared.SetName(c.gone)
				b.s.objects = append(b.s.objects, declared)
			}
			b.s.writes.Released(map[string]string{"x": "1"}, b.clock.Now().Add(-time.Hour))
			look := func() string { return b.ended(b.assessor.assess(t.Context(), b.s)) }
			got := look()
			if c.waited > 0 {
				b.clock.Step(c.waited)
				got = look()
			}
			if !endsAs(got, c.want) && !strings.HasPrefix(got, c.want+", after ") {
				t.Errorf("got %q, want %q", got, c.want)
			}
			since := b.s.unhealthySince
			if (since == nil) != (c.since == 0) || since != nil && since.Unix() != c.since {
				t.Errorf("unhealthy since %v, want %d", since, c.since)
			}
			if settled := b.s.writes.Unsettled() == nil; settled != c.settled || b.s.release.proven != c.settled {
				t.Errorf("settled %t, proven %t, want %t", settled, b.s.release.proven, c.settled)
			}
		})
	}
}

// TestAHealthyReleaseWithTestsIsNotProvenYet.
func TestAHealthyReleaseWithTestsIsNotProvenYet(t *testing.T) {
	b := newHelmFixture(t, &engine{}, func(a *v1alpha1.App) { a.Spec.Helm.Test.Enable = true })
	b.objectsLive(deployment("web", 2))
	if got := b.ended(b.assessor.assess(t.Context(), b.s)); got != "done" || b.s.release.proven {
		t.Errorf("%s, proven %t", got, b.s.release.proven)
	}
}

// TestAnOlderVersionOfAnObjectIsNotJudged: the watch does not show the last write yet. After a while the object is read.
func TestAnOlderVersionOfAnObjectIsNotJudged(t *testing.T) {
	b := newFixture(t, webApp(func(app *v1alpha1.App) { app.Spec.Timeout = metav1.Duration{Duration: 5 * time.Minute} }), interceptor.Funcs{})
	b.objectsLive(deployment("web", 2))
	b.s.writes.Released(map[string]string{b.s.inventory.Entries[0].ID: "9999999"}, b.clock.Now())
	look := func() string { return b.ended(b.assessor.assess(t.Context(), b.s)) }
	if got := look(); got != "soon, after 2s" {
		t.Errorf("at first: %s", got)
	}
	b.clock.Step(5 * time.Second)
	if got := look(); got != "waits Progressing: Deployment/web: its last change has not been seen yet, after 1s" {
		t.Errorf("later: %s", got)
	}
	b.clock.Step(6 * time.Second)
	if got := look(); got != "done" {
		t.Errorf("in the end: %s", got)
	}
}

// TestTheHealthOfANewGenerationIsWaitedForAnew.
func TestTheHealthOfANewGenerationIsWaitedForAnew(t *testing.T) {
	b := newFixture(t, webApp(func(app *v1alpha1.App) { app.Spec.Timeout = metav1.Duration{Duration: 5 * time.Minute} }), interceptor.Funcs{})
	b.objectsLive(deployment("web", 1))
	look := func() string { return b.ended(b.assessor.assess(t.Context(), b.s)) }
	_ = look()
	b.clock.Step(time.Minute)
	if got := look(); !strings.HasPrefix(got, "waits Progressing: ") || !strings.HasSuffix(got, ", after 6s") {
		t.Errorf("after a minute: %s", got)
	}
	b.app.Generation++
	if got := look(); got != "soon, after 2s" {
		t.Errorf("of another generation: %s", got)
	}
}
