package tenant

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

func projectThat(name string, status metav1.ConditionStatus, reason, message string) v1alpha1.Project {
	p := v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: name}}
	if status != "" {
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.StoppedCondition, Status: status, Reason: reason, Message: message}}
	}
	return p
}

// TestATenantIsStoppedWhenNothingOfItRuns: it says so for all projects, and otherwise names those in which something still does.
func TestATenantIsStoppedWhenNothingOfItRuns(t *testing.T) {
	done := func(name string) v1alpha1.Project { return projectThat(name, metav1.ConditionTrue, "Stopped", "") }
	ends := func(name string) v1alpha1.Project {
		return projectThat(name, metav1.ConditionUnknown, "Stopping", "waits for 1 pod")
	}
	left := func(name string) v1alpha1.Project {
		return projectThat(name, metav1.ConditionFalse, "StillRunning", "leaves 1 pod")
	}
	back := func(name string) v1alpha1.Project {
		return projectThat(name, metav1.ConditionUnknown, "Resuming", "resumes")
	}
	runs := func(name string) v1alpha1.Project { return projectThat(name, "", "", "") }
	const nothing = "nothing of tenant acme runs, and no pod of it is admitted until an administrator of the cluster removes spec.stopped from tenants/acme/tenant.yaml of the platform repository in Git"
	for name, c := range map[string]struct {
		runs     bool
		projects []v1alpha1.Project
		want     step.Note
	}{
		"it runs":                     {true, []v1alpha1.Project{runs("a")}, step.Note{}},
		"it has no projects":          {false, nil, step.Note{Status: "True", Reason: "Stopped", Message: nothing, Event: "Normal"}},
		"all are stopped":             {false, []v1alpha1.Project{done("a"), done("b")}, step.Note{Status: "True", Reason: "Stopped", Message: nothing, Event: "Normal"}},
		"one was not looked at yet":   {false, []v1alpha1.Project{done("a"), runs("c"), runs("b")}, step.Note{Status: "Unknown", Reason: "Stopping", Message: "stops projects b; c"}},
		"one is still being resumed":  {false, []v1alpha1.Project{back("a")}, step.Note{Status: "Unknown", Reason: "Stopping", Message: "stops projects a"}},
		"pods are ending":             {false, []v1alpha1.Project{ends("b"), runs("c"), ends("a")}, step.Note{Status: "Unknown", Reason: "Stopping", Message: "projects a; b: waits for 1 pod"}},
		"a pod runs on":               {false, []v1alpha1.Project{ends("a"), left("b"), done("c")}, step.Note{Status: "False", Reason: "StillRunning", Message: "projects b: leaves 1 pod"}},
		"a pod runs on, then another": {false, []v1alpha1.Project{left("b"), ends("a"), left("c")}, step.Note{Status: "False", Reason: "StillRunning", Message: "projects b; c: leaves 1 pod"}},
		"it is resumed":               {true, []v1alpha1.Project{done("a"), back("b"), runs("c")}, step.Note{Status: "Unknown", Reason: "Resuming", Message: "resumes projects a; b"}},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", Annotations: map[string]string{v1alpha1.FolderAnnotation: "tenants/acme"}}}
			tenant.Spec.Stopped = !c.runs
			s := &scope{tenant: tenant, declared: v1alpha1.ProjectList{Items: c.projects}}
			c.want.Condition = v1alpha1.StoppedCondition
			if diff := cmp.Diff(c.want, s.stopped()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestOnlyAChangeOfWhetherAProjectIsStoppedWakesItsTenant: the names of pods change far more often.
func TestOnlyAChangeOfWhetherAProjectIsStoppedWakesItsTenant(t *testing.T) {
	runs, ends := projectThat("a", "", "", ""), projectThat("a", metav1.ConditionUnknown, "Stopping", "waits for 2 pods")
	fewer, done := projectThat("a", metav1.ConditionUnknown, "Stopping", "waits for 1 pod"), projectThat("a", metav1.ConditionTrue, "Stopped", "")
	back, left := projectThat("a", metav1.ConditionUnknown, "Resuming", "resumes"), projectThat("a", metav1.ConditionFalse, "Stopping", "waits for 2 pods")
	for name, c := range map[string]struct {
		was, is *v1alpha1.Project
		want    bool
	}{
		"it runs on": {&runs, &runs, false}, "it is being stopped": {&runs, &ends, true}, "a pod ended": {&ends, &fewer, false},
		"only the reason changes": {&ends, &back, true}, "only the status changes": {&ends, &left, true}, "it is stopped": {&fewer, &done, true}, "it runs again": {&done, &runs, true},
	} {
		if got := stoppedChanged.Update(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}); got != c.want {
			t.Errorf("%s: woken %t, want %t", name, got, c.want)
		}
	}
}
