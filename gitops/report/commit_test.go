package report

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/host"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// app returns an App of a commit whose Ready has the status since noon.
func app(name string, status metav1.ConditionStatus, change ...func(*v1alpha1.App)) *v1alpha1.App {
	a := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2, Annotations: map[string]string{
		v1alpha1.FolderAnnotation: "projects/shop/apps/" + name, v1alpha1.TreeAnnotation: "t2",
	}}}
	a.Status.ObservedTree = "t2"
	a.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ReadyCondition, Status: status, Reason: "Unhealthy", Message: "Deployment web: ImagePullBackOff\nmore",
		ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(noon),
	}}
	for _, c := range change {
		c(a)
	}
	return a
}

func TestTheVerdictOfACommitFollowsItsApps(t *testing.T) {
	old := func(a *v1alpha1.App) { a.Status.ObservedTree = "t1" }
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.FolderAnnotation: "projects/shop"}}}
	project.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "QuotaExceeded", Message: "too much", LastTransitionTime: metav1.NewTime(noon),
	}}
	tests := map[string]struct {
		apps  []*v1alpha1.App
		homes []Object
		// since is when the commit was seen, before noon; after is how long after noon it is now.
		since, after time.Duration
		want         Verdict
	}{
		"no app":                     {after: time.Minute, want: Verdict{State: host.Success, Description: "applied"}},
		"just applied":               {after: time.Second, want: Verdict{State: host.Pending, Description: "kubeop applies it", Again: 2 * time.Second}},
		"all healthy":                {apps: []*v1alpha1.App{app("web", "True"), app("api", "True")}, after: time.Minute, want: Verdict{State: host.Success, Description: "applied: 2 apps are healthy"}},
		"the folder before":          {apps: []*v1alpha1.App{app("web", "True"), app("api", "True", old)}, after: time.Minute, want: Verdict{State: host.Pending, Description: "waits for projects/shop/apps/api/app.yaml"}},
		"the spec before":            {apps: []*v1alpha1.App{app("web", "True", func(a *v1alpha1.App) { a.Generation = 3 })}, after: time.Minute, want: Verdict{State: host.Pending, Description: "waits for projects/shop/apps/web/app.yaml"}},
		"a failure of an old spec":   {apps: []*v1alpha1.App{app("web", "False", func(a *v1alpha1.App) { a.Generation = 3 })}, after: time.Minute, want: Verdict{State: host.Pending, Description: "waits for projects/shop/apps/web/app.yaml"}},
		"in progress":                {apps: []*v1alpha1.App{app("web", "Unknown"), app("api", "Unknown")}, after: time.Minute, want: Verdict{State: host.Pending, Description: "waits for projects/shop/apps/api/app.yaml (and 1 more)"}},
		"failed":                     {apps: []*v1alpha1.App{app("api", "Unknown"), app("web", "False")}, after: time.Minute, want: Verdict{State: host.Failure, Description: "projects/shop/apps/web/app.yaml: Unhealthy: Deployment web: ImagePullBackOff"}},
		"failed before the commit":   {apps: []*v1alpha1.App{app("web", "False")}, since: -5 * time.Second, after: 6 * time.Second, want: Verdict{State: host.Pending, Description: "waits for projects/shop/apps/web/app.yaml", Again: 14 * time.Second}},
		"still failed as before":     {apps: []*v1alpha1.App{app("web", "False")}, since: -5 * time.Second, after: time.Minute, want: Verdict{State: host.Failure, Description: "projects/shop/apps/web/app.yaml: Unhealthy: Deployment web: ImagePullBackOff"}},
		"suspended":                  {apps: []*v1alpha1.App{app("web", "False", func(a *v1alpha1.App) { a.Spec.Suspend = true }), app("api", "True")}, after: time.Minute, want: Verdict{State: host.Success, Description: "applied: 1 app is healthy, 1 suspended"}},
		"a project that is not made": {apps: []*v1alpha1.App{app("web", "Unknown")}, homes: []Object{ObjectOf(project)}, after: time.Minute, want: Verdict{State: host.Failure, Description: "projects/shop/project.yaml: QuotaExceeded: too much"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := Commit{Hash: "c1", Since: noon.Add(-tc.since), Now: noon.Add(tc.after), Homes: tc.homes}
			for _, a := range tc.apps {
				c.Apps = append(c.Apps, ObjectOf(a))
			}
			repository := &v1alpha1.Repository{}
			if diff := cmp.Diff(tc.want, Newest(repository, c)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheVerdictOfACommitFollowsItsFiles(t *testing.T) {
	tests := map[string]struct {
		change func(*v1alpha1.Repository)
		want   Verdict
	}{
		"being applied": {func(*v1alpha1.Repository) {}, Verdict{State: host.Pending, Description: "kubeop applies it"}},
		"invalid files": {func(r *v1alpha1.Repository) {
			conditions.MarkFalse(r, v1alpha1.TreeValidCondition, v1alpha1.InvalidTreeReason, "x (and 2 more; kubectl describe repository acme)")
			r.Status.Problems = []string{"projects/shop/apps/web/app.yaml:3:9: unknown field [unknown-field]", "b", "c"}
		}, Verdict{State: host.Failure, Description: "projects/shop/apps/web/app.yaml:3:9: unknown field [unknown-field] (and 2 more)"}},
		"held deletions": {func(r *v1alpha1.Repository) {
			conditions.MarkFalse(r, v1alpha1.TreeValidCondition, v1alpha1.DeletionsHeldReason, "c is held back")
		}, Verdict{State: host.Failure, Description: "DeletionsHeld: c is held back"}},
		"a failed sync": {func(r *v1alpha1.Repository) {
			conditions.MarkFalse(r, v1alpha1.SyncedCondition, v1alpha1.SyncFailedReason, "quota\nmore")
		}, Verdict{State: host.Failure, Description: "quota"}},
		"a host that is down": {func(r *v1alpha1.Repository) {
			conditions.MarkFalse(r, v1alpha1.FetchedCondition, v1alpha1.FetchFailedReason, "down")
			r.Status.LastAppliedRevision = r.Status.LastAttemptedRevision
		}, Verdict{State: host.Success, Description: "applied"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.Repository{}
			r.Status.LastAttemptedRevision, r.Status.LastAppliedRevision = "main@sha1:c2", "main@sha1:c1"
			tc.change(r)
			if diff := cmp.Diff(tc.want, Newest(r, Commit{Since: noon, Now: noon.Add(time.Minute)})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOlderAndHeldCommitsHaveTheirVerdicts(t *testing.T) {
	c := Commit{Since: noon, Now: noon.Add(time.Minute)}
	if got, want := Older(c, "0123456789abcdef"), (Verdict{State: host.Canceled, Description: "replaced by 01234567 before it was healthy"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	c.Apps = []Object{ObjectOf(app("web", "Unknown"))}
	if got := Older(c, "0123456789abcdef"); got.State != host.Pending {
		t.Errorf("got %+v, want it in progress: its app is", got)
	}
	r := &v1alpha1.Repository{}
	conditions.MarkFalse(r, v1alpha1.AcceptedCondition, v1alpha1.HistoryRewrittenReason, "c2 does not descend from c1")
	if got, want := Held(r), (Verdict{State: host.Failure, Description: "HistoryRewritten: c2 does not descend from c1"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	conditions.MarkUnknown(r, v1alpha1.AcceptedCondition, v1alpha1.FrozenReason, "c2 waits until noon")
	if got, want := Held(r), (Verdict{State: host.Pending, Description: "Frozen: c2 waits until noon"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
