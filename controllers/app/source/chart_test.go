package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

const chartYAML = "apiVersion: v2\nname: web\nversion: 1.2.3\n"

// TestAChartInGitIsRead with its files and their revision; a commit that changes other files is no new revision.
func TestAChartInGitIsRead(t *testing.T) {
	repo, server, first := pushed(t, map[string]string{"chart/Chart.yaml": chartYAML, "chart/values.yaml": "a: 1", "other": "1"})
	w := newWorld(t)
	app := appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{URL: server.RepoURL(), Path: "chart"}}})
	look := func(what, revision string) *Found {
		t.Helper()
		found, end := w.fetch(app)
		if end != "done" || found.Revision != revision || found.Files.Digest == "" {
			t.Fatalf("%s: %s; the revision is %s with digest %q, want %s", what, end, found.Revision, found.Files.Digest, revision)
		}
		return found
	}
	before := look("the first commit", first)
	if text := w.read(before.Chart.Files, "values.yaml"); text != "a: 1" || before.Chart.Digest == "" {
		t.Errorf("the chart has %q and digest %q", text, before.Chart.Digest)
	}
	repo.Git("tag", "v1")
	repo.Write("other", "2")
	repo.Push("of others")
	repo.PushAll()
	w.clock.Step(20 * time.Minute)
	look("other files", first)
	repo.Write("chart/values.yaml", "a: 2")
	second := "main@sha1:" + repo.Push("of the chart")
	w.clock.Step(20 * time.Minute)
	if after := look("its files", second); after.Chart.Digest == before.Chart.Digest {
		t.Error("another chart has the same digest")
	}
	tagged := appOf("tagged", *app.Spec.DeepCopy())
	tagged.Spec.Helm.Git.Ref = &sourcev1.GitRepositoryRef{Tag: "v1"}
	if found, end := w.fetch(tagged); end != "done" || w.read(found.Chart.Files, "values.yaml") != "a: 1" {
		t.Errorf("a tag: %s, or it is the chart of the branch", end)
	}
	for name, change := range map[string]struct {
		change func(*v1alpha1.ChartGitSource)
		want   string
	}{
		"no repository": {func(g *v1alpha1.ChartGitSource) { g.URL = server.URL + "/none.git" }, "stopped SourceNotFound: "},
		"no chart":      {func(g *v1alpha1.ChartGitSource) { g.Path = "" }, "stopped SourceNotFound: reading the chart's dependencies: there is no chart in .: "},
	} {
		broken := appOf("broken", *app.Spec.DeepCopy())
		change.change(broken.Spec.Helm.Git)
		if found, end := w.fetch(broken); !strings.HasPrefix(end, change.want) || found.Chart.Files != nil {
			t.Errorf("%s: got %q, want %q", name, end, change.want)
		}
	}
	for path, want := range map[string]string{"": ".", "a/b": "a/b"} {
		if got := chartPath(&v1alpha1.ChartGitSource{Path: path}); got != want {
			t.Errorf("the path %q is %q, want %q", path, got, want)
		}
	}
}

// TestTheDependenciesOfAChartInGitAreFetchedOnce, and again if they are no longer on the disk or the chart needs others.
func TestTheDependenciesOfAChartInGitAreFetchedOnce(t *testing.T) {
	helm := sources.ServeHelm(t)
	helm.Publish(t, "1.0.0", "2.0.0")
	needs := func(version string) string {
		return chartYAML + fmt.Sprintf("dependencies:\n- {name: web, version: %q, repository: %q}\n", version, helm.URL+"/stable")
	}
	repo, server, _ := pushed(t, map[string]string{"Chart.yaml": needs("1.0.0")})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "git"}, Data: map[string][]byte{"username": []byte("u"), "password": []byte("p")}}
	w := newWorld(t, secret)
	app := appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{URL: server.RepoURL(), SecretRef: &v1alpha1.LocalSecretReference{Name: "git"}}}})
	look := func(what string, asked bool, archive string) {
		t.Helper()
		helm.Requests()
		found, end := w.fetch(app)
		if end != "done" || found.stale.retry != 0 {
			t.Fatalf("%s: %s, tried again after %s", what, end, found.stale.retry)
		}
		if got := helm.Requests(); (got != "") != asked {
			t.Errorf("%s: the repository was asked for %q", what, got)
		}
		if names, err := fs.Glob(found.Chart.Files, "charts/*"); err != nil || len(names) != 1 || !strings.Contains(names[0], archive) {
			t.Errorf("%s: the chart has %v, want %s, %v", what, names, archive, err)
		}
	}
	look("the first time", true, "1.0.0")
	look("again", false, "1.0.0")
	if err := os.RemoveAll(filepath.Join(w.dir, "charts")); err != nil {
		t.Fatal(err)
	}
	look("without the archive", true, "1.0.0")
	repo.Write("Chart.yaml", needs("2.0.0"))
	repo.Push("another dependency")
	w.clock.Step(20 * time.Minute)
	look("another dependency", true, "2.0.0")
	repo.Write("Chart.yaml", needs("9.0.0"))
	repo.Push("a dependency that is not there")
	w.clock.Step(20 * time.Minute)
	if found, end := w.fetch(app); !strings.HasPrefix(end, "stopped SourceNotFound: ") || found.Chart.Files != nil || found.stale.retry <= 0 {
		t.Errorf("a dependency that is not there: %s, tried again after %s", end, found.stale.retry)
	}
}

// TestAChartOfARepositoryIsFetchedOnce, and again if it is no longer on the disk.
func TestAChartOfARepositoryIsFetchedOnce(t *testing.T) {
	helm := sources.ServeHelm(t)
	digests := helm.Publish(t, "1.0.0", "2.0.0")
	w := newWorld(t)
	app := appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Repository: helm.URL + "/stable", Chart: "web", Version: "1.x"}})
	look := func(what string, asked bool) {
		t.Helper()
		helm.Requests()
		found, end := w.fetch(app)
		if end != "done" || found.Revision != "1.0.0" || found.Chart.Digest != digests["1.0.0"] {
			t.Fatalf("%s: %s; the chart is %+v of version %s", what, end, found.Chart, found.Revision)
		}
		if _, err := os.Stat(found.Chart.Archive); err != nil || (helm.Requests() != "") != asked {
			t.Errorf("%s: %v", what, err)
		}
	}
	look("the first time", true)
	look("again", false)
	if err := os.RemoveAll(filepath.Join(w.dir, "charts")); err != nil {
		t.Fatal(err)
	}
	look("without the archive", true)
	w.Forget(app)
	look("a forgotten App", true)
	app.Spec.Helm.Version, app.Generation = "9.x", 2
	if found, end := w.fetch(app); !strings.HasPrefix(end, "stopped SourceNotFound: ") || found.Revision != "" {
		t.Errorf("a version that is not there: %s", end)
	}
	app.Spec.Helm.Version, app.Spec.Helm.Digest, app.Generation = "1.x", digests["2.0.0"], 3
	if found, end := w.fetch(app); !strings.HasPrefix(end, "stopped ") || found.Revision != "" {
		t.Errorf("another digest than the spec says: %s", end)
	}
}

// TestAChartInTheAppsFolderHasItsDeclaredRevision.
func TestAChartInTheAppsFolderHasItsDeclaredRevision(t *testing.T) {
	_, server, _ := pushed(t, map[string]string{"app/chart/Chart.yaml": chartYAML, "app/manifests/a.yaml": "1"})
	w := newWorld(t)
	commit, err := w.Git.Fetch(t.Context(), git.Source{URL: server.RepoURL()})
	if err != nil {
		t.Fatal(err)
	}
	own, err := commit.Root.Sub("app")
	if err != nil {
		t.Fatal(err)
	}
	w.Folder = func(context.Context, *v1alpha1.App) (*folder.Folder, error) { return own, nil }
	for name, c := range map[string]struct {
		spec v1alpha1.AppSpec
		uses bool
	}{
		"a chart":               {v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Path: "chart"}}, true},
		"manifests":             {v1alpha1.AppSpec{Type: v1alpha1.AppRaw, Raw: &v1alpha1.RawSource{Path: "manifests"}}, true},
		"manifests in the spec": {v1alpha1.AppSpec{Type: v1alpha1.AppRaw, Raw: &v1alpha1.RawSource{}}, false},
		"an image":              {v1alpha1.AppSpec{Type: v1alpha1.AppImage, Image: &v1alpha1.ImageSource{Reference: "nginx"}}, false},
	} {
		app := appOf("web", c.spec)
		app.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:9"}
		found, end := w.fetch(app)
		if end != "done" || found.Revision != "main@sha1:9" || (found.Folder == own) != c.uses {
			t.Errorf("%s: %s; the revision is %s, the folder used: %t", name, end, found.Revision, found.Folder == own)
		}
		if isChart := found.Chart.Files != nil; isChart != (name == "a chart") {
			t.Errorf("%s: there is a chart: %t", name, isChart)
		}
	}
	w.Folder = func(context.Context, *v1alpha1.App) (*folder.Folder, error) { return nil, errors.New("away") }
	if _, end := w.fetch(appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppRaw, Raw: &v1alpha1.RawSource{Path: "manifests"}})); end != "failed FetchFailed: away" {
		t.Errorf("the folder cannot be read: %s", end)
	}
}

// TestTheCredentialsOfAChartInGitAreForItsDependencies; a chart in the App's own folder has none.
func TestTheCredentialsOfAChartInGitAreForItsDependencies(t *testing.T) {
	w := newWorld(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "git"}, Data: map[string][]byte{"username": []byte("u"), "password": []byte("p")}})
	for name, c := range map[string]struct {
		helm v1alpha1.HelmSource
		want string
	}{
		"in Git":        {v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{SecretRef: &v1alpha1.LocalSecretReference{Name: "git"}}}, "u"},
		"in its folder": {v1alpha1.HelmSource{Path: "chart"}, ""},
	} {
		s := w.subjects.New(appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &c.helm}))
		s.Client = w.api
		auth, err := w.chartAuth(t.Context(), &pass{Subject: s})
		if err != nil || auth.Username != c.want {
			t.Errorf("%s: the user is %q, want %q, %v", name, auth.Username, c.want, err)
		}
	}
}
