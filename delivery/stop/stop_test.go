package stop

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const shop = "kubeop-acme-shop"

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: shop, Name: name} }

// pod returns a pod that a controller of a kind owns; "" for none.
func pod(name, kind string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta(name)}
	if kind != "" {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "owner", UID: "u", Controller: new(true)}}
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func leaving(p *corev1.Pod) {
	p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: now}, []string{"example.com/x"}
}

func job(name string, suspended bool, labels map[string]string, ends ...batchv1.JobConditionType) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: meta(name), Spec: batchv1.JobSpec{Suspend: new(suspended)}}
	j.Labels = labels
	for _, c := range ends {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue})
	}
	return j
}

// api returns an API server with objects, which refuses requests for the object that is named so.
func api(refused string, refusal error, objects ...client.Object) client.WithWatch {
	or := func(o client.Object, send func() error) error {
		if o.GetName() == refused {
			return refusal
		}
		return send()
	}
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return or(o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return or(o, func() error { return c.Delete(ctx, o, opts...) })
		},
	}).Build()
}

func podsOf(t *testing.T, c client.Client) (names []string) {
	t.Helper()
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return names
}

// TestOnlyPodsThatAreMadeAgainAreEnded: what nobody makes again stays, and is named.
func TestOnlyPodsThatAreMadeAgainAreEnded(t *testing.T) {
	elsewhere := pod("elsewhere", "ReplicaSet")
	elsewhere.Namespace = "kubeop-acme-other"
	c := api("", nil, pod("web-1", "ReplicaSet"), pod("db-0", "StatefulSet"), pod("pg-1", "Cluster"), pod("lone", ""), pod("stray-b", ""), pod("stray-a", ""), elsewhere,
		pod("job-1", "Job"), pod("ends", "", leaving), pod("done", "", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("failed", "ReplicaSet", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		pod("owned", "", func(p *corev1.Pod) { // Not by a controller.
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ConfigMap", Name: "x", UID: "u"}}
		}))
	report, err := Namespace{Name: shop, Reader: c, Writer: c}.Stop(t.Context(), func(name string) bool { return name == "lone" })
	if err != nil {
		t.Fatal(err)
	}
	want := Report{Ending: []string{"db-0", "ends", "job-1", "lone", "pg-1", "web-1"}, Left: []string{"owned", "stray-a", "stray-b"}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"elsewhere", "done", "ends", "failed", "job-1", "owned", "stray-a", "stray-b"}, podsOf(t, c)); diff != "" {
		t.Errorf("the pods that are left, -want +got:\n%s", diff)
	}
}

// TestAPodThatCannotBeEndedKeepsNoOther: and its error is reported. One that was replaced or ended meanwhile is looked at again.
func TestAPodThatCannotBeEndedKeepsNoOther(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal error
		want    string
	}{
		"refused":  {errors.New("a policy refuses it"), "ending pod a: a policy refuses it"},
		"gone":     {apierrors.NewNotFound(corev1.Resource("pods"), "a"), ""},
		"replaced": {apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("uid")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := api("a", tc.refusal, pod("a", "ReplicaSet"), pod("b", "ReplicaSet"))
			_, err := Namespace{Name: shop, Reader: c, Writer: c}.Stop(t.Context(), func(string) bool { return false })
			if got := text(err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if left := podsOf(t, c); !slices.Equal(left, []string{"a"}) {
				t.Errorf("left are %v", left)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// jobsOf lists the Jobs with what is set of them.
func jobsOf(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	jobs, found := &batchv1.JobList{}, map[string]string{}
	if err := c.List(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	for i := range jobs.Items {
		j := &jobs.Items[i]
		state := "runs"
		if *j.Spec.Suspend {
			state = "suspended"
		}
		found[j.Name] = strings.TrimSpace(state + " " + j.Labels[v1alpha1.StoppedLabel])
	}
	return found
}

// TestOnlyJobsThatRunAreSuspendedAndOnlyTheseAreResumed: a tenant's own suspension stays, and a Job that cannot be changed keeps no other.
func TestOnlyJobsThatRunAreSuspendedAndOnlyTheseAreResumed(t *testing.T) {
	c := api("refused", errors.New("a policy refuses it"), job("runs", false, nil), job("mine", true, nil), job("done", false, nil, batchv1.JobComplete),
		job("failed", false, nil, batchv1.JobFailed), job("fails", false, nil, batchv1.JobFailureTarget), job("refused", false, nil))
	n := Namespace{Name: shop, Reader: c, Writer: c}
	_, err := n.Stop(t.Context(), nil)
	if got := text(err); got != "suspending Job refused: a policy refuses it" {
		t.Errorf("got %q", got)
	}
	if _, err := n.Stop(t.Context(), nil); err == nil {
		t.Error("the second time it succeeds")
	}
	want := map[string]string{"runs": "suspended true", "mine": "suspended", "done": "runs", "failed": "runs", "fails": "suspended true", "refused": "runs"}
	if diff := cmp.Diff(want, jobsOf(t, c)); diff != "" {
		t.Errorf("stopped, -want +got:\n%s", diff)
	}
	if done, err := n.Resume(t.Context(), now, now.Add(time.Minute)); done || err != nil {
		t.Errorf("resumed: %t, %v; the Jobs have to be looked at once more", done, err)
	}
	want["runs"], want["fails"] = "runs", "runs"
	if diff := cmp.Diff(want, jobsOf(t, c)); diff != "" {
		t.Errorf("resumed, -want +got:\n%s", diff)
	}
	if done, err := n.Resume(t.Context(), now, now.Add(time.Minute)); !done || err != nil {
		t.Errorf("resumed: %t, %v", done, err)
	}
}

func TestAJobThatCannotBeResumedIsAnErrorAndStaysMarked(t *testing.T) {
	c := api("refused", errors.New("a policy refuses it"), job("refused", true, map[string]string{v1alpha1.StoppedLabel: "true"}))
	done, err := Namespace{Name: shop, Reader: c, Writer: c}.Resume(t.Context(), now, now.Add(time.Hour))
	if done || text(err) != "resuming Job refused: a policy refuses it" {
		t.Errorf("done: %t, %v", done, err)
	}
	if got := jobsOf(t, c)["refused"]; got != "suspended true" {
		t.Errorf("it is %s", got)
	}
}

// TestControllersAreWokenUntilTheyMakePods: a Deployment's ReplicaSet that was scaled to 0 is none of them.
func TestControllersAreWokenUntilTheyMakePods(t *testing.T) {
	set := func(name string, wants *int32, has int32) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{ObjectMeta: meta(name), Spec: appsv1.ReplicaSetSpec{Replicas: wants}, Status: appsv1.ReplicaSetStatus{Replicas: has}}
	}
	stateful := &appsv1.StatefulSet{ObjectMeta: meta("db"), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}}
	daemon := &appsv1.DaemonSet{ObjectMeta: meta("agent"), Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2}}
	nowhere := &appsv1.DaemonSet{ObjectMeta: meta("nowhere")}
	lacking := []client.Object{set("web", new(int32(2)), 0), set("usual", nil, 0), stateful, daemon}
	idle := []client.Object{set("old", new(int32(0)), 0), set("has", new(int32(2)), 1), nowhere}
	c := api("", nil, append(lacking, idle...)...)
	n := Namespace{Name: shop, Reader: c, Writer: c}
	woken := func() (names []string) {
		for _, o := range slices.Concat(lacking, idle) {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			if _, is := o.GetAnnotations()[v1alpha1.WokenAnnotation]; is {
				names = append(names, o.GetName()+" "+o.GetAnnotations()[v1alpha1.WokenAnnotation])
			}
		}
		return names
	}
	for _, step := range []struct {
		after time.Duration
		has   int32
		done  bool
		value string
	}{
		{0, 0, false, "2026-03-01T12:00:00Z"},
		{4 * time.Second, 0, false, "2026-03-01T12:00:04Z"}, // Each look changes it, because only a change wakes.
		{29 * time.Second, 0, false, "2026-03-01T12:00:29Z"},
		{30 * time.Second, 0, true, ""}, // Something else refuses the pods.
	} {
		done, err := n.Resume(t.Context(), now, now.Add(step.after))
		if done != step.done || err != nil {
			t.Errorf("after %s: done %t, %v", step.after, done, err)
		}
		var want []string
		if step.value != "" {
			want = []string{"web " + step.value, "usual " + step.value, "db " + step.value, "agent " + step.value}
		}
		if diff := cmp.Diff(want, woken()); diff != "" {
			t.Errorf("after %s, -want +got:\n%s", step.after, diff)
		}
	}
}

// TestAResumeEndsOnceEveryControllerMadePods: not before the API server enforces the opened quota, and a clock that was set back ends it.
func TestAResumeEndsOnceEveryControllerMadePods(t *testing.T) {
	for after, want := range map[time.Duration]bool{0: false, 2 * time.Second: false, 3 * time.Second: true, -time.Hour: true} {
		t.Run(after.String(), func(t *testing.T) {
			has := &appsv1.ReplicaSet{ObjectMeta: meta("web"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2))}, Status: appsv1.ReplicaSetStatus{Replicas: 2}}
			has.Annotations = map[string]string{v1alpha1.WokenAnnotation: "before", "note": "kept"}
			c := api("", nil, has)
			done, err := Namespace{Name: shop, Reader: c, Writer: c}.Resume(t.Context(), now, now.Add(after))
			if done != want || err != nil {
				t.Errorf("done %t, %v", done, err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(has), has); err != nil {
				t.Fatal(err)
			}
			if _, still := has.Annotations[v1alpha1.WokenAnnotation]; still == want || has.Annotations["note"] != "kept" {
				t.Errorf("annotations %v", has.Annotations)
			}
		})
	}
}

func TestAControllerThatCannotBeWokenIsAnError(t *testing.T) {
	lacks := &appsv1.ReplicaSet{ObjectMeta: meta("web")}
	c := api("web", errors.New("a policy refuses it"), lacks)
	done, err := Namespace{Name: shop, Reader: c, Writer: c}.Resume(t.Context(), now, now)
	if done || text(err) != "waking the controller of web: a policy refuses it" {
		t.Errorf("done %t, %v", done, err)
	}
}

// TestTheQuotaIsOpenedOnceAndRemembersWhen: an operator that was ended meanwhile goes on from there.
func TestTheQuotaIsOpenedOnceAndRemembersWhen(t *testing.T) {
	closed := &corev1.ResourceQuota{ObjectMeta: meta(Quota)}
	c := api("", nil, closed)
	for _, at := range []time.Time{now, now.Add(time.Hour)} {
		open, got, err := Open(t.Context(), c, shop, nil, at)
		if err != nil || !got.Equal(now) || open.Spec.Hard != nil {
			t.Fatalf("opened at %s, %v", got, err)
		}
		if err := c.Apply(t.Context(), open, client.FieldOwner("x"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Delete(t.Context(), closed); err != nil {
		t.Fatal(err)
	}
	if open, _, err := Open(t.Context(), c, shop, nil, now); err != nil || open != nil {
		t.Errorf("without a quota: %v, %v", open, err)
	}
}
