//go:build e2e

package charts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

const (
	// within is how long all apps together may take, on a busy machine.
	within = 2 * time.Minute
	// shop is the tenant's project.
	shop = "kubeop-acme-shop"
	// ofTenant is the folder of its apps.
	ofTenant = "tenants/acme/projects/shop/apps/"

	tenantFile  = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\nspec: {owners: [{kind: User, name: ann, role: admin}]}\n"
	projectFile = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: %s}\nspec: %s\n"
	appFile     = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec: {type: Helm, helm: {path: chart%s}}\n"
)

// TestChartsOfAllKindsAreDelivered delivers all charts as one tenant by one push. The next push delivers as the platform what needs it, and changes values of the
// tenant's apps, also to those that make a refused app healthy. The last push removes everything, and the cluster has to be as before.
func TestChartsOfAllKindsAreDelivered(t *testing.T) {
	before, err := objects(t.Context())
	must(t, err)

	must(t, root.Write("tenants/acme/tenant.yaml", []byte(tenantFile)))
	must(t, root.Write("tenants/acme/projects/shop/project.yaml", fmt.Appendf(nil, projectFile, "shop", "{}")))
	for name := range charts {
		deliver(t, ofTenant+name, name, "")
	}
	push(t, "Deliver all charts as a tenant")
	each(t, "of a tenant", func(chart) bool { return true }, func(ctx context.Context, name string, c chart) error {
		if c.refused == nil {
			return platform.Ready(ctx, &v1alpha1.App{}, shop, name)
		}
		return c.check(ctx, name)
	})

	passwords := secrets(t)
	for name, c := range charts {
		if c.values != "" {
			deliver(t, ofTenant+name, name, ", values: "+c.values)
		}
		if c.platform != "" {
			must(t, root.Write("platform/"+name+"/project.yaml", fmt.Appendf(nil, projectFile, name, "{namespace: {podSecurity: "+c.platform+"}}")))
			deliver(t, "platform/"+name+"/apps/"+name, name, "")
		}
	}
	push(t, "Deliver what tenants may not have as the platform, and change values")
	each(t, "of the platform", func(c chart) bool { return c.platform != "" }, func(ctx context.Context, name string, _ chart) error {
		return platform.Ready(ctx, &v1alpha1.App{}, name, name)
	})
	each(t, "with other values", func(c chart) bool { return c.values != "" }, changed)
	if diff := cmp.Diff(passwords, secrets(t)); diff != "" {
		t.Errorf("generated passwords changed (-before +now):\n%s", diff)
	}
	remove(t)
	same(t, before)
}

// changed checks that an app is healthy with its later values: if it was healthy before, in the second revision of its release.
func changed(ctx context.Context, name string, c chart) error {
	app := &v1alpha1.App{}
	if err := platform.Ready(ctx, app, shop, name); err != nil {
		return err
	}
	if app.Status.Release == nil || c.refused == nil && app.Status.Release.Revision != 2 {
		return fmt.Errorf("its release is %+v", app.Status.Release)
	}
	return nil
}

// secrets returns the passwords that charts generated and look up when they are upgraded.
func secrets(t *testing.T) map[string]string {
	t.Helper()
	list := &corev1.SecretList{}
	must(t, platform.Client.List(t.Context(), list, client.InNamespace(shop)))
	all := map[string]string{}
	for _, s := range list.Items {
		if password, ok := s.Data["password"]; ok {
			all[s.Name] = string(password)
		}
	}
	if len(all) == 0 {
		t.Error("there are no passwords")
	}
	return all
}

// deliver writes an app with the files of its chart.
func deliver(t *testing.T, folder, name, values string) {
	t.Helper()
	must(t, root.Write(folder+"/app.yaml", fmt.Appendf(nil, appFile, name, charts[name].helm+values)))
	copyChart(t, name, folder+"/chart")
	copyChart(t, "shared", folder+"/chart/charts/shared")
	if with := charts[name].with; with != "" {
		copyChart(t, with, folder+"/chart/charts/"+with)
	}
}

func copyChart(t *testing.T, name, to string) {
	t.Helper()
	from := os.DirFS("testdata/" + name)
	must(t, fs.WalkDir(from, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, path)
		if err != nil {
			return err
		}
		return root.Write(to+"/"+path, bytes.ReplaceAll(content, []byte("registry.example.com"), []byte(platform.Cluster.Registry.Host)))
	}))
}

// each checks the charts of a kind, in one test for each. All together have the time.
func each(t *testing.T, what string, of func(chart) bool, look func(context.Context, string, chart) error) {
	t.Helper()
	began := time.Now()
	t.Run(what, func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(charts)) {
			if !of(charts[name]) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				until(t, max(time.Second, within-time.Since(began)), name, func(ctx context.Context) error { return look(ctx, name, charts[name]) })
				t.Logf("%s after %.1f s", name, time.Since(began).Seconds())
			})
		}
	})
}

// check checks that the App of a tenant is refused, and that its one message has all parts, the way out among them.
func (c chart) check(ctx context.Context, name string) error {
	app := &v1alpha1.App{}
	if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: shop, Name: name}, app); err != nil {
		return err
	}
	ready := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ReadyCondition)
	if ready == nil {
		return errors.New("it reports nothing yet")
	}
	for _, part := range c.refused {
		if !strings.Contains(ready.Message, part) {
			return fmt.Errorf("it reports %s: %s; not %q", ready.Reason, ready.Message, part)
		}
	}
	if final := meta.IsStatusConditionTrue(app.Status.Conditions, v1alpha1.StalledCondition); final == c.retried {
		return fmt.Errorf("%s is final: %t, want %t: %s", ready.Reason, final, !c.retried, ready.Message)
	}
	return nil
}

// remove removes everything by one push, as the documentation says: deletions of tenants and data are confirmed, and what is kept is deleted
// by hand.
func remove(t *testing.T) {
	t.Helper()
	began := time.Now()
	must(t, root.Remove("tenants"))
	must(t, root.Remove("platform"))
	push(t, "Remove everything")
	until(t, within, "the deletions wait to be confirmed", func(ctx context.Context) error {
		r := &v1alpha1.Repository{}
		err := platform.Client.Get(ctx, client.ObjectKey{Name: root.Name}, r)
		if err == nil && !stage.NeedsConfirmation(r) {
			err = errors.New("nothing is held")
		}
		return err
	})
	must(t, platform.Confirm(t.Context(), root.Name))
	until(t, within, "the apps are gone", func(ctx context.Context) error {
		apps := &v1alpha1.AppList{}
		err := platform.Client.List(ctx, apps)
		if err == nil && len(apps.Items) > 0 {
			a := &apps.Items[0]
			err = fmt.Errorf("%d are left, %s/%s: %v", len(apps.Items), a.Namespace, a.Name, a.Status.Conditions)
		}
		return err
	})
	removeData(t)
	removeDefinitions(t)
	t.Logf("removed after %.1f s", time.Since(began).Seconds())
}

// removeData deletes the namespace that was kept for its claims, and the claims, as docs/data.md says.
func removeData(t *testing.T) {
	t.Helper()
	until(t, within, "the project's namespace is kept for its claims", func(ctx context.Context) error {
		n := &corev1.Namespace{}
		err := platform.Client.Get(ctx, client.ObjectKey{Name: shop}, n)
		if err == nil && n.Labels["paas.kubeop.io/retained"] != "true" {
			err = fmt.Errorf("its labels are %v", n.Labels)
		}
		return err
	})
	claims := &corev1.PersistentVolumeClaimList{}
	must(t, platform.Client.List(t.Context(), claims, client.InNamespace(shop)))
	var kept []string
	for _, c := range claims.Items {
		kept = append(kept, c.Name)
	}
	slices.Sort(kept)
	if diff := cmp.Diff(keptClaims, kept); diff != "" {
		t.Errorf("the kept claims (-want +got):\n%s", diff)
	}
	kubectl(t, "delete", "pvc", "-n", shop, "--all")
	kubectl(t, "annotate", "namespace", shop, v1alpha1.AllowDeletionAnnotation+"="+shop)
	until(t, within, "kubeop has written that the volumes are kept", func(ctx context.Context) error {
		n := &corev1.Namespace{}
		err := platform.Client.Get(ctx, client.ObjectKey{Name: shop}, n)
		if err == nil && n.Annotations[v1alpha1.VolumesRetainedAnnotation] == "" {
			err = fmt.Errorf("its annotations are %v", n.Annotations)
		}
		return err
	})
	kubectl(t, "delete", "namespace", shop)
}

// removeDefinitions deletes the definitions of the charts, which kubeop keeps as docs/helm.md says.
func removeDefinitions(t *testing.T) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apiextensions.k8s.io/v1")
	list.SetKind("CustomResourceDefinition")
	must(t, platform.Client.List(t.Context(), list))
	kept := []string{}
	for _, d := range list.Items {
		if strings.HasSuffix(d.GetName(), ".example.com") {
			kept = append(kept, d.GetName())
		}
	}
	if len(kept) != keptDefinitions {
		t.Errorf("%d definitions are kept, want %d: %v", len(kept), keptDefinitions, kept)
	}
	kubectl(t, append([]string{"delete", "crd"}, kept...)...)
}

// same waits until the cluster holds what it held before.
func same(t *testing.T, before map[string]string) {
	t.Helper()
	until(t, within, "the cluster is as before", func(ctx context.Context) error {
		now, err := objects(ctx)
		if err != nil {
			return err
		}
		if all := differences(before, now); len(all) > 0 {
			time.Sleep(500 * time.Millisecond) // To list everything is not free.
			return fmt.Errorf("%d differences:\n%s", len(all), strings.Join(all, "\n"))
		}
		return nil
	})
}

func push(t *testing.T, message string) {
	t.Helper()
	must(t, root.Push(t.Context(), message))
}

func until(t *testing.T, within time.Duration, what string, look func(context.Context) error) {
	t.Helper()
	if err := stage.Until(t.Context(), within, what, look); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kubectl(t *testing.T, args ...string) {
	t.Helper()
	_, err := platform.Kubectl(t.Context(), args...)
	must(t, err)
}
