package controllers

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// two pushes the project shop with two apps of the given manifests.
func (n *team) two(web, api []string) string {
	n.t.Helper()
	files := n.shop("web", web...)
	maps.Copy(files, n.shop("api", api...))
	return n.push(files)
}

const empty = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: moved}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}"

// uids returns the UIDs of objects.
func (n *team) uids(objects ...client.Object) []types.UID {
	n.t.Helper()
	var out []types.UID
	for _, o := range objects {
		n.there(o)
		out = append(out, o.GetUID())
	}
	return out
}

// owned waits until objects belong to an app.
func (n *team) owned(app string, objects ...client.Object) {
	n.t.Helper()
	n.eventually(func() error {
		for _, o := range objects {
			if n.there(o); o.GetLabels()[v1alpha1.AppLabel] != app {
				return fmt.Errorf("%T %s belongs to %s", o, o.GetName(), o.GetLabels()[v1alpha1.AppLabel])
			}
		}
		return nil
	})
}

// records waits until the app is ready and its inventory has count objects.
func (n *team) records(name string, count int) {
	n.t.Helper()
	app := n.app("shop", name)
	n.eventually(func() error {
		if n.ready(app); len(app.Status.Inventory.Entries) != count || len(app.Status.Held) != 0 {
			return fmt.Errorf("the inventory of app %s is %v, status.held is %q", name, app.Status.Inventory.Entries, app.Status.Held)
		}
		return nil
	})
}

func TestObjectsMoveBetweenApps(t *testing.T) {
	n := newTeam(t, "moving")
	n.volume()
	secret := "{apiVersion: v1, kind: Secret, metadata: {name: moved}, stringData: {key: first}}"
	moved := []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "moved"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "moved"}},
		n.configMapOf("shop", "moved"), n.claimOf(),
	}
	web, api := []string{plain("web"), plain("moved"), empty, secret, claim}, []string{plain("api")}
	first := n.two(web, api)
	n.applied("web", first)
	n.applied("api", first)
	before, generation := n.uids(moved...), moved[0].GetGeneration()

	n.two(web[:1], append(api, web[1:]...))
	n.owned("api", moved...)
	n.records("web", 1)
	n.records("api", 5)

	// The objects move back, in a commit that removes the app.
	files := n.shop("web", web...)
	files["projects/shop/apps/api"] = "-"
	n.push(files)
	n.owned("web", moved...)
	n.gone(n.app("shop", "api"), n.configMapOf("shop", "api"))
	n.records("web", 5)
	if diff := cmp.Diff(before, n.uids(moved...)); diff != "" {
		t.Errorf("objects were recreated (-want +got):\n%s", diff)
	}
	if got := moved[0].GetGeneration(); got != generation {
		t.Errorf("the Deployment was changed from generation %d to %d, which restarts its pods", generation, got)
	}
}

// TestAMoveBetweenAppsRestartsNoPods moves a Deployment to another app, changes its metadata there, then its pods.
func TestAMoveBetweenAppsRestartsNoPods(t *testing.T) {
	n := newTeam(t, "restarting")
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "moved"}}
	n.applied("web", n.two([]string{plain("web"), empty}, []string{plain("api")}))
	n.there(d)
	template, uid := d.Spec.Template.DeepCopy(), d.UID
	if template.Labels[v1alpha1.AppLabel] != "web" {
		t.Fatalf("the pods are labelled %v", template.Labels)
	}
	metadata := strings.Replace(empty, "name: moved", "name: moved, labels: {note: here}", 1)
	for _, manifest := range []string{empty, metadata} {
		revision := n.two([]string{plain("web")}, []string{plain("api"), manifest})
		n.applied("api", revision)
		n.owned("api", d)
		n.records("api", 2)
		if d.UID != uid {
			t.Fatalf("the Deployment was deleted and created again")
		}
		if diff := cmp.Diff(*template, d.Spec.Template); diff != "" || d.Generation != 1 {
			t.Errorf("the move restarts the pods: generation %d (-before +after):\n%s", d.Generation, diff)
		}
		if d.Labels[v1alpha1.PodsOfLabel] != "web" {
			t.Errorf("labels are %v", d.Labels)
		}
	}
	if d.Labels["note"] != "here" {
		t.Errorf("the change of the metadata was not applied: %v", d.Labels)
	}
	n.applied("api", n.two([]string{plain("web")}, []string{plain("api"), strings.Replace(metadata, "image: a", "image: b", 1)}))
	d = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "moved"}}
	n.there(d)
	if got := d.Spec.Template; got.Spec.Containers[0].Image != "b" || got.Labels[v1alpha1.AppLabel] != "api" || d.Labels[v1alpha1.PodsOfLabel] != "" {
		t.Errorf("with new pods, image is %s, labels are %v, those of the Deployment %v", got.Spec.Containers[0].Image, got.Labels, d.Labels)
	}
}

func TestTwoAppsSwapObjects(t *testing.T) {
	n := newTeam(t, "swapping")
	one, two := n.configMapOf("shop", "one"), n.configMapOf("shop", "two")
	revision := n.two([]string{plain("one"), plain("web")}, []string{plain("two"), plain("api")})
	n.applied("web", revision)
	n.applied("api", revision)
	before := n.uids(one, two)
	for i := range 6 {
		web, api := "one", "two"
		if i%2 == 0 {
			web, api = api, web
		}
		n.two([]string{plain(web), plain("web")}, []string{plain(api), plain("api")})
		n.owned("web", n.configMapOf("shop", web))
		n.owned("api", n.configMapOf("shop", api))
		n.records("web", 2)
		n.records("api", 2)
	}
	if diff := cmp.Diff(before, n.uids(one, two)); diff != "" {
		t.Errorf("objects were recreated (-want +got):\n%s", diff)
	}
}

// TestAnAppTakesNoObjectOfAnotherApp declares an object in a second app, while the first one declares it and after that app is gone.
func TestAnAppTakesNoObjectOfAnotherApp(t *testing.T) {
	n := newTeam(t, "stealing")
	files := n.shop("web", plain("mine"))
	files["projects/shop/apps/web/app.yaml"] += "  deletionPolicy: Orphan\n"
	n.applied("web", n.push(files))
	mine := n.configMapOf("shop", "mine")
	before := n.uids(mine)
	files = n.shop("api", plain("mine"), plain("api"))
	n.push(files)
	refused := func() {
		t.Helper()
		message := n.until(n.app("shop", "api"), v1alpha1.AppliedCondition, metav1.ConditionFalse, v1alpha1.ApplyFailedReason)
		if want := "ConfigMap/mine: belongs to app web"; !strings.Contains(message, want) {
			t.Errorf("the message is %q, want %q in it", message, want)
		}
		n.owned("web", mine)
	}
	refused()
	n.push(map[string]string{"projects/shop/apps/web": "-"})
	n.gone(n.app("shop", "web"))
	refused()
	files["projects/shop/apps/api/app.yaml"] += "  takeOwnership: true\n"
	n.push(files)
	n.owned("api", mine)
	n.ready(n.app("shop", "api"))
	if diff := cmp.Diff(before, n.uids(mine)); diff != "" {
		t.Errorf("the object was recreated (-want +got):\n%s", diff)
	}
}
