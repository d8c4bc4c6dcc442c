package controllers

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// The tests of this file are not parallel: they measure.

// bystander is a tenant with one app, whose pushes are measured while another tenant loads the operator.
type bystander struct {
	*team
	pushes int
	// alone is the time of a push without other load: the median of five.
	alone time.Duration
}

func newBystander(t *testing.T, name string) *bystander {
	t.Helper()
	b := &bystander{team: teamOf(t, name)}
	b.push(shopFiles("shop", "web"))
	b.ready(b.app("shop", "web"))
	b.alone = b.measure(5)[2]
	return b
}

// measure pushes n times and returns the times until they were applied, sorted.
func (b *bystander) measure(n int) []time.Duration {
	b.t.Helper()
	var took []time.Duration
	for range n {
		b.pushes++
		greeting := fmt.Sprint("push-", b.pushes)
		began := time.Now()
		b.push(map[string]string{"projects/shop/apps/web/app.yaml": fmt.Sprintf(rawFile, "web", "web", greeting)})
		pushed := time.Now() // The time that git push takes is not counted.
		config := &corev1.ConfigMap{}
		for key := (client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(b.name, "shop"), Name: "web"}); config.Data["greeting"] != greeting; time.Sleep(5 * time.Millisecond) {
			if err := b.admin.Get(b.t.Context(), key, config); err != nil {
				b.t.Fatal(err)
			}
			if time.Since(began) > time.Minute {
				b.t.Fatalf("push %d is not applied after a minute\n%s", b.pushes, b.state())
			}
		}
		took = append(took, time.Since(pushed))
	}
	slices.Sort(took)
	return took
}

// isNotHeldUp pushes n times and wants each push but the slowest to take at most two seconds more than alone, because other packages are tested meanwhile. What it
// is beside takes much longer.
func (b *bystander) isNotHeldUp(n int) {
	b.t.Helper()
	took := b.measure(n)
	b.t.Logf("a push alone took %s; of %d meanwhile the median took %s, the slowest but one %s, the slowest %s",
		b.alone.Round(time.Millisecond), n, took[n/2].Round(time.Millisecond), took[n-2].Round(time.Millisecond), took[n-1].Round(time.Millisecond))
	if took[n-2] > b.alone+2*time.Second && !testing.Short() { // With the race detector all takes several times as long.
		b.t.Errorf("another tenant's push took %s, want at most %s", took[n-2], b.alone+2*time.Second)
	}
}

// notReady counts the apps of a team that are not ready.
func (n *team) notReady() (count int) {
	n.t.Helper()
	apps := &v1alpha1.AppList{}
	if err := n.admin.List(n.t.Context(), apps, client.MatchingLabels{v1alpha1.TenantLabel: n.name}); err != nil {
		n.t.Fatal(err)
	}
	for i := range apps.Items {
		if !conditions.IsReady(&apps.Items[i]) {
			count++
		}
	}
	return count
}

// TestTheFirstSyncOfManyAppsDelaysNoPush: a tenant declares 400 apps at once.
func TestTheFirstSyncOfManyAppsDelaysNoPush(t *testing.T) {
	b, many := newBystander(t, "beside1"), teamOf(t, "crowd")
	many.push(shopFiles("shop", "first"))
	many.ready(many.app("shop", "first"))
	var names []string
	for i := range 400 {
		names = append(names, fmt.Sprint("a", i))
	}
	many.push(shopFiles("shop", names...))
	many.eventually(func() error {
		if n := many.notReady(); n < 20 {
			return fmt.Errorf("%d apps are not ready", n)
		}
		return nil
	})
	b.isNotHeldUp(10)
	if many.notReady() == 0 {
		t.Error("the first sync ended before the measured pushes")
	}
	for _, name := range names {
		many.ready(many.app("shop", name))
	}
}

// TestSlowSourcesDelayNoPush: a tenant declares 100 Git apps on a server that answers after 1.8 seconds.
func TestSlowSourcesDelayNoPush(t *testing.T) {
	b, slow := newBystander(t, "beside2"), teamOf(t, "slowsources")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(1800 * time.Millisecond):
		case <-r.Context().Done():
		}
		http.Error(w, "not now", http.StatusBadGateway)
	}))
	t.Cleanup(server.Close)
	files := map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")}
	for i := range 100 {
		files[fmt.Sprintf("projects/shop/apps/a%d/app.yaml", i)] = fmt.Sprintf(gitAppFile, fmt.Sprint("a", i), "1s", fmt.Sprintf("{url: '%s/a%d.git', path: .}", server.URL, i))
	}
	slow.push(files)
	slow.until(slow.app("shop", "a0"), v1alpha1.SourceReadyCondition, metav1.ConditionFalse, "")
	b.isNotHeldUp(10)
}

const unlistable = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: parts.unlistable.example}, spec: {
  group: unlistable.example, scope: Namespaced, names: {kind: Part, listKind: PartList, plural: parts, singular: part},
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://127.0.0.1:1/convert"}}},
  versions: [
    {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}},
    {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

// TestAKindThatCannotBeListedDelaysNoPush: a tenant has 40 objects of a kind that the API server fails to list, and retries each
// second. Its apps report why, and can be removed.
func TestAKindThatCannotBeListedDelaysNoPush(t *testing.T) {
	b, broken := newBystander(t, "beside3"), teamOf(t, "broken")
	definition := broken.object("", unlistable)
	broken.create(definition)
	for _, to := range []string{"deployer", "watch"} {
		broken.platformRole("parts-"+to, to, "unlistable.example", "parts")
	}
	stored := broken.object("default", "{apiVersion: unlistable.example/v1, kind: Part, metadata: {name: stored, labels: {paas.kubeop.io/tenant: broken}}}")
	broken.eventually(func() error { return broken.admin.Create(t.Context(), stored.DeepCopy()) })
	t.Cleanup(func() { // Kubernetes' own garbage collector lists all kinds.
		for _, o := range []client.Object{stored, definition} {
			if err := broken.admin.Delete(context.Background(), o); err != nil {
				t.Error(err)
			}
		}
	})
	files := map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")}
	file := func(i int) string { return fmt.Sprintf("projects/shop/apps/a%d/app.yaml", i) }
	for i := range 40 {
		files[file(i)] = fmt.Sprintf("apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: a%d}\nspec: {type: Raw, retryInterval: 1s, raw: {manifests: [%s]}}\n",
			i, "{apiVersion: unlistable.example/v2, kind: Part, metadata: {name: part"+fmt.Sprint(i)+"}}")
	}
	files[file(40)] = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: a40}\nspec: {type: Raw, retryInterval: 1s, raw: {manifests: [" +
		"{apiVersion: authorization.k8s.io/v1, kind: LocalSubjectAccessReview, metadata: {name: x}, spec: {user: a}}]}}\n"
	pushed := time.Now()
	broken.push(files)
	if message, want := broken.until(broken.app("shop", "a40"), v1alpha1.AllowedCondition, metav1.ConditionFalse, v1alpha1.NotAllowedReason), "take it out: the API server cannot get"; !strings.Contains(message, want) {
		t.Errorf("of a kind that cannot be read, the app reports %q, want %q in it", message, want)
	}
	for i := range 40 {
		message := broken.until(broken.app("shop", fmt.Sprint("a", i)), v1alpha1.AppliedCondition, metav1.ConditionFalse, "")
		for _, want := range []string{"watching Part: the API server does not list it: ", "conversion webhook for unlistable.example"} {
			if !strings.Contains(message, want) {
				t.Fatalf("app a%d reports %q, want %q in it", i, message, want)
			}
		}
	}
	t.Logf("all apps report the reason after %s", time.Since(pushed).Round(time.Millisecond))
	b.isNotHeldUp(10)
	began := time.Now()
	broken.push(map[string]string{file(0): "-", file(1): "-", file(40): "-"})
	broken.gone(broken.app("shop", "a0"), broken.app("shop", "a1"), broken.app("shop", "a40"))
	t.Logf("three of the apps were removed after %s", time.Since(began))
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("removing three of the apps took %s", took)
	}
}
