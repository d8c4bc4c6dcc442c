package notice

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// TestVolumesThatStartEmptyAreAConditionOfImageApps, and a field of their status. Both stay while a Reconcile does not look at the claims.
func TestVolumesThatStartEmptyAreAConditionOfImageApps(t *testing.T) {
	image, raw := &v1alpha1.App{}, &v1alpha1.App{}
	image.Spec.Image = &v1alpha1.ImageSource{}
	last := ""
	warning := step.Note{Condition: v1alpha1.StartedEmptyCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ClaimLeftBehindReason, Message: "data starts empty", Event: "Warning"}
	for name, c := range map[string]struct {
		app    *v1alpha1.App
		found  func(*Volumes)
		want   []step.Note
		claims []string
	}{
		"one is empty":           {image, func(v *Volumes) { v.Found("data starts empty", []string{"web-data"}) }, []step.Note{warning}, []string{"web-data"}},
		"none is any more":       {image, func(v *Volumes) { v.Found("", nil) }, []step.Note{{Condition: v1alpha1.StartedEmptyCondition}}, nil},
		"nobody looked":          {image, func(*Volumes) {}, []step.Note{step.Stays(v1alpha1.StartedEmptyCondition)}, []string{"before"}},
		"of another type of app": {raw, func(*Volumes) {}, nil, nil},
	} {
		v, app := &Volumes{LastRetained: &last}, c.app.DeepCopy()
		app.Status.StartedEmpty = []string{"before"}
		c.found(v)
		v.Record(app)
		if diff := cmp.Diff(c.want, v.Notes(app, true)) + cmp.Diff(c.claims, app.Status.StartedEmpty); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestStatefulSetsThatKeepTheirClaimsAreReportedOnce, until there are others. What a chart has is not known here.
func TestStatefulSetsThatKeepTheirClaimsAreReportedOnce(t *testing.T) {
	raw, helm := &v1alpha1.App{}, &v1alpha1.App{}
	helm.Spec.Helm = &v1alpha1.HelmSource{}
	last := ""
	for i, c := range []struct {
		app      *v1alpha1.App
		retained []string
		built    bool
		event    string
		last     string
	}{
		{app: helm, retained: []string{"db"}, built: true},
		{app: raw, retained: []string{"db"}},
		{app: raw, built: true},
		{app: raw, retained: []string{"db"}, built: true, event: "StatefulSet db is delivered", last: "db"},
		{app: raw, retained: []string{"db"}, built: true, last: "db"},
		{app: raw, last: "db"},
		{app: raw, retained: []string{"db", "queue"}, built: true, event: "StatefulSet db, queue is delivered", last: "db, queue"},
		{app: raw, built: true},
		{app: raw, retained: []string{"db"}, built: true, event: "StatefulSet db is delivered", last: "db"},
	} {
		var want []step.Note
		if c.event != "" {
			want = []step.Note{{Reason: v1alpha1.ClaimsRetainedReason, Event: "Warning", Message: c.event +
				" with persistentVolumeClaimRetentionPolicy Retain, for both fields: no claim is deleted without a confirmation; write Retain in Git to end this message"}}
		}
		if diff := cmp.Diff(want, (&Volumes{Retained: c.retained, LastRetained: &last}).Notes(c.app, c.built)); diff != "" || last != c.last {
			t.Errorf("%d: the last are %q, want %q (-want +got):\n%s", i, last, c.last, diff)
		}
	}
}
