package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// projects are the names of the tenant's projects.
func (n *team) projects() (names []string) {
	n.t.Helper()
	list := &v1alpha1.ProjectList{}
	if err := n.admin.List(n.t.Context(), list, client.InNamespace(v1alpha1.HomeNamespace(n.name))); err != nil {
		n.t.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// hasProjects waits until the tenant has exactly these projects.
func (n *team) hasProjects(want ...string) {
	n.t.Helper()
	n.eventually(func() error {
		if got := n.projects(); !slices.Equal(got, want) {
			return fmt.Errorf("the projects are %v, want %v", got, want)
		}
		return nil
	})
}

// problemsOf waits until a revision is refused, and returns the problems in the Repository's status.
func (n *team) problemsOf(revision string) string {
	n.t.Helper()
	return strings.Join(n.synced(revision, metav1.ConditionFalse).Status.Problems, "\n")
}

// TestAProjectOverTheLimitIsNotCreated: a commit with too many projects creates as many as the tenant may have, and leaves no quota for
// the others. A held-back project is created once there is room, and existing ones stay even if they come later in Git's order.
func TestAProjectOverTheLimitIsNotCreated(t *testing.T) {
	n := newTeam(t, "manyprojects")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Limits.Projects = ptr.To[int32](3) })
	files := map[string]string{}
	for i := range 6 {
		maps.Copy(files, shopFiles(fmt.Sprintf("p%d", i), "web"))
	}
	problems := n.problemsOf(n.push(files))
	n.hasProjects("p0", "p1", "p2")
	for _, want := range []string{"projects/p3/project.yaml: projects of tenant manyprojects, with this one: 4, and the limit is 3", "spec.limits.projects of the Tenant", "projects/p5/project.yaml"} {
		if !strings.Contains(problems, want) {
			t.Errorf("the problems do not say %q:\n%s", want, problems)
		}
	}
	if strings.Contains(problems, "app.yaml") {
		t.Errorf("the apps of a project that was held back are reported:\n%s", problems)
	}
	n.ready(n.app("p0", "web"), n.app("p2", "web"))

	n.push(shopFiles("a-first"))
	n.push(map[string]string{"projects/p0/apps/web/app.yaml": fmt.Sprintf(rawFile, "web", "web", "bye")})
	n.eventually(func() error {
		if got := n.configMap("p0", "web").Data["greeting"]; got != "bye" {
			return fmt.Errorf("the existing project was not updated: the greeting is %q", got)
		}
		return nil
	})
	n.hasProjects("p0", "p1", "p2")

	n.push(map[string]string{"projects/p1": "-"})
	n.hasProjects("a-first", "p0", "p2")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Limits.Projects = ptr.To[int32](6) })
	n.hasProjects("a-first", "p0", "p2", "p3", "p4", "p5")
	n.ready(n.app("p5", "web"), n.repository())
}

func TestAnAppOverTheTenantsLimitIsNotCreated(t *testing.T) {
	n := newTeam(t, "manyapps")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Limits.Apps = ptr.To[int32](2) })
	problems := n.problemsOf(n.push(shopFiles("shop", "a", "b", "c")))
	if want := "projects/shop/apps/c/app.yaml: apps of all projects of tenant manyapps, with this one: 3, and the limit is 2"; !strings.Contains(problems, want) {
		t.Errorf("the problems do not say %q:\n%s", want, problems)
	}
	n.ready(n.app("shop", "a"), n.app("shop", "b"))
	n.gone(n.app("shop", "c"))
}

// Apps stay in the API server when their files are broken or gone, so they still count: nobody may exceed the limit by breaking one file
// after the other.
func TestAppsWithBrokenFilesStillCount(t *testing.T) {
	n := newTeam(t, "largeapps")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Limits.TreeBytes = ptr.To(resource.MustParse("100Ki")) })
	large := func(name string) map[string]string {
		return map[string]string{"projects/shop/apps/" + name + "/app.yaml": fmt.Sprintf(rawFile, name, name, strings.Repeat("x", 60_000))}
	}
	n.push(shopFiles("shop"))
	n.push(large("one"))
	n.ready(n.app("shop", "one"))
	files := large("two")
	files["projects/shop/apps/one/app.yaml"] = "broken: ["
	problems := n.problemsOf(n.push(files))
	if want := "projects/shop/apps/two/app.yaml: Projects and Apps in the cluster, by size of tenant largeapps"; !strings.Contains(problems, want) {
		t.Errorf("the problems do not say %q:\n%s", want, problems)
	}
	n.gone(n.app("shop", "two"))
	message := n.until(n.app("shop", "one"), v1alpha1.CurrentCondition, metav1.ConditionFalse, v1alpha1.InvalidTreeReason)
	if want := "broken YAML"; !strings.Contains(message, want) {
		t.Errorf("the app says %q, want %q in it", message, want)
	}

	n.push(map[string]string{"projects/shop/apps/one": "-"})
	n.ready(n.app("shop", "two"))
	files = large("three")
	problems = n.problemsOf(n.push(files))
	if want := "projects/shop/apps/two/app.yaml: with this file of 60"; !strings.Contains(problems, want) {
		t.Errorf("the problems do not say %q:\n%s", want, problems)
	}
	message = n.until(n.app("shop", "two"), v1alpha1.CurrentCondition, metav1.ConditionFalse, v1alpha1.InvalidTreeReason)
	if want := "spec.limits.treeBytes"; !strings.Contains(message, want) {
		t.Errorf("the app says %q, want %q in it", message, want)
	}
	n.ready(n.app("shop", "two")) // What runs is still healthy.
}

// An app over a limit is not applied and reports the limit, the file and what to do. Its last version keeps running, and the new one is
// delivered once administrators raise the limit.
func TestAnAppOverItsLimitIsNotApplied(t *testing.T) {
	n := newTeam(t, "bigapps")
	config := func(name, greeting string, size int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {greeting: %s, x: %s}\n", name, greeting, strings.Repeat("x", size))
	}
	files := shopFiles("shop")
	for name, spec := range map[string]string{"raw": "{type: Raw, raw: {path: manifests}}", "helm": "{type: Helm, helm: {path: chart}}"} {
		files["projects/shop/apps/"+name+"/app.yaml"] = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
	}
	files["projects/shop/apps/helm/chart/Chart.yaml"] = chartFile
	fill := func(greeting string, count int) {
		for i := range count {
			files[fmt.Sprintf("projects/shop/apps/raw/manifests/r%d.yaml", i)] = config(fmt.Sprintf("raw%d", i), greeting, 30_000)
			files[fmt.Sprintf("projects/shop/apps/helm/chart/templates/h%d.yaml", i)] = config(fmt.Sprintf("helm%d", i), greeting, 30_000)
		}
	}
	fill("hello", 1)
	n.push(files)
	raw, helm := n.app("shop", "raw"), n.app("shop", "helm")
	n.ready(raw, helm)

	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Limits.AppBytes = ptr.To(resource.MustParse("64Ki")) })
	fill("bye", 4)
	n.push(files)
	for _, c := range []struct {
		app       *v1alpha1.App
		condition string
		want      string
	}{
		{raw, v1alpha1.RenderedCondition, "manifests/r2.yaml: the manifests of the app up to this file"},
		{helm, v1alpha1.ReleasedCondition, "the objects of the app up to this one, as rendered"},
	} {
		message := n.until(c.app, c.condition, metav1.ConditionFalse, v1alpha1.TooLargeReason)
		if !strings.Contains(message, c.want) || !strings.Contains(message, "the limit is 64Ki") || !strings.Contains(message, "spec.limits.appBytes of the Tenant") {
			t.Errorf("%s reports %q", c.app.Name, message)
		}
		if got := n.configMap("shop", c.app.Name+"0").Data["greeting"]; got != "hello" {
			t.Errorf("%s was applied, the greeting is %q, want %q", c.app.Name, got, "hello")
		}
	}
	if refused := n.gauges("kubeop_tenant_refused_total"); refused["appBytes"] < 2 || len(refused) != 1 {
		t.Errorf("the metric counts %v refused apps, want 2", refused)
	}
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Limits = v1alpha1.TenantLimits{} })
	n.ready(raw, helm)
	for _, name := range []string{"raw3", "helm3"} {
		if got := n.configMap("shop", name).Data["greeting"]; got != "bye" {
			t.Errorf("%s holds %q, want %q", name, got, "bye")
		}
	}
}

// The metrics of usage and limits have a series for each existing tenant, and no other.
func TestUsageOfTenantsIsMeasured(t *testing.T) {
	n := newTeam(t, "measured")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Limits.Apps = ptr.To[int32](7) })
	n.push(shopFiles("shop", "a", "b"))
	n.ready(n.app("shop", "a"), n.app("shop", "b"))
	n.eventually(func() error {
		has, limits := n.gauges("kubeop_tenant_used"), n.gauges("kubeop_tenant_limit")
		if has["projects"] != 1 || has["apps"] != 2 || has["treeBytes"] < 3<<10 || limits["apps"] != 7 || limits["projects"] != 50 || limits["sourceBytes"] != 2<<30 {
			return fmt.Errorf("used %v of %v", has, limits)
		}
		return nil
	})
}

// gauges are the values of a metric for the tenant, a gauge or a counter, by resource.
func (n *team) gauges(name string) map[string]float64 {
	n.t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		n.t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range m.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			if family.GetName() == name && labels["tenant"] == n.name {
				values[labels["resource"]] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return values
}
