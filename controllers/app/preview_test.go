package app

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/project"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// folderOf returns a folder of a Git commit with these files.
func folderOf(t *testing.T, files map[string]string) *folder.Folder {
	t.Helper()
	repo := sources.NewGitRepo(t)
	for path, text := range files {
		repo.Write(path, text)
	}
	repo.Push("files")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store := git.NewStore(t.TempDir(), &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	commit, err := store.Fetch(t.Context(), git.Source{URL: server.RepoURL()})
	if err != nil {
		t.Fatal(err)
	}
	return commit.Root
}

// TestFilesOfTheAppsFolderAreDelivered: manifests of a Raw App, and the files that the pods of an Image App mount.
func TestFilesOfTheAppsFolderAreDelivered(t *testing.T) {
	own := folderOf(t, map[string]string{"manifests/a.yaml": strings.Replace(settings, "%", "red", 1), "config/app.ini": "color=red\n"})
	for name, c := range map[string]struct {
		app  func(*v1alpha1.App)
		want []string
	}{
		"Raw": {func(app *v1alpha1.App) {
			app.Spec.Type, app.Spec.Raw = v1alpha1.AppRaw, &v1alpha1.RawSource{Path: "manifests"}
		}, []string{"ConfigMap/settings red"}},
		"Image": {func(app *v1alpha1.App) {
			app.Spec.Type = v1alpha1.AppImage
			app.Spec.Image = &v1alpha1.ImageSource{Reference: "registry.example.com/web:1", ConfigFiles: []v1alpha1.ImageFiles{{Path: "config", MountPath: "/etc/web"}}}
		}, []string{"ConfigMap", "Deployment"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuildFixture(t, webApp(c.app))
			b.s.found.Folder = own
			if got := b.render(); got != "done" {
				t.Fatal(got)
			}
			var got []string
			if name == "Raw" {
				got = b.rendered()
			} else {
				got = kindsOf(b.s.objects)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func kindsOf(objects []*unstructured.Unstructured) (kinds []string) {
	for _, o := range objects {
		kinds = append(kinds, o.GetKind())
	}
	return kinds
}

// TestTheValuesOfAChartAreMergedInTheOrderOfTheirSources: ConfigMaps, the App's folder, and the App itself. Only a missing object may come later without a change.
func TestTheValuesOfAChartAreMergedInTheOrderOfTheirSources(t *testing.T) {
	given := configMap("given")
	given.Data = map[string]string{"values.yaml": "color: red\nsize: 1\n"}
	own := folderOf(t, map[string]string{"values.yaml": "color: blue\n"})
	for name, c := range map[string]struct {
		helm   v1alpha1.HelmSource
		folder *folder.Folder
		want   string
		values map[string]any
	}{
		"none":                  {want: "done", values: map[string]any{}},
		"of a ConfigMap":        {helm: v1alpha1.HelmSource{ValuesFrom: []v1alpha1.ValuesReference{{Kind: inputs.ConfigMap, Name: "given"}}}, want: "done", values: map[string]any{"color": "red", "size": float64(1)}},
		"of the App's folder":   {helm: v1alpha1.HelmSource{ValuesFiles: []string{"values.yaml"}}, folder: own, want: "done", values: map[string]any{"color": "blue"}},
		"of the App":            {helm: v1alpha1.HelmSource{Values: &apiextensionsv1.JSON{Raw: []byte(`{"color":"green"}`)}}, want: "done", values: map[string]any{"color": "green"}},
		"of a missing object":   {helm: v1alpha1.HelmSource{ValuesFrom: []v1alpha1.ValuesReference{{Kind: inputs.ConfigMap, Name: "none"}}}, want: "failed ValuesFailed: "},
		"of a missing key":      {helm: v1alpha1.HelmSource{ValuesFrom: []v1alpha1.ValuesReference{{Kind: inputs.ConfigMap, Name: "given", ValuesKey: "none"}}}, want: "failed ValuesFailed: "},
		"of a missing file":     {helm: v1alpha1.HelmSource{ValuesFiles: []string{"none.yaml"}}, folder: own, want: "stopped ValuesFailed: "},
		"that are not readable": {helm: v1alpha1.HelmSource{Values: &apiextensionsv1.JSON{Raw: []byte(`[1]`)}}, want: "stopped ValuesFailed: "},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuildFixture(t, webApp(func(app *v1alpha1.App) { app.Spec.Type, app.Spec.Helm = v1alpha1.AppHelm, &c.helm }), given)
			b.s.found.Folder = c.folder
			if got := b.ended(b.renderer.render(t.Context(), b.s)); !endsAs(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if diff := cmp.Diff(c.values, b.s.values); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAPreviewSaysWhatAnAppWouldDeliver, and writes nothing.
func TestAPreviewSaysWhatAnAppWouldDeliver(t *testing.T) {
	place := func(b *fixture) project.Place {
		return project.Place{Owner: own.Owner{Tenant: "acme", Project: "shop", App: "web", Namespace: shop}, Tenant: &v1alpha1.Tenant{}, Namespace: shopNamespace(), Client: b.api}
	}
	b := newReconcileFixture(t, rawApp("one"), nil)
	made, err := b.Preview(t.Context(), b.app, place(b))
	if err != nil || made.Release != nil || made.Revision != "main@sha1:1" || len(made.Objects) != 1 || made.Objects[0].GetLabels()[v1alpha1.AppLabel] != "web" {
		t.Errorf("the preview is %+v, %v", made, err)
	}
	if b.has("ConfigMap", "one") {
		t.Error("the preview writes the object")
	}
	pod := objectOf("v1", "Pod", "a")
	pod.Object["spec"] = map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a"}}}
	text, err := pod.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	b.app.Spec.Raw.Manifests[0].Raw = text
	b.app.Generation++
	if made, err := b.Preview(t.Context(), b.app, place(b)); err != nil || made.Objects[0].Object["spec"].(map[string]any)["securityContext"] == nil {
		t.Errorf("a pod is not completed for its level: %v", err)
	}
	b.app.Spec.Raw.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`)
	b.app.Generation++
	if made, err := b.Preview(t.Context(), b.app, place(b)); err == nil || made == nil || made.Objects != nil || made.Subject == nil {
		t.Errorf("a forbidden object: %+v, %v", made, err)
	}

	chart := folderOf(t, map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n"})
	b = newReconcileFixture(t, webApp(func(app *v1alpha1.App) {
		app.Spec.Type, app.Spec.Helm = v1alpha1.AppHelm, &v1alpha1.HelmSource{Path: "chart"}
		app.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:1"}
	}), nil)
	b.sources.Folder = func(context.Context, *v1alpha1.App) (*folder.Folder, error) { return chart, nil }
	made, err = b.Preview(t.Context(), b.app, place(b))
	if err != nil || made.Release == nil || made.Release.Name != "web" || made.Release.Input.Chart.Digest == "" || made.Revision != "main@sha1:1" {
		t.Errorf("the preview of a release is %+v, %v", made, err)
	}
	b.sources.Folder = func(context.Context, *v1alpha1.App) (*folder.Folder, error) { return nil, errors.New("away") }
	if _, err := b.Preview(t.Context(), b.app, place(b)); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("the folder is away: %v", err)
	}
}

// TestKeysThatCannotBeReadAreTriedAgain.
func TestKeysThatCannotBeReadAreTriedAgain(t *testing.T) {
	b := newBuildFixture(t, gitApp(func(g *v1alpha1.GitSource) {
		g.Decryption = &v1alpha1.Decryption{Provider: "sops", SecretRef: v1alpha1.LocalSecretReference{Name: "sops"}}
	}), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "sops"}})
	b.renderer.inputs.Version = func(context.Context, string, string, string) (string, error) { return "", errors.New("away") }
	b.inGit("main@sha1:1", "b")
	if got := b.render(); !strings.HasPrefix(got, "failed ValuesFailed: decryption.secretRef: ") || len(b.built) > 0 {
		t.Errorf("got %q, built %v", got, b.built)
	}
}
