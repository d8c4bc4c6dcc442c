package flap

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/delivery/health"
)

var (
	well    = health.Verdict{}
	crashed = health.Verdict{Failed: []string{"Deployment/web: container web exited with code 1: boom"}}
	other   = health.Verdict{Failed: []string{"Deployment/web: its image is missing"}, Final: true}
	starts  = health.Verdict{Waiting: []string{"Deployment/web: 0 of 1 available"}}
)

// look is one look at an App, some time after the last one.
type look struct {
	after time.Duration
	phase string
	found health.Verdict
	want  health.Verdict
}

// relapsed returns the verdict on an App that fails again and again.
func relapsed(v health.Verdict) health.Verdict {
	return health.Verdict{Failed: append([]string{v.Failed[0]}, again), Final: v.Final}
}

func TestAnAppThatFailsAgainAndAgainIsNotHealthyInBetween(t *testing.T) {
	const second, minute = time.Second, time.Minute
	for name, looks := range map[string][]look{
		"it fails once": {{0, "1", well, well}, {5 * minute, "1", crashed, crashed}, {second, "1", starts, starts}, {20 * second, "1", well, well}},
		"it fails before it is healthy for the first time": {
			{0, "1", crashed, crashed}, {10 * second, "1", starts, starts}, {10 * second, "1", crashed, crashed}, {20 * second, "1", well, well},
		},
		"it fails twice, and then runs for a minute": {
			{0, "1", crashed, crashed}, {5 * second, "1", well, well}, {20 * second, "1", crashed, relapsed(crashed)}, {10 * second, "1", starts, relapsed(crashed)},
			{10 * second, "1", well, relapsed(crashed)}, {59 * second, "1", well, relapsed(crashed)}, {second, "1", well, well}, {second, "1", starts, starts},
		},
		"it never runs for long": {
			{0, "1", crashed, crashed}, {5 * second, "1", well, well}, {20 * second, "1", crashed, relapsed(crashed)}, {10 * second, "1", well, relapsed(crashed)},
			{50 * second, "1", well, relapsed(crashed)}, {second, "1", crashed, relapsed(crashed)}, {second, "1", well, relapsed(crashed)},
			{100 * second, "1", well, relapsed(crashed)}, {2 * second, "1", well, well},
		},
		"it ran for a long time between two failures": {
			{0, "1", crashed, crashed}, {5 * second, "1", well, well}, {10 * minute, "1", crashed, crashed}, {5 * second, "1", well, well},
		},
		"it has to run for ten minutes at most": {
			{0, "1", crashed, crashed}, {5 * second, "1", well, well}, {9 * minute, "1", crashed, relapsed(crashed)}, {second, "1", well, relapsed(crashed)},
			{10*minute - second, "1", well, relapsed(crashed)}, {second, "1", well, well},
		},
		"its time begins anew when it does not look healthy": {
			{0, "1", crashed, crashed}, {5 * second, "1", well, well}, {20 * second, "1", crashed, relapsed(crashed)}, {10 * second, "1", well, relapsed(crashed)},
			{40 * second, "1", starts, relapsed(crashed)}, {second, "1", well, relapsed(crashed)}, {59 * second, "1", well, relapsed(crashed)}, {second, "1", well, well},
		},
		"it fails on without looking healthy": {
			{0, "1", crashed, crashed}, {5 * second, "1", well, well}, {20 * second, "1", crashed, relapsed(crashed)}, {5 * second, "1", crashed, relapsed(crashed)},
			{5 * second, "1", well, relapsed(crashed)},
		},
		"it ran for a long time, and nobody looked": {
			{0, "1", crashed, crashed}, {5 * second, "1", well, well}, {20 * second, "1", crashed, relapsed(crashed)}, {5 * second, "1", well, relapsed(crashed)},
			{10 * minute, "1", crashed, crashed}, {5 * second, "1", well, well},
		},
		"it fails again after it counted as healthy": {
			{0, "1", crashed, crashed}, {5 * second, "1", well, well}, {20 * second, "1", crashed, relapsed(crashed)}, {5 * second, "1", well, relapsed(crashed)},
			{minute, "1", well, well}, {5 * second, "1", crashed, crashed}, {5 * second, "1", well, well}, {5 * second, "1", crashed, relapsed(crashed)},
		},
		"it fails for another reason": {
			{0, "1", crashed, crashed}, {5 * second, "1", well, well}, {20 * second, "1", other, relapsed(other)}, {second, "1", well, health.Verdict{Failed: relapsed(other).Failed}},
		},
		"a new revision is judged by itself": {
			{0, "1", crashed, crashed}, {5 * second, "1", well, well}, {20 * second, "1", crashed, relapsed(crashed)}, {10 * second, "2", well, well},
			{5 * second, "2", crashed, crashed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
			subjects, detector := subject.Subjects{Clock: clock}, &Detector{}
			app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web", UID: "1"}}
			for i, l := range looks {
				clock.SetTime(clock.Now().Add(l.after))
				if diff := cmp.Diff(l.want, detector.Judge(subjects.New(app), l.phase, l.found)); diff != "" {
					t.Errorf("look %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

func TestAForgottenAppBeginsAnew(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
	subjects, detector := subject.Subjects{Clock: clock}, &Detector{}
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web", UID: "1"}}
	for _, v := range []health.Verdict{crashed, well, crashed} {
		detector.Judge(subjects.New(app), "1", v)
		clock.SetTime(clock.Now().Add(time.Second))
	}
	detector.Forget(app)
	if diff := cmp.Diff(well, detector.Judge(subjects.New(app), "1", well)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
