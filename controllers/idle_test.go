package controllers

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const chartFile = "apiVersion: v2\nname: hello\nversion: 0.1.0\n"

const helmFile = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata:
  name: released
spec:
  type: Helm
  helm:
    path: chart
    values: {greeting: hello}
`

const templateFile = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  greeting: {{ .Values.greeting }}
`

// withRelease adds a Helm app with a chart beside it to the files of the project shop.
func withRelease(files map[string]string) map[string]string {
	const app = "projects/shop/apps/released/"
	files[app+"app.yaml"] = helmFile
	files[app+"chart/Chart.yaml"] = chartFile
	files[app+"chart/templates/config.yaml"] = templateFile
	return files
}

// TestASecondReconcileWritesNothing compares the resourceVersion of every object before and after a requested reconcile of each of
// the four kinds. Only quotas may be written once: they count a kind two minutes after it is first
// served, whatever is reconciled. Then everything is compared again.
func TestASecondReconcileWritesNothing(t *testing.T) {
	n := newTeam(t, "quiet")
	n.push(withRelease(shopFiles("shop", "web")))
	shop := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-quiet", Name: "shop"}}
	owner := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "quiet"}}
	web, released, repository := n.app("shop", "web"), n.app("shop", "released"), n.repository()
	n.ready(web, released, shop, owner, repository)
	n.reconcile(released, web, shop, owner, repository)

	var diff string
	for range 2 {
		before := n.settled()
		if len(before) < 20 {
			t.Fatalf("only %d objects were compared: %v", len(before), before)
		}
		n.reconcile(released, web, shop, owner, repository)
		after := n.resourceVersions()
		if diff = cmp.Diff(before, after); diff == "" || !maps.Equal(withoutQuotas(before), withoutQuotas(after)) {
			break
		}
	}
	if diff != "" {
		t.Errorf("the second reconcile wrote (-before +after):\n%s", diff)
	}
}

func withoutQuotas(versions map[string]string) map[string]string {
	others := maps.Clone(versions)
	maps.DeleteFunc(others, func(object, _ string) bool { return strings.HasPrefix(object, "ResourceQuota ") })
	return others
}

// settled returns the versions once Kubernetes' own controllers, which create default objects in each namespace and write the status of
// quotas and namespaces, have changed nothing for some seconds.
func (n *team) settled() map[string]string {
	n.t.Helper()
	last := n.resourceVersions()
	for same, looks := 0, 0; same < 3 && looks < 60; looks++ {
		time.Sleep(time.Second)
		now := n.resourceVersions()
		if same++; !maps.Equal(last, now) || !n.hasDefaults(now) {
			same = 0
		}
		last = now
	}
	return last
}

// hasDefaults reports whether Kubernetes has created the default objects in both namespaces of the team.
func (n *team) hasDefaults(versions map[string]string) bool {
	for _, namespace := range []string{n.namespace(), v1alpha1.HomeNamespace(n.name)} {
		if versions["ConfigMap "+namespace+"/kube-root-ca.crt"] == "" || versions["ServiceAccount "+namespace+"/default"] == "" {
			return false
		}
	}
	return true
}

// resourceVersions returns the versions of all objects of the team, without those of this API: a reconcile request
// writes them.
func (n *team) resourceVersions() map[string]string {
	n.t.Helper()
	kinds, err := discovery.NewDiscoveryClientForConfigOrDie(env.Config).ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // Other tests delete definitions meanwhile.
		n.t.Fatal(err)
	}
	client := metadata.NewForConfigOrDie(env.Config)
	versions := map[string]string{}
	for _, list := range kinds {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			n.t.Fatal(err)
		}
		for _, kind := range list.APIResources {
			if !strings.Contains(kind.Verbs.String(), "list") || gv.Group == v1alpha1.Group || kind.Kind == "Event" || kind.Kind == "Lease" {
				continue
			}
			found, err := client.Resource(gv.WithResource(kind.Name)).List(n.t.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				n.t.Fatal(err)
			}
			for _, o := range found.Items {
				if strings.HasPrefix(o.Namespace, "kubeop-"+n.name) || strings.Contains(o.Name, n.name) {
					versions[kind.Kind+" "+o.Namespace+"/"+o.Name] = o.ResourceVersion
				}
			}
		}
	}
	return versions
}

// TestAnAppThatWaitsWritesNothing delivers a Deployment that never gets a pod, because its ServiceAccount does not exist, beside a Secret, a kind
// that is not watched. The app waits without writing, and its timeout counts from its first check.
func TestAnAppThatWaitsWritesNothing(t *testing.T) {
	n := newTeam(t, "patient")
	files := shopFiles("shop")
	for file, content := range rawApp(
		"{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {key: value}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: slow}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {serviceAccountName: nobody, containers: [{name: main, image: none}]}}}}",
	) {
		files["projects/shop/apps/bad/"+file] = content
	}
	n.push(files)
	app := n.app("shop", "bad")
	n.until(app, v1alpha1.HealthyCondition, metav1.ConditionFalse, v1alpha1.UnhealthyReason)
	time.Sleep(time.Second)
	n.until(app, v1alpha1.HealthyCondition, metav1.ConditionFalse, v1alpha1.UnhealthyReason)
	since, version := app.Status.UnhealthySince, app.ResourceVersion
	time.Sleep(4 * time.Second)
	n.until(app, v1alpha1.HealthyCondition, metav1.ConditionFalse, v1alpha1.UnhealthyReason)
	if !app.Status.UnhealthySince.Equal(since) || app.ResourceVersion != version {
		t.Errorf("the app was written while it waited: %+v", app.Status)
	}
}

// TestASecretBelongsToOneApp declares one Secret in two apps. The second reports the owner.
func TestASecretBelongsToOneApp(t *testing.T) {
	n := newTeam(t, "sharing")
	secret := func(value string) map[string]string {
		return rawApp("{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {key: " + value + "}}")
	}
	files := shopFiles("shop")
	files["projects/shop/apps/bad/app.yaml"] = secret("first")["app.yaml"]
	n.push(files)
	n.ready(n.app("shop", "bad"))
	n.push(map[string]string{"projects/shop/apps/worse/app.yaml": strings.Replace(secret("second")["app.yaml"], "name: bad", "name: worse", 1)})
	message := n.until(n.app("shop", "worse"), v1alpha1.AppliedCondition, metav1.ConditionFalse, v1alpha1.ApplyFailedReason)
	if !strings.Contains(message, "Secret/key") || !strings.Contains(message, "app bad") {
		t.Errorf("the message is %s", message)
	}
	n.ready(n.app("shop", "bad"))
}
