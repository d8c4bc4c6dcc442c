package render

import (
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/project"
	"github.com/kubeop/kubeop/controllers/plan"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/own"
)

// TestAnAppIsRenderedAgainstAClusterWithoutObjects, and what is wrong with its files is the error.
func TestAnAppIsRenderedAgainstAClusterWithoutObjects(t *testing.T) {
	config, err := plan.Empty()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cluster, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	files := folder.FromFS(fstest.MapFS{
		"apps/good/objects.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n")},
		"apps/bad/objects.yaml":  {Data: []byte("kind: ConfigMap\n")},
	})
	folders := func(app *v1alpha1.App) (*folder.Folder, error) { return files.Folder("apps/" + app.Name), nil }
	local, err := plan.Local(t.Context(), config, cluster, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := newRenderer(local, folders)
	for name, fails := range map[string]bool{"good": false, "bad": true} {
		app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: name, UID: "1"}}
		app.Spec.Type, app.Spec.Raw = v1alpha1.AppRaw, &v1alpha1.RawSource{Path: "."}
		at := project.Place{
			Owner:     own.Owner{Tenant: "acme", Project: "shop", App: name, Namespace: app.Namespace},
			Namespace: &metav1.ObjectMeta{Name: app.Namespace}, Tenant: &v1alpha1.Tenant{},
		}
		if at.Client, err = r.clients.As(app.Namespace); err != nil {
			t.Fatal(err)
		}
		made, err := r.render(t.Context(), app, at)
		if (err != nil) != fails || made.Release != nil {
			t.Errorf("%s: %v, released %v", name, err, made.Release)
		}
		if !fails && (len(made.Objects) != 1 || made.Objects[0].GetName() != "settings") {
			t.Errorf("%s: made are %v", name, made.Objects)
		}
	}
	for _, kind := range []string{inputs.ConfigMap, inputs.Secret} {
		if version, err := r.version(t.Context(), "kubeop-acme-shop", kind, "none"); err != nil || version != "" {
			t.Errorf("the version of a %s that does not exist is %q, %v", kind, version, err)
		}
	}
	if version, err := r.version(t.Context(), "kubeop-acme-shop", "GitRepository", "none"); err == nil {
		t.Errorf("a kind that the cluster does not have has the version %q", version)
	}
}
