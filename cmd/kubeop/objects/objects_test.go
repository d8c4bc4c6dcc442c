package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// owned is the metadata of an object that another one made.
func owned(name, uid, kind, owner string) metav1.ObjectMeta {
	yes := true
	m := metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), Generation: 1}
	if owner != "" {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner, UID: types.UID(owner), Controller: &yes}}
	}
	return m
}

// app has delivered these objects, as "kind/name" of the groups apps and core.
func app(delivered ...string) *v1alpha1.App {
	a := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	for _, d := range delivered {
		kind, name, _ := strings.Cut(d, "/")
		group := ""
		if kind == "Deployment" {
			group = "apps"
		}
		a.Status.Inventory.Entries = append(a.Status.Inventory.Entries, v1alpha1.InventoryEntry{ID: "ns_" + name + "_" + group + "_" + kind, Version: "v1"})
	}
	return a
}

// lines are the nodes and what is below them, one in a line.
func lines(nodes []*Node, indent string) string {
	text := ""
	for _, n := range nodes {
		text += strings.TrimSpace(fmt.Sprintf("%s%s/%s %s %s", indent, n.Kind, n.Name, n.State, n.Why)) + "\n" + lines(n.Children, indent+"> ")
	}
	return text
}

func world() []client.Object {
	none, one := int32(0), int32(1)
	web := &appsv1.Deployment{ObjectMeta: owned("web", "web-uid", "", ""), Spec: appsv1.DeploymentSpec{Replicas: &one}}
	web.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{{Type: "Available", Status: "True"}}}
	pod := func(name, owner string, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: owned(name, name+"-uid", "ReplicaSet", owner), Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
		}}
	}
	return []client.Object{
		web, &corev1.ConfigMap{ObjectMeta: owned("config", "config-uid", "", "")},
		&appsv1.ReplicaSet{ObjectMeta: owned("web-2", "web-2-uid", "Deployment", "web-uid"), Spec: appsv1.ReplicaSetSpec{Replicas: &one}, Status: appsv1.ReplicaSetStatus{ObservedGeneration: 1, FullyLabeledReplicas: 1, Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}},
		&appsv1.ReplicaSet{ObjectMeta: owned("web-1", "web-1-uid", "Deployment", "web-uid"), Spec: appsv1.ReplicaSetSpec{Replicas: &none}},
		pod("web-2-a", "web-2-uid", corev1.ConditionTrue), pod("stranger", "other-uid", corev1.ConditionTrue),
	}
}

func reader(objects []client.Object, funcs interceptor.Funcs) Reader {
	return Reader{Client: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()}
}

// TestTheTreeOfAnAppHasWhatWasMadeOfItsObjects, without old ReplicaSets and what others made.
func TestTheTreeOfAnAppHasWhatWasMadeOfItsObjects(t *testing.T) {
	nodes, err := reader(world(), interceptor.Funcs{}).Of(t.Context(), app("Deployment/web", "ConfigMap/config", "ConfigMap/gone"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "ConfigMap/config Healthy\nConfigMap/gone Missing it does not exist\nDeployment/web Healthy\n> ReplicaSet/web-2 Healthy\n> > Pod/web-2-a Healthy\n"
	if got := lines(nodes, ""); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if pods := Pods(nodes); len(pods) != 1 || pods[0].Name != "web-2-a" {
		t.Errorf("the pods are %s", lines(pods, ""))
	}
}

// TestTheHooksOfAnAppAreAmongItsObjects with their pods, and no Job that only has their labels.
func TestTheHooksOfAnAppAreAmongItsObjects(t *testing.T) {
	job := func(name, app, owner string, labels map[string]string) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: owned(name, name+"-uid", "", "")}
		j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "paas.kubeop.io/v1alpha1", Kind: "App", Name: app, UID: types.UID(owner)}}
		j.Labels = labels
		return j
	}
	hook := map[string]string{v1alpha1.AppLabel: "web", v1alpha1.HookLabel: "pre-migrate"}
	pod := &corev1.Pod{ObjectMeta: owned("web-migrate-1-x", "pod-uid", "Job", "web-migrate-1-uid"), Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
	web := app()
	web.UID = "app-uid"
	nodes, err := reader([]client.Object{
		job("web-migrate-1", "web", "app-uid", hook), pod, job("forged", "web", "other-uid", hook), job("of-api", "api", "api-uid", map[string]string{v1alpha1.AppLabel: "api", v1alpha1.HookLabel: "pre-migrate"}),
		job("no-hook", "web", "app-uid", map[string]string{v1alpha1.AppLabel: "web"}),
	}, interceptor.Funcs{}).Of(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) != 1 || nodes[0].Name != "web-migrate-1" || nodes[0].State == "" {
		t.Errorf("got\n%s", lines(nodes, ""))
	}
	if pods := Pods(nodes); len(pods) != 1 || pods[0].Name != "web-migrate-1-x" {
		t.Errorf("the pods are %s", lines(pods, ""))
	}
}

// TestAnObjectThatCannotBeReadIsNamedInTheTree, unless the API server fails: then there is no tree.
func TestAnObjectThatCannotBeReadIsNamedInTheTree(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "config", errors.New("no"))
	unserved := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}}
	away := errors.New("the API server is away")
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"forbidden":  {forbidden, "ConfigMap/config Unknown you may not read ConfigMap objects here\n"},
		"not served": {unserved, "ConfigMap/config Unknown the cluster does not serve v1 ConfigMap any more\n"},
		"away":       {away, ""},
	} {
		r := reader(world(), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return tc.err
		}})
		nodes, err := r.Of(t.Context(), app("ConfigMap/config"))
		if got := lines(nodes, ""); got != tc.want || (tc.want == "") != (err != nil) || err != nil && !errors.Is(err, away) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{"lists are forbidden": {forbidden, "Deployment/web Healthy\n"}, "lists fail": {away, ""}} {
		r := reader(world(), interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return tc.err }})
		nodes, err := r.Of(t.Context(), app("Deployment/web"))
		if got := lines(nodes, ""); got != tc.want || (tc.want == "") != (err != nil) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// TestUnhealthyObjectsSayWhy: what is below a Deployment is in the order of its names, and a pod says the cause and not only that it is not ready.
func TestUnhealthyObjectsSayWhy(t *testing.T) {
	one := int32(1)
	made := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	web := &appsv1.Deployment{ObjectMeta: owned("web", "web-uid", "", ""), Spec: appsv1.DeploymentSpec{Replicas: &one}}
	web.CreationTimestamp = made
	set := func(name string, replicas *int32) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{ObjectMeta: owned(name, name+"-uid", "Deployment", "web-uid"), Spec: appsv1.ReplicaSetSpec{Replicas: replicas}}
	}
	pod := &corev1.Pod{ObjectMeta: owned("web-2-a", "pod-uid", "ReplicaSet", "web-2-uid"), Status: corev1.PodStatus{
		Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"}}}},
	}}
	zero := int32(0)
	job := &batchv1.Job{ObjectMeta: owned("once", "once-uid", "Deployment", "web-uid")}
	nodes, err := reader([]client.Object{web, set("web-2", &one), set("web-1", &one), set("web-0", &zero), job, pod}, interceptor.Funcs{}).Of(t.Context(), app("Deployment/web"))
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) != 1 || nodes[0].State != Unhealthy || nodes[0].Created != "2026-01-01T12:00:00Z" {
		t.Fatalf("got\n%s", lines(nodes, ""))
	}
	var names []string
	for _, node := range nodes[0].Children {
		names = append(names, node.Kind+"/"+node.Name)
	}
	if got := strings.Join(names, " "); got != "Job/once ReplicaSet/web-1 ReplicaSet/web-2" {
		t.Errorf("below it are %s", got)
	}
	pods := Pods(nodes)
	if len(pods) != 1 || pods[0].State != Unhealthy || !strings.Contains(pods[0].Why, "no such image") || strings.HasPrefix(pods[0].Why, "Pod/") {
		t.Errorf("the pods are %s", lines(pods, ""))
	}
}

func TestAnEntryThatNamesNoObjectIsAnError(t *testing.T) {
	broken := app()
	broken.Status.Inventory.Entries = []v1alpha1.InventoryEntry{{ID: "nonsense", Version: "v1"}}
	if nodes, err := reader(nil, interceptor.Funcs{}).Of(t.Context(), broken); err == nil {
		t.Errorf("got %s", lines(nodes, ""))
	}
}

// TestAClaimThatWaitsForItsFirstPodIsHealthy as it is for the operator; why another claim has no volume is shown.
func TestAClaimThatWaitsForItsFirstPodIsHealthy(t *testing.T) {
	for reason, want := range map[string]string{
		"WaitForFirstConsumer": "PersistentVolumeClaim/data Healthy\n",
		"ProvisioningFailed":   "PersistentVolumeClaim/data Unhealthy is not bound to a volume: the reason\n",
		"Other":                "PersistentVolumeClaim/data Unhealthy is not bound to a volume yet\n",
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: owned("data", "data-uid", "", ""), Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
		event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one"}, Reason: reason, Message: "the reason", InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", UID: claim.UID}}
		kind := func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Kind} }
		api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(claim, event).WithIndex(&corev1.Event{}, "involvedObject.kind", kind).Build()
		nodes, err := Reader{Client: api}.Of(t.Context(), app("PersistentVolumeClaim/data"))
		if err != nil {
			t.Fatal(err)
		}
		if got := lines(nodes, ""); got != want {
			t.Errorf("%s: got %q, want %q", reason, got, want)
		}
	}
}
