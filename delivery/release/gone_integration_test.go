package release

import (
	"bytes"
	"errors"
	"testing"
	"testing/fstest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// withoutKind removes the team's own kind from the cluster.
func (t *team) withoutKind() {
	t.Helper()
	name := "things." + t.namespace + ".example.com"
	if err := t.admin.CoreV1().RESTClient().Delete().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", name).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		_, err := t.admin.Discovery().ServerResourcesForGroupVersion(t.namespace + ".example.com/v1")
		if apierrors.IsNotFound(err) {
			t.Refresh()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the kind is still served")
}

func TestObjectsOfARemovedKindHoldNothingUp(t *testing.T) {
	next := map[string]func(*team) Request{
		"upgraded":    func(tm *team) Request { return tm.request(sources.ChartFolder(fourObjects(nil))) },
		"uninstalled": func(tm *team) Request { return tm.request(nil) },
	}
	for name, next := range next {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			tm.mayDefine()
			files := tm.withCRD("old")
			files["templates/config.yaml"] = &fstest.MapFile{Data: []byte(configMap)}
			tm.deploy(tm.request(files))
			tm.withoutKind()
			r := next(tm)
			if name == "upgraded" {
				tm.deploy(r)
			}
			tm.uninstall(r)
			if left := tm.versions(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestVersionsThatAreNoLongerServed(t *testing.T) {
	tm := newTeam(t)
	budget := func(version, selected string) string {
		return "apiVersion: policy/" + version + "\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {minAvailable: 1, selector: {matchLabels: {app: " + selected + "}}}\n"
	}
	if err := tm.create(tm.cluster(), budget("v1", "one")); err != nil {
		t.Fatal(err)
	}
	if err := tm.upgradeTo(tm.cluster(), budget("v1beta1", "one"), budget("v1", "two")); err != nil {
		t.Fatal(err)
	}
	budgets := tm.admin.PolicyV1().PodDisruptionBudgets(tm.namespace)
	b, err := budgets.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || b.Spec.Selector.MatchLabels["app"] != "two" {
		t.Errorf("got %v, %v", b.Spec.Selector, err)
	}
	if err := tm.upgradeTo(tm.cluster(), budget("v1beta1", "two"), configMap); err != nil {
		t.Fatal(err)
	}
	if _, err := budgets.Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what left the chart is still there: %v", err)
	}
	if _, err := tm.cluster().Build(bytes.NewBufferString(budget("v1beta1", "new")), true); !meta.IsNoMatchError(errors.Unwrap(err)) {
		t.Errorf("a new manifest: %v", err)
	}
}
