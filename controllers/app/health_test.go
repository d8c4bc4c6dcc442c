package app

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release"
)

func TestHealthOfADeletedObject(t *testing.T) {
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
			s := scopeOf(app, &releaser{admitter: &admitter{}})
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
	app.Spec.HealthCheckExprs = nil
	app.Generation = 2
	if err := a.compile(app); err != nil || a.checks.Get(app).generation != 2 {
		t.Errorf("generation %d, %v", a.checks.Get(app).generation, err)
	}
	a.Forget(app)
	if a.checks.Get(app).generation != 0 {
		t.Error("the checks of a deleted app are still remembered")
	}
}
