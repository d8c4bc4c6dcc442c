package health

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var (
	webLabels = map[string]string{"app": "web"}
	epoch     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func at(minute int) metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(minute) * time.Minute))
}

func meta(kind string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "team", Name: "web", UID: types.UID(kind + "-uid"), Generation: 1, ResourceVersion: "100"}
}

func deployment(changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: meta("deployment"),
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: webLabels}},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

func available(d *appsv1.Deployment) {
	d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
}

func says(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

func replicaSet() *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: meta("replicaset"),
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: webLabels}},
		Status:     appsv1.ReplicaSetStatus{ObservedGeneration: 1},
	}
}

func statefulSet(made int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: meta("statefulset"),
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: webLabels}},
		Status:     appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: made},
	}
}

func daemonSet(made int32) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: meta("daemonset"),
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: webLabels}},
		Status:     appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 2, CurrentNumberScheduled: made},
	}
}

func job(conditions ...batchv1.JobCondition) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: meta("job"),
		Spec:       batchv1.JobSpec{Parallelism: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: webLabels}},
		Status:     batchv1.JobStatus{StartTime: new(at(0)), Conditions: conditions},
	}
}

func jobFailed(reason, message string) *batchv1.Job {
	return job(batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: reason, Message: message})
}

func service(change func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: meta("service"),
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.1"},
	}
	if change != nil {
		change(s)
	}
	return s
}

func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: meta("claim"),
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
}

// pod is one of the workload's, made in the first minute.
func pod(status corev1.PodStatus, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web-1", UID: "pod-uid", Labels: webLabels, CreationTimestamp: at(0)},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, NodeName: "n1"},
		Status:     status,
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func named(name string, minute int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Name, p.UID, p.CreationTimestamp = name, types.UID(name+"-uid"), at(minute) }
}

func of(replicaSet string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: replicaSet, Controller: new(true)}}
	}
}

func ofRevision(hash string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "web", appsv1.ControllerRevisionHashLabelKey: hash}
	}
}

func never(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }

func container(state, last corev1.ContainerState) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "main", Image: "r.example/web:v1", State: state, LastTerminationState: last}
}

func containers(all ...corev1.ContainerStatus) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: all}
}

func waits(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

var noState corev1.ContainerState

// runs is a container that began to run long after anything else happened.
var runs = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(90)}}

// ends is a run of a minute.
func ends(code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: message, StartedAt: at(10), FinishedAt: at(11),
	}}
}

func waitingFor(reason, message string) corev1.PodStatus {
	return containers(container(waits(reason, message), noState))
}

func looping(code int32, reason, message string) corev1.PodStatus {
	back := waits("CrashLoopBackOff", "back-off 2m40s restarting failed container=main pod=web-1_team(pod-uid)")
	return containers(container(back, ends(code, reason, message)))
}

func refusedByScheduler(message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message,
	}}}
}

// event is an event about an object after some minutes.
func event(of client.Object, minute int, reason, message string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("%s.%s.%d", of.GetName(), reason, minute)},
		InvolvedObject: corev1.ObjectReference{Kind: of.GetObjectKind().GroupVersionKind().Kind, UID: of.GetUID(), Name: of.GetName()},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message, FirstTimestamp: at(minute), LastTimestamp: at(minute + 30),
	}
}

func normal(e *corev1.Event) *corev1.Event {
	e.Type = corev1.EventTypeNormal
	return e
}

func until(e *corev1.Event, minute int) *corev1.Event {
	e.LastTimestamp = at(minute)
	return e
}

// series is an event as writers of events.k8s.io make it.
func series(e *corev1.Event) *corev1.Event {
	e.EventTime = metav1.NewMicroTime(e.FirstTimestamp.Time)
	e.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(e.LastTimestamp.Time)}
	e.FirstTimestamp, e.LastTimestamp = metav1.Time{}, metav1.Time{}
	return e
}

// once is an event that its writer made once, by events.k8s.io.
func once(e *corev1.Event) *corev1.Event {
	series(e).Series = nil
	return e
}

// untimed is an event of which only its creation is known.
func untimed(e *corev1.Event) *corev1.Event {
	e.CreationTimestamp = e.FirstTimestamp
	once(e).EventTime = metav1.MicroTime{}
	return e
}

// world is an API server and its nodes; it counts what it is asked.
type world struct {
	objects []client.Object
	// logs by "pod/container", with "/previous" for the run before.
	logs  map[string]string
	asked map[string]int
	// fails by what is asked: "Get", "PodList", "EventList".
	fails map[string]error
}

func (w *world) client(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w.asked = map[string]int{}
	ask := func(what string) error {
		w.asked[what]++
		return w.fails[what]
	}
	of := func(o client.Object) []string { return []string{string(o.(*corev1.Event).InvolvedObject.UID)} }
	ofKind := func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Kind} }
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.objects...).
		WithIndex(&corev1.Event{}, "involvedObject.uid", of).WithIndex(&corev1.Event{}, "involvedObject.kind", ofKind).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if err := ask("Get"); err != nil {
					return err
				}
				return c.Get(ctx, key, o, options...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if err := ask(fmt.Sprintf("%T", list)[len("*v1."):]); err != nil {
					return err
				}
				return c.List(ctx, list, options...)
			},
		}).Build()
}

func (w *world) explainer(t *testing.T) Explainer {
	return Explainer{Client: w.client(t), Logs: func(_ context.Context, namespace, pod, container string, previous bool) (string, error) {
		w.asked["Logs"]++
		key := pod + "/" + container
		if previous {
			key += "/previous"
		}
		if text, ok := w.logs[key]; ok && namespace == "team" {
			return text, nil
		}
		return "", errors.New("the node does not answer")
	}}
}

// watch holds objects as a watch does.
func watch(t *testing.T, objects ...client.Object) Object {
	t.Helper()
	held := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		held[o.GetObjectKind().GroupVersionKind().Kind+"/"+o.GetName()] = &unstructured.Unstructured{Object: content}
	}
	return func(_ context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, bool, error) {
		return held[kind.Kind+"/"+key.Name], true, nil
	}
}

func refTo(o client.Object) Ref {
	return Ref{Kind: o.GetObjectKind().GroupVersionKind(), Key: client.ObjectKeyFromObject(o)}
}

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no right"))
