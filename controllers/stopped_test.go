package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/stop"
	"github.com/kubeop/kubeop/internal/testenv"
)

// restricted is a pod whose containers every namespace of a tenant admits.
const restricted = "spec: {restartPolicy: Never, " + podSpec + "}"

// runs waits until exactly these pods run in a namespace, each named by the beginning of its name.
func (n *team) runs(namespace string, want ...string) {
	n.t.Helper()
	slices.Sort(want)
	n.eventually(func() error {
		pods := &corev1.PodList{}
		if err := n.admin.List(n.t.Context(), pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		var names []string
		for i := range pods.Items {
			names = append(names, pods.Items[i].Name)
		}
		slices.Sort(names)
		if len(names) != len(want) {
			return fmt.Errorf("%v run, want %v", names, want)
		}
		for i, name := range names {
			if !strings.HasPrefix(name, want[i]) {
				return fmt.Errorf("%v run, want %v", names, want)
			}
		}
		return nil
	})
}

// endsWithout waits until an object does not have a condition.
func (n *team) endsWithout(o step.Object, condition string) {
	n.t.Helper()
	n.eventually(func() error {
		err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(o), o)
		if err == nil && conditions.Has(o, condition) {
			err = fmt.Errorf("%s still says: %s", o.GetName(), conditions.GetMessage(o, condition))
		}
		return err
	})
}

// workloadFiles is a project with an app that has a workload of each kind, and a pod without one.
func workloadFiles() map[string]string {
	files := shopFiles("shop", "web")
	pod := "template: {metadata: {labels: {x: z}}, spec: {" + podSpec + "}}"
	job := "template: {" + restricted + "}"
	files["projects/shop/apps/bad/app.yaml"] = rawApp(
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: work}, spec: {replicas: 2, selector: {matchLabels: {x: z}}, "+pod+"}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: idle}, spec: {replicas: 0, selector: {matchLabels: {x: y}}, "+strings.ReplaceAll(pod, "x: z", "x: y")+"}}",
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 1, serviceName: db, selector: {matchLabels: {x: d}}, "+strings.ReplaceAll(pod, "x: z", "x: d")+"}}",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: runs}, spec: {"+job+"}}",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: waits}, spec: {suspend: true, "+job+"}}",
		"{apiVersion: v1, kind: Pod, metadata: {name: lone}, "+restricted+"}",
	)["app.yaml"]
	return files
}

// specs are the specs of the app's workloads, which a stop must not change.
func (n *team) specs(namespace string) string {
	n.t.Helper()
	var all []string
	for _, o := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "work"}}, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "idle"}},
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "waits"}},
	} {
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: namespace, Name: o.GetName()}, o); err != nil {
			n.t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%T %s %s generation %d, labels %v", o, o.GetName(), o.GetUID(), o.GetGeneration(), o.GetLabels()))
	}
	return strings.Join(all, "\n")
}

// TestAStoppedTenantRunsNothingAndThenGoesOnAsBefore stops a tenant with a workload of each kind, with kubectl and controllers trying to start
// more, and resumes it.
func TestAStoppedTenantRunsNothingAndThenGoesOnAsBefore(t *testing.T) {
	n := newTeam(t, "halted")
	const shop = "kubeop-halted-shop"
	n.push(workloadFiles())
	n.ready(n.app("shop", "web"))
	running := []string{"db-0", "lone", "runs-", "work-", "work-"}
	n.runs(shop, running...)
	n.create(n.object(shop, "{apiVersion: v1, kind: Pod, metadata: {name: stray}, "+restricted+"}"))
	before := n.specs(shop)

	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Stopped = true })
	n.runs(shop, "stray")
	message := ""
	n.eventually(func() error {
		message = n.until(n.project("shop"), v1alpha1.StoppedCondition, metav1.ConditionFalse, v1alpha1.StillRunningReason)
		if !strings.HasPrefix(message, "kubeop leaves 1 pod running, which nothing would make again: stray;") { // Until the App has recorded what it made.
			return errors.New(message)
		}
		return nil
	})
	for _, part := range []string{"kubectl delete pod -n kubeop-halted-shop", "removes spec.stopped from tenant.yaml"} {
		if !strings.Contains(message, part) {
			t.Errorf("%q does not contain %q", message, part)
		}
	}
	n.until(n.tenant(), v1alpha1.StoppedCondition, metav1.ConditionFalse, v1alpha1.StillRunningReason)
	if err := n.admin.Delete(t.Context(), n.object(shop, "{apiVersion: v1, kind: Pod, metadata: {name: stray}}")); err != nil {
		t.Fatal(err)
	}
	n.runs(shop)
	for _, o := range []step.Object{n.project("shop"), n.tenant()} {
		n.requested(o)
		n.until(o, v1alpha1.StoppedCondition, metav1.ConditionTrue, v1alpha1.StoppedReason)
		if ready := n.until(o, v1alpha1.ReadyCondition, metav1.ConditionTrue, ""); !strings.HasPrefix(ready, "Stopped by administrators; ") {
			t.Errorf("%s says %q", o.GetName(), ready)
		}
	}
	n.until(n.app("shop", "web"), v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.StoppedReason)
	n.until(n.app("shop", "bad"), v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.StoppedReason)
	if after := n.specs(shop); after != before {
		t.Errorf("before\n%s\nwhile it is stopped\n%s", before, after)
	}
	n.nothingStarts(t, shop)
	n.aNewProjectIsStopped(t)

	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Stopped = false })
	n.runs(shop, running...)
	n.endsWithout(n.project("shop"), v1alpha1.StoppedCondition)
	n.endsWithout(n.tenant(), v1alpha1.StoppedCondition)
	n.ready(n.app("shop", "web"), n.app("added", "new"))
	if after := n.specs(shop); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	n.nothingOfAStopStays(t, shop)
}

// requested makes kubeop look at an object now, and not after its pause.
func (n *team) requested(o client.Object) {
	n.t.Helper()
	if err := n.admin.Patch(n.t.Context(), o, annotated(requestedAt, "now")); err != nil {
		n.t.Fatal(err)
	}
}

// nothingStarts tries to start pods as everyone who can: the quota refuses them, too, where the policy does not hold.
func (n *team) nothingStarts(t *testing.T, namespace string) {
	job := func(more string) string {
		return "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {" + more + "template: {" + restricted + "}}}"
	}
	creates := func(c client.Client, text string) func() error {
		return func() error { return c.Create(t.Context(), n.object(namespace, text), client.DryRunAll) }
	}
	resumes := func() error {
		return n.admin.Patch(t.Context(), n.object(namespace, "{apiVersion: batch/v1, kind: Job, metadata: {name: runs}}"), merging(`{"spec":{"suspend":false}}`), client.DryRunAll)
	}
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: x}, " + restricted + "}"
	for name, tc := range map[string]struct {
		try  func() error
		want string
	}{
		"a pod":                              {creates(n.admin, pod), "Stopped: Pod/x is refused: tenant halted is stopped"},
		"a pod of the ReplicaSet controller": {creates(n.as("system:serviceaccount:kube-system:replicaset-controller"), pod), "Stopped: Pod/x is refused"},
		"a Job of the CronJob controller":    {creates(n.as("system:serviceaccount:kube-system:cronjob-controller"), job("")), "Stopped: Job/x is refused"},
		"a Job that was suspended":           {resumes, "Stopped: Job/runs is refused"},
	} {
		t.Run(name, func(t *testing.T) { n.denied(tc.try, tc.want, "spec.stopped", "in Git") })
	}
	t.Run("a Job that stays suspended", func(*testing.T) { n.passes(creates(n.admin, job("suspend: true, "))) })
	t.Run("without the policies", func(t *testing.T) {
		quota := &corev1.ResourceQuota{}
		if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: stop.Quota}, quota); err != nil {
			t.Fatal(err)
		}
		if pods, enforced := quota.Status.Hard[corev1.ResourcePods]; !enforced || !pods.IsZero() {
			t.Errorf("the quota allows %v", quota.Status.Hard)
		}
	})
	t.Run("the quota is deleted by hand", func(*testing.T) {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: stop.Quota}}
		if err := n.admin.Delete(t.Context(), quota); err != nil {
			t.Fatal(err)
		}
		n.eventually(func() error { return n.admin.Get(t.Context(), client.ObjectKeyFromObject(quota), quota) })
	})
}

// aNewProjectIsStopped adds a project while the tenant is stopped. Its app waits.
func (n *team) aNewProjectIsStopped(t *testing.T) {
	n.push(shopFiles("added", "new"))
	n.until(n.project("added"), v1alpha1.StoppedCondition, metav1.ConditionTrue, v1alpha1.StoppedReason)
	n.until(n.app("added", "new"), v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.StoppedReason)
	n.denied(func() error {
		return n.admin.Create(t.Context(), n.object("kubeop-halted-added", "{apiVersion: v1, kind: Pod, metadata: {name: x}, "+restricted+"}"), client.DryRunAll)
	}, "Stopped: Pod/x")
}

// nothingOfAStopStays looks for marks, in the namespace, on Jobs and on workloads.
func (n *team) nothingOfAStopStays(t *testing.T, namespace string) {
	err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: stop.Quota}, &corev1.ResourceQuota{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the quota is there: %v", err)
	}
	ns := &corev1.Namespace{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Name: namespace}, ns); err != nil {
		t.Fatal(err)
	}
	jobs, sets, stateful := &batchv1.JobList{}, &appsv1.ReplicaSetList{}, &appsv1.StatefulSetList{}
	for _, list := range []client.ObjectList{jobs, sets, stateful} {
		if err := n.admin.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
	}
	all := []client.Object{ns}
	for i := range jobs.Items {
		all = append(all, &jobs.Items[i])
		if suspended := *jobs.Items[i].Spec.Suspend; suspended != (jobs.Items[i].Name == "waits") {
			t.Errorf("Job %s is suspended: %t", jobs.Items[i].Name, suspended)
		}
	}
	for i := range sets.Items {
		all = append(all, &sets.Items[i])
	}
	for i := range stateful.Items {
		all = append(all, &stateful.Items[i])
	}
	for _, o := range all {
		if o.GetLabels()[v1alpha1.StoppedLabel] != "" || o.GetAnnotations()[v1alpha1.WokenAnnotation] != "" {
			t.Errorf("%T %s still has %v and %v", o, o.GetName(), o.GetLabels(), o.GetAnnotations())
		}
	}
}

// TestAStoppedTenantIsFrozenThawedAndDeleted: both fields hold at once, and a deletion waits for none of them.
func TestAStoppedTenantIsFrozenThawedAndDeleted(t *testing.T) {
	n := newTeam(t, "haltice")
	const shop = "kubeop-haltice-shop"
	n.push(workloadFiles())
	n.ready(n.app("shop", "web"))
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Stopped, s.Frozen = true, true })
	n.runs(shop)
	n.until(n.tenant(), v1alpha1.StoppedCondition, metav1.ConditionTrue, v1alpha1.StoppedReason)
	n.until(n.tenant(), v1alpha1.FrozenCondition, metav1.ConditionTrue, v1alpha1.FrozenReason)
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Stopped = false })
	n.runs(shop, "db-0", "lone", "runs-", "work-", "work-")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Stopped, s.Frozen = true, false })
	n.runs(shop)
	if err := testenv.DeleteOnPurpose(t.Context(), n.admin, n.tenant(), false); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		for _, name := range []string{shop, "kubeop-haltice"} {
			if err := n.admin.Get(context.Background(), client.ObjectKey{Name: name}, &corev1.Namespace{}); client.IgnoreNotFound(err) != nil {
				return err
			} else if err == nil {
				return fmt.Errorf("namespace %s is still there", name)
			}
		}
		return nil
	})
}
