package apply

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (b *fixture) deployment(replicas int64, image string) *unstructured.Unstructured {
	labels := map[string]any{"app": "web"}
	return b.object("apps/v1", "Deployment", "web", map[string]any{"spec": map[string]any{
		"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": image}}},
		},
	}})
}

// autoscaler is one whose controller never has anything to do, without metrics and with one replica being enough.
func (b *fixture) autoscaler() *unstructured.Unstructured {
	return b.object("autoscaling/v2", "HorizontalPodAutoscaler", "web", map[string]any{"spec": map[string]any{
		"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
		"minReplicas":    int64(1), "maxReplicas": int64(10),
	}})
}

// scale sets the replicas as an autoscaler or `kubectl scale` does.
func (b *fixture) scale(manager string, replicas int32) {
	b.t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "web"}}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	if err := b.SubResource("scale").Update(b.t.Context(), d, client.WithSubResourceBody(scale), client.FieldOwner(manager)); err != nil {
		b.t.Fatal(err)
	}
}

// rest waits until the Deployment's controller has written all it has to say: what it writes between a look and a write
// makes the write a conflict, which is tried again in the next pass.
func (b *fixture) rest(d *appsv1.Deployment) {
	b.t.Helper()
	for quiet, version := 0, ""; quiet < 5; quiet++ {
		time.Sleep(100 * time.Millisecond)
		if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			b.t.Fatal(err)
		}
		if d.ResourceVersion != version || d.Status.ObservedGeneration != d.Generation {
			quiet, version = 0, d.ResourceVersion
		}
	}
}

func (b *fixture) wantReplicas(when string, want int32) {
	b.t.Helper()
	d := &appsv1.Deployment{}
	if err := b.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "web"}, d); err != nil {
		b.t.Fatal(err)
	}
	if *d.Spec.Replicas != want {
		b.t.Errorf("%s: %d replicas, want %d", when, *d.Spec.Replicas, want)
	}
}

func TestAnAutoscalerThatJoinsTheSetKeepsTheReplicas(t *testing.T) {
	b := newFixture(t)
	b.must(1, b.deployment(3, "web:1"))
	b.must(2, b.deployment(3, "web:1"), b.autoscaler())
	b.wantReplicas("the autoscaler has not scaled yet", 3)
	b.must(0, b.deployment(3, "web:1"), b.autoscaler())

	b.scale("kube-controller-manager", 7)
	b.must(0, b.deployment(3, "web:1"), b.autoscaler())
	b.must(1, b.deployment(4, "web:2"), b.autoscaler())
	b.wantReplicas("after a change of the image", 7)
	b.scale("kubectl", 5)
	b.must(0, b.deployment(4, "web:2"), b.autoscaler())
	b.wantReplicas("after kubectl scale", 5)

	b.must(1, b.deployment(4, "web:2"))
	b.wantReplicas("without an autoscaler", 4)
}

func TestAnAutoscalerOutsideOfTheSet(t *testing.T) {
	b := newFixture(t)
	b.must(1, b.deployment(3, "web:1"))
	outside := b.autoscaler()
	outside.SetLabels(nil)
	if err := b.Create(t.Context(), outside); err != nil {
		t.Fatal(err)
	}
	b.scale("kube-controller-manager", 7)
	b.must(1, b.deployment(3, "web:1"))
	b.wantReplicas("after the autoscaler scaled", 7)
	b.scale("kubectl", 6)
	b.must(0, b.deployment(3, "web:1"))
	b.must(1, b.deployment(3, "web:2"))
	b.wantReplicas("after a change of the image", 6)

	b.must(1, b.deployment(5, "web:2"))
	b.wantReplicas("after a change of the replicas beside the autoscaler", 6)
	b.must(0, b.deployment(5, "web:2"))

	// It changes what only people should: what it has set stays until the next change.
	if err := b.Delete(t.Context(), outside); err != nil {
		t.Fatal(err)
	}
	b.must(0, b.deployment(5, "web:2"))
	b.must(1, b.deployment(3, "web:2"))
	b.wantReplicas("without an autoscaler", 3)
}

func TestScalingByHandIsUndoneWithoutAnAutoscaler(t *testing.T) {
	b := newFixture(t)
	b.must(1, b.deployment(3, "web:1"))
	b.scale("kubectl", 7)
	b.must(1, b.deployment(3, "web:1"))
	b.wantReplicas("after kubectl scale", 3)
	b.must(0, b.deployment(3, "web:1"))
}

func TestReplicasEditedByHandStayWithAnAutoscaler(t *testing.T) {
	b := newFixture(t)
	b.must(2, b.deployment(3, "web:1"), b.autoscaler())
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "web"}}
	edit := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":6,"paused":true}}`))
	if err := b.Patch(t.Context(), d, edit, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	b.rest(d)
	b.must(1, b.deployment(3, "web:1"), b.autoscaler())
	b.wantReplicas("after kubectl edit", 6)
	b.must(0, b.deployment(3, "web:1"), b.autoscaler())
}

func TestInjectedFieldsOfOthersAreKept(t *testing.T) {
	b := newFixture(t)
	b.must(1, b.deployment(1, "web:1"))
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "web"}}
	sidecar := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"proxy","image":"proxy:1"}]}}}}`))
	if err := b.Patch(t.Context(), d, sidecar, client.FieldOwner("injector")); err != nil {
		t.Fatal(err)
	}
	b.must(0, b.deployment(1, "web:1"))
	b.must(1, b.deployment(1, "web:2"))
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}
	var images []string
	for _, c := range d.Spec.Template.Spec.Containers {
		images = append(images, c.Image)
	}
	slices.Sort(images)
	if diff := cmp.Diff([]string{"proxy:1", "web:2"}, images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}
