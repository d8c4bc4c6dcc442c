package health

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var webLabels = map[string]string{"app": "web"}

func deployment(change func(*appsv1.Deployment)) *appsv1.Deployment {
	one := int32(1)
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", Generation: 1},
		Spec:       appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: webLabels}},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1},
	}
	if change != nil {
		change(d)
	}
	return d
}

func available(d *appsv1.Deployment) {
	d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
}

func pod(status corev1.PodStatus) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web-1", Labels: webLabels}, Status: status}
}

func waiting(reason, message string) corev1.PodStatus {
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Image: "r.example/web:v1", State: state}}}
}

func TestLook(t *testing.T) {
	crashed := waiting("CrashLoopBackOff", "back-off")
	crashed.ContainerStatuses[0].RestartCount = 4
	crashed.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error", Message: "no config"}
	unscheduled := corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available: insufficient cpu",
	}}}
	running := corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}}
	cases := map[string]struct {
		objects []client.Object
		failed  string
		waiting string
	}{
		"available":            {objects: []client.Object{deployment(available)}},
		"gone":                 {waiting: "Deployment/web: was deleted"},
		"an image not found":   {[]client.Object{deployment(nil), pod(waiting("ErrImagePull", "not found"))}, "Deployment/web: pod web-1, container main: the image r.example/web:v1 cannot be pulled: not found", ""},
		"an image waited for":  {[]client.Object{deployment(nil), pod(waiting("ImagePullBackOff", `Back-off pulling image "r.example/web:v1": ErrImagePull: not found`))}, "the image r.example/web:v1 cannot be pulled: not found", ""},
		"a crash":              {[]client.Object{deployment(nil), pod(crashed)}, "crashes with exit code 2 (Error): no config", ""},
		"still being created":  {[]client.Object{deployment(nil), pod(waiting("ContainerCreating", ""))}, "", "Available: 0/1"},
		"nowhere to run":       {[]client.Object{deployment(nil), pod(unscheduled)}, "", "pod web-1 is not scheduled: 0/1 nodes are available: insufficient cpu"},
		"not ready yet":        {[]client.Object{deployment(nil), pod(running)}, "", "readiness probe"},
		"another team's pod":   {[]client.Object{deployment(nil), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "web-1", Labels: webLabels}, Status: crashed}}, "", "Available: 0/1"},
		"refused by the quota": {[]client.Object{deployment(refused), pod(corev1.PodStatus{})}, "exceeded quota: kubeop", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := clientgoscheme.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.objects...).Build()
			// The other two are not there: what is looked at is not their presence.
			v, err := Look(t.Context(), api, Refs([]*unstructured.Unstructured{
				object("apps/v1", "Deployment", ""), object("v1", "Secret", ""), object("v1", "Service", "ClusterIP"),
			}))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(v.Failed, "; "); !strings.Contains(got, c.failed) || (c.failed == "") != (got == "") {
				t.Errorf("failed %q, want %q", got, c.failed)
			}
			if got := strings.Join(v.Waiting, "; "); !strings.Contains(got, c.waiting) || (c.waiting == "") != (got == "") {
				t.Errorf("waiting %q, want %q", got, c.waiting)
			}
			if v.Healthy() != (c.failed == "" && c.waiting == "") {
				t.Errorf("healthy is %t", v.Healthy())
			}
		})
	}
}

func object(apiVersion, kind, kindOfService string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	if kindOfService != "" {
		o.Object["spec"] = map[string]any{"type": kindOfService}
	}
	o.SetNamespace("team")
	o.SetName("web")
	return o
}

func TestALoadBalancerIsLookedAt(t *testing.T) {
	if got := Refs([]*unstructured.Unstructured{object("v1", "Service", "LoadBalancer")}); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

func refused(d *appsv1.Deployment) {
	d.Status.Replicas, d.Status.UpdatedReplicas = 0, 0
	d.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `pods "web-1" is forbidden: exceeded quota: kubeop`,
	}}
}

func TestAVerdictNamesThreeAndCountsTheRest(t *testing.T) {
	v := Verdict{Failed: []string{"a", "b"}, Waiting: []string{"c", "d", "e"}}
	if got := v.String(); got != "a; b; c; and 2 more" {
		t.Errorf("got %q", got)
	}
}
