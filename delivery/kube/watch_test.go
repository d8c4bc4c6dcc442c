package kube

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/health"
)

// operator is a Watch as the operator has it, and the kinds that OnKind was called with.
type operator struct {
	*Watch
	*line
	direct client.Client
	mapper *restmapper.DeferredDiscoveryRESTMapper
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	l := newLine(t)
	plain, err := discovery.NewDiscoveryClientForConfigAndClient(env.Config, l.client)
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{
		line: l, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(plain)),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()),
	}
	kinds := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(kinds); err != nil {
			t.Fatal(err)
		}
	}
	ours, err := labels.NewRequirement(v1alpha1.TenantLabel, selection.Exists, nil)
	if err != nil {
		t.Fatal(err)
	}
	lists := NewLists(clock.RealClock{})
	objects, err := cache.New(env.Config, lists.Of(cache.Options{
		HTTPClient: l.client, Scheme: kinds, Mapper: o.mapper,
		DefaultLabelSelector: labels.NewSelector().Add(*ours), DefaultTransform: Hold(kinds, fingerprint.Slim),
	}))
	if err != nil {
		t.Fatal(err)
	}
	if o.direct, err = client.New(env.Config, client.Options{HTTPClient: l.client, Scheme: kinds, Mapper: o.mapper}); err != nil {
		t.Fatal(err)
	}
	o.Watch = NewWatch(lists, objects, o.direct, o.direct, health.HasStatus)
	o.OnKind(func(_ schema.GroupVersionKind, informer cache.Informer) error {
		named := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetLabels()[v1alpha1.TenantLabel] + "/" + object.GetName()}}}
		})
		return (&source.Informer{Informer: informer, Handler: named}).Start(t.Context(), o.queue)
	})
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = objects.Start(ctx) })
	t.Cleanup(func() { end(); running.Wait(); o.queue.ShutDown() })
	return o
}

// Live, Object and Follow wait for the first list, as no Reconcile does.
func (o *operator) Live(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (live metav1.Object, known bool, err error) {
	err = Await(ctx, func() error {
		live, known, err = o.Watch.Live(ctx, kind, key)
		return err
	})
	return live, known, err
}

func (o *operator) Object(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (held *unstructured.Unstructured, known bool, err error) {
	err = Await(ctx, func() error {
		held, known, err = o.Watch.Object(ctx, kind, key)
		return err
	})
	return held, known, err
}

func (o *operator) Follow(ctx context.Context, kind schema.GroupVersionKind) error {
	return Await(ctx, func() error { return o.Watch.Follow(kind) })
}

// make applies a manifest as the operator does, with a tenant's label.
func (o *operator) make(t *testing.T, namespace, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace(namespace)
	u.SetLabels(map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "dev", v1alpha1.AppLabel: "shop"})
	if err := o.direct.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		t.Fatal(err)
	}
	return u
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, annotations: {note: kept by nobody}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: registry.example/web:1, ports: [{containerPort: 443}, {containerPort: 80}, {containerPort: 9090}],
         env: [{name: A, value: "1"}, {name: B, value: "2"}], resources: {requests: {cpu: 10m, memory: 16Mi}}}
`

var (
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	configMaps  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
)

func keyOf(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }

func TestTheCachedFieldsAreEnoughForHealth(t *testing.T) {
	t.Parallel()
	o, namespace := newOperator(t), project(t)
	web := o.make(t, namespace, fmt.Sprintf(deployment, "web"))
	live := web.DeepCopy()
	eventually(t, "Kubernetes' controllers have seen the Deployment", func() bool {
		if err := o.direct.Get(t.Context(), keyOf(web), live); err != nil {
			t.Fatal(err)
		}
		result, err := status.Compute(live)
		return err == nil && result.Status == status.CurrentStatus
	})
	var got *unstructured.Unstructured
	eventually(t, "the watch holds it", func() bool {
		held, known, err := o.Object(t.Context(), deployments, keyOf(web))
		if err != nil || !known {
			t.Fatal(known, err)
		}
		got = held
		return held != nil && held.GetResourceVersion() == live.GetResourceVersion()
	})
	want := live.DeepCopy()
	want.SetAnnotations(nil)
	if slim, err := fingerprint.Slim(want); err != nil || len(want.GetManagedFields()) != 1 {
		t.Fatalf("%v: %v", err, slim)
	}
	delete(want.Object["spec"].(map[string]any), "template")
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Error(diff)
	}
	result, err := status.Compute(got)
	if err != nil || result.Status != status.CurrentStatus {
		t.Errorf("health: %v, %v", result, err)
	}
	meta, known, err := o.Live(t.Context(), deployments, keyOf(web))
	if err != nil || !known || meta.GetResourceVersion() != live.GetResourceVersion() {
		t.Errorf("got %v, %t, %v", meta, known, err)
	}
	if n := o.count("GET /apis/apps/v1/deployments"); n != 1 {
		t.Errorf("%d watches of Deployments, want 1", n)
	}

	if err := o.direct.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the watch sees it go", func() bool {
		held, known, err := o.Object(t.Context(), deployments, keyOf(web))
		return held == nil && known && err == nil
	})
}

func TestKindsOfWhichOnlyMetadataIsHeld(t *testing.T) {
	t.Parallel()
	o, namespace := newOperator(t), project(t)
	for name, manifest := range map[string]string{
		"ConfigMap": "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {a: b}}",
		"Pod":       "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, image: registry.example/web:1}]}}",
	} {
		object := o.make(t, namespace, manifest)
		kind := object.GroupVersionKind()
		eventually(t, "the watch sees the "+name, func() bool {
			meta, known, err := o.Live(t.Context(), kind, keyOf(object))
			if err != nil || !known {
				t.Fatal(known, err)
			}
			return meta != nil
		})
		if held, known, err := o.Object(t.Context(), kind, keyOf(object)); held != nil || known || err != nil {
			t.Errorf("%s: got %v, %t, %v", name, held, known, err)
		}
	}
	for _, kind := range []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind("App"), {Group: "none.example", Version: "v1", Kind: "None"}} {
		if held, known, err := o.Object(t.Context(), kind, types.NamespacedName{Name: "web"}); held != nil || known || err != nil {
			t.Errorf("%s: got %v, %t, %v", kind, held, known, err)
		}
	}
}

func TestSubscribersGetBothForms(t *testing.T) {
	t.Parallel()
	o, namespace := newOperator(t), project(t)
	for _, kind := range []schema.GroupVersionKind{deployments, configMaps} {
		if err := o.Follow(t.Context(), kind); err != nil {
			t.Fatal(err)
		}
	}
	o.make(t, namespace, fmt.Sprintf(deployment, "held-"+namespace))
	o.make(t, namespace, "{apiVersion: v1, kind: ConfigMap, metadata: {name: seen-"+namespace+"}}")
	missing := map[string]bool{"acme/held-" + namespace: true, "acme/seen-" + namespace: true}
	eventually(t, "both are notified", func() bool {
		for o.queue.Len() > 0 {
			request, _ := o.queue.Get()
			delete(missing, request.Name)
			o.queue.Done(request)
		}
		return len(missing) == 0
	})
}

func TestTheSpecThatIsHeld(t *testing.T) {
	t.Parallel()
	small, large := strings.Repeat("x", 100), strings.Repeat("x", 5000)
	cases := map[string]struct {
		apiVersion, kind string
		spec, want       map[string]any
	}{
		"no spec":         {"v1", "ResourceQuota", nil, nil},
		"pod template":    {"batch/v1", "Job", map[string]any{"parallelism": int64(2), "template": map[string]any{"a": "b"}}, map[string]any{"parallelism": int64(2)}},
		"job template":    {"batch/v1", "CronJob", map[string]any{"suspend": true, "jobTemplate": map[string]any{"a": "b"}}, map[string]any{"suspend": true}},
		"claim templates": {"apps/v1", "StatefulSet", map[string]any{"replicas": int64(1), "volumeClaimTemplates": []any{}}, map[string]any{"replicas": int64(1)}},
		"small foreign":   {"example.com/v1", "Widget", map[string]any{"template": small, "n": 1.5}, map[string]any{"template": small, "n": 1.5}},
		"large foreign":   {"example.com/v1", "Widget", map[string]any{"text": large}, nil},
		"large own":       {"networking.k8s.io/v1", "Ingress", map[string]any{"text": large}, map[string]any{"text": large}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			whole := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": c.apiVersion, "kind": c.kind, "metadata": map[string]any{"name": "web"},
				"data": map[string]any{"secret": "x"}, "status": map[string]any{"phase": "Ready"},
			}}
			if c.spec != nil {
				whole.Object["spec"] = c.spec
			}
			hold := Hold(scheme.Scheme, fingerprint.Slim)
			kept, err := hold(whole)
			if err != nil {
				t.Fatal(err)
			}
			again, err := hold(kept)
			if err != nil || again != kept {
				t.Errorf("a second time: %v, %v", again, err)
			}
			got, err := kept.(*held).object()
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"apiVersion": c.apiVersion, "kind": c.kind, "status": map[string]any{"phase": "Ready"},
				"metadata": map[string]any{"name": "web"},
			}
			if c.want != nil {
				want["spec"] = c.want
			}
			if diff := cmp.Diff(want, got.Object); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTypedAndUntypedAreHeldAlike compares what is held of an object that came as Protobuf and of the same as JSON.
func TestTypedAndUntypedAreHeldAlike(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	metadata := metav1.ObjectMeta{
		Name: "web", Namespace: "shop", Generation: 3, ResourceVersion: "7", CreationTimestamp: at, Labels: map[string]string{"a": "b"},
		Finalizers: []string{"example.com/guard"}, Annotations: map[string]string{"note": "kept by nobody"},
	}
	share, port := intstr.FromString("25%"), intstr.FromInt32(80)
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}}}
	for kind, o := range map[string]client.Object{
		"Deployment": &appsv1.Deployment{
			ObjectMeta: metadata,
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(0)), Template: template,
				Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &share}},
			},
			Status: appsv1.DeploymentStatus{
				ObservedGeneration: 3, Replicas: 2,
				Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastUpdateTime: at}},
			},
		},
		"Job": &batchv1.Job{
			ObjectMeta: metadata, Spec: batchv1.JobSpec{Template: template, Suspend: new(false)},
			Status: batchv1.JobStatus{StartTime: &at, Failed: 1},
		},
		"CronJob": &batchv1.CronJob{ObjectMeta: metadata, Spec: batchv1.CronJobSpec{Schedule: "@daily"}},
		"StatefulSet": &appsv1.StatefulSet{
			ObjectMeta: metadata,
			Spec:       appsv1.StatefulSetSpec{Template: template, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{}}},
		},
		"Service": &corev1.Service{
			ObjectMeta: metadata,
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: port}}, Type: corev1.ServiceTypeLoadBalancer},
			Status:     corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}}},
		},
		"PersistentVolumeClaim": &corev1.PersistentVolumeClaim{
			ObjectMeta: metadata,
			Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1.5Gi")},
			}},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudget{
			ObjectMeta: metadata, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &port},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptedPods: map[string]metav1.Time{"web-0": at}},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			data, err := apiruntime.Encode(scheme.Codecs.LegacyCodec(scheme.Scheme.PrioritizedVersionsAllGroups()...), o)
			if err != nil {
				t.Fatal(err)
			}
			untyped := &unstructured.Unstructured{}
			if err := untyped.UnmarshalJSON(data); err != nil {
				t.Fatal(err)
			}
			var both [2]*unstructured.Unstructured
			for i, object := range []any{untyped, o} {
				kept, err := Hold(scheme.Scheme, fingerprint.Slim)(object)
				if err != nil {
					t.Fatal(err)
				}
				if both[i], err = kept.(*held).object(); err != nil {
					t.Fatal(err)
				}
			}
			if both[0].GetKind() != kind || both[0].GetName() != "web" {
				t.Fatalf("held: %v", both[0].Object)
			}
			if diff := cmp.Diff(both[0].Object, both[1].Object); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestADeploymentTakesLittleMemory: at most 4 KiB.
func TestADeploymentTakesLittleMemory(t *testing.T) {
	const count = 1000
	o, namespace := newOperator(t), project(t)
	var all sync.WaitGroup
	for part := range 8 {
		all.Go(func() {
			for i := part; i < count; i += 8 {
				o.make(t, namespace, fmt.Sprintf(deployment, fmt.Sprintf("web-%d", i)))
			}
		})
	}
	all.Wait()
	time.Sleep(2 * time.Second)                                                                            // Let Kubernetes' controllers write the status.
	if err := o.Follow(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Service"}); err != nil { // warms up
		t.Fatal(err)
	}
	before := heap()
	if err := o.Follow(t.Context(), deployments); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the queue got all", func() bool { return o.queue.Len() >= count })
	for o.queue.Len() > 0 {
		request, _ := o.queue.Get()
		o.queue.Done(request)
	}
	each := (heap() - before) / count
	t.Logf("%d bytes for each of %d Deployments", each, count)
	if each > 4<<10 {
		t.Errorf("%d bytes for each Deployment", each)
	}
	runtime.KeepAlive(o)
}
