package hook

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/jobs"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// unwatched is a watch of a cluster in which the operator may watch no kind.
func unwatched() *kube.Watch {
	none := fake.NewClientBuilder().WithRESTMapper(meta.NewDefaultRESTMapper(nil)).Build()
	return kube.NewWatch(kube.NewLists(clocktesting.NewFakeClock(metav1.Now().Time)), nil, none, none, func(schema.GroupVersionKind) bool { return true })
}

// TestAJobWithTheNameOfAHooksJobStopsTheApp: the hook is not run twice, and the Job of another is neither taken for its own nor deleted.
func TestAJobWithTheNameOfAHooksJobStopsTheApp(t *testing.T) {
	for phase, reason := range map[string]string{jobs.Pre: v1alpha1.PreHookFailedReason, jobs.Post: v1alpha1.PostHookFailedReason} {
		t.Run(phase, func(t *testing.T) {
			b := newHookFixture(&v1alpha1.Hook{Name: "migrate"}, "")
			b.Watch, b.h.Phase = unwatched(), phase
			another := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
				Namespace: b.s.App.Namespace, Name: b.h.Name(), Labels: map[string]string{v1alpha1.AppLabel: b.s.App.Name, v1alpha1.HookLabel: "pre-other"},
			}}
			if err := b.s.Client.Create(t.Context(), another); err != nil {
				t.Fatal(err)
			}
			got := steptest.Outcome(t, b.runPhase(t.Context(), b.s, b.plan, phase, nil))
			if want := "stopped " + reason + ": the name of the Job of the " + b.h.String() + " is taken; an administrator of the cluster may run: kubectl delete job " + another.Name + " -n " + another.Namespace; got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			list := &batchv1.JobList{}
			if err := b.s.Client.List(t.Context(), list); err != nil || len(list.Items) != 1 || list.Items[0].ResourceVersion != another.ResourceVersion || b.h.result != nil {
				t.Errorf("the Jobs: %+v, %v; result %+v", list.Items, err, b.h.result)
			}
		})
	}
}

// TestAHookWaitsForTheJobOfAnEarlierRevision until it ends or is being deleted.
func TestAHookWaitsForTheJobOfAnEarlierRevision(t *testing.T) {
	former := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "kubeop-a-b", Name: "web-former", Labels: map[string]string{v1alpha1.AppLabel: "web", v1alpha1.HookLabel: "pre-migrate"},
	}}
	b := newHookFixture(&v1alpha1.Hook{Name: "migrate"}, "", former)
	b.Watch = unwatched()
	got := steptest.Outcome(t, b.runPhase(t.Context(), b.s, b.plan, jobs.Pre, nil))
	if want := "waits Progressing: waits for Job/web-former, a hook of an earlier revision, to end, after 15s"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
