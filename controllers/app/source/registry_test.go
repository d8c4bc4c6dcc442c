package source

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// locked is a registry without TLS that wants a password, and keeps its blobs on another server.
type locked struct {
	*sources.OCIServer
	password atomic.Value
	// leaked is what the other server got as credentials.
	leaked atomic.Value
}

func newLocked(t *testing.T) *locked {
	t.Helper()
	l := &locked{OCIServer: sources.ServeOCI(t, httptest.NewServer)}
	l.leaked.Store("")
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if got := req.Header.Get("Authorization") + req.Header.Get("Cookie"); got != "" {
			l.leaked.Store(got)
		}
		_, _ = w.Write(l.Blobs[strings.TrimPrefix(req.URL.Path, "/")])
	}))
	t.Cleanup(storage.Close)
	l.Away, l.Challenge = storage.URL, `Basic realm="registry"`
	l.Allow = func(req *http.Request) bool {
		user, password, _ := req.BasicAuth()
		return user == "robot" && password == l.password.Load()
	}
	l.password.Store("first-password")
	chart := sources.ChartArchive(t, "web", map[string]string{"Chart.yaml": chartYAML})
	l.PushChart(t, "1.2.3", "application/vnd.cncf.helm.chart.content.v1.tar+gzip", chart)
	l.PushArtifact(t, "manifests", "application/vnd.cncf.flux.content.v1.tar+gzip", sources.TarGz(t, sources.Entry{Name: "a.yaml", Text: "1"}))
	return l
}

func (l *locked) host() string { return l.Listener.Addr().String() }

// held is the copy of a Registry's credentials in the App's namespace.
func held(registry, host, password string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: v1alpha1.PullSecretPrefix + registry}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{%q:{"username":"robot","password":%q}}}`, host, password)},
	}
}

// apps are Apps whose sources are in the registry.
func (l *locked) apps() map[string]*v1alpha1.App {
	return map[string]*v1alpha1.App{
		"artifact": appOf("artifact", v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: l.Repository() + "/web", Tag: "manifests"}}}),
		"chart":    appOf("chart", v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Repository: l.Repository(), Chart: "web", Version: "1.x"}}),
		"image":    appOf("image", v1alpha1.AppSpec{Type: v1alpha1.AppImage, Image: &v1alpha1.ImageSource{Reference: l.host() + "/charts/web", Policy: &v1alpha1.ImagePolicy{SemVer: "1.x"}}}),
	}
}

func (l *locked) world(t *testing.T, registries ...v1alpha1.PullSecret) *world {
	t.Helper()
	w := newWorld(t)
	w.pulls = registries
	w.Tags = image.NewStore(w.network(), w.clock.Now, nil, apart.Runner{})
	return w
}

func (w *world) set(secret *corev1.Secret) {
	w.t.Helper()
	err := w.api.Update(w.t.Context(), secret.DeepCopy())
	if err != nil {
		err = w.api.Create(w.t.Context(), secret)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestSourcesAreFetchedWithTheCredentialsOfARegistry, each at once after the password was rotated, and only where it is granted.
func TestSourcesAreFetchedWithTheCredentialsOfARegistry(t *testing.T) {
	l := newLocked(t)
	granted := v1alpha1.PullSecret{Registry: "locked", Host: l.host(), Insecure: true}
	for name, app := range l.apps() {
		t.Run(name, func(t *testing.T) {
			l.password.Store("first-password")
			w := l.world(t, granted)
			look := func(what, want string) {
				t.Helper()
				_, end := w.fetch(app)
				if !strings.Contains(end, want) || strings.Contains(end, "-password") {
					t.Errorf("%s: got %q, want %q", what, end, want)
				}
			}
			look("without the copy", "is gone: kubeop writes it again, and tries again then")
			w.set(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kubeop-registry-locked"}, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{")}})
			look("with a copy of nonsense", "secret ns/kubeop-registry-locked with the credentials of Registry locked for "+l.host()+": ")
			w.set(held("locked", l.host(), "first-password"))
			look("with the copy", "done")
			if got := w.Users("ns", "Secret", "kubeop-registry-locked"); len(got) != 1 {
				t.Errorf("a change of the copy wakes %v", got)
			}
			app := app.DeepCopy()
			app.UID, app.Name, app.Status = "fresh", "fresh", v1alpha1.AppStatus{}
			l.password.Store("second-password")
			w.clock.Step(20 * time.Minute) // A policy uses what it knows within its interval.
			_, end := w.fetch(app)
			if !strings.Contains(end, "AuthenticationFailed: ") || !strings.Contains(end, "the credentials are those of Registry locked: ask an administrator of the cluster to correct its Secret") ||
				!strings.Contains(end, l.host()) || strings.Contains(end, "-password") || strings.Contains(end, "kubectl") {
				t.Errorf("with the old password: %q", end)
			}
			w.set(held("locked", l.host(), "second-password"))
			if _, end := w.fetch(app); end != "done" {
				t.Errorf("after the rotation: %q", end)
			}
			w.pulls = nil
			app.UID, app.Name, app.Status = "ungranted", "ungranted", v1alpha1.AppStatus{}
			switch spec := &app.Spec; {
			case spec.Git != nil:
				spec.Git.OCI.Insecure = true
			case spec.Helm != nil:
				spec.Helm.Insecure = true
			case spec.Image != nil:
				w.Tags = image.NewStore(w.network(), w.clock.Now, []string{l.host()}, apart.Runner{})
			}
			if _, end := w.fetch(app); !strings.Contains(end, "AuthenticationFailed: ") || !strings.Contains(end, "or ask an administrator of the cluster to let the tenant use a Registry of "+l.host()) {
				t.Errorf("without the Registry: %q", end)
			}
		})
	}
	if got := l.leaked.Load(); got != "" {
		t.Errorf("the storage got %q", got)
	}
}

// TestSourcesComeFromTheMirrorOfARegistry, with the credentials of the mirror's own Registry, whose mirror is not asked.
func TestSourcesComeFromTheMirrorOfARegistry(t *testing.T) {
	const down = "127.0.0.1:1"
	l := newLocked(t)
	for name, app := range l.apps() {
		t.Run(name, func(t *testing.T) {
			switch spec := &app.Spec; {
			case spec.Git != nil:
				spec.Git.OCI.URL = strings.ReplaceAll(spec.Git.OCI.URL, l.host(), down)
			case spec.Helm != nil:
				spec.Helm.Repository = strings.ReplaceAll(spec.Helm.Repository, l.host(), down)
			case spec.Image != nil:
				spec.Image.Reference = strings.ReplaceAll(spec.Image.Reference, l.host(), down)
			}
			w := l.world(t, v1alpha1.PullSecret{Registry: "upstream", Host: down, Insecure: true, Mirror: l.host()}, v1alpha1.PullSecret{Registry: "mirror", Host: l.host(), Insecure: true, Mirror: down})
			w.set(held("upstream", down, "of-the-upstream"))
			w.set(held("mirror", l.host(), "first-password"))
			if _, end := w.fetch(app); end != "done" {
				t.Fatal(end)
			}
			if got := w.Users("ns", "Secret", "kubeop-registry-mirror"); len(got) != 1 {
				t.Errorf("a change of the mirror's copy wakes %v", got)
			}
			if err := w.api.Delete(t.Context(), held("mirror", l.host(), "")); err != nil {
				t.Fatal(err)
			}
			fresh := app.DeepCopy()
			fresh.UID, fresh.Name, fresh.Status = "fresh", "fresh", v1alpha1.AppStatus{}
			want := "mirror " + l.host() + " of " + down + ": secret ns/kubeop-registry-mirror with the credentials of Registry mirror for " + l.host() + " is gone"
			if _, end := w.fetch(fresh); !strings.Contains(end, want) {
				t.Errorf("without the mirror's copy: got %q, want %q", end, want)
			}
		})
	}
}

// TestTheRegistryOfAMirrorIsInvolved once, and a change of how a Registry is reached is one of the source.
func TestTheRegistryOfAMirrorIsInvolved(t *testing.T) {
	all := []v1alpha1.PullSecret{{Registry: "a", Host: "a.example", Mirror: "b.example/a"}, {Registry: "b", Host: "b.example"}, {Registry: "c", Host: "c.example", Mirror: "d.example"}}
	for name, c := range map[string]struct {
		helm v1alpha1.HelmSource
		want []string
	}{
		"with a mirror":                    {v1alpha1.HelmSource{Repository: "oci://a.example/x"}, []string{"a", "b"}},
		"without":                          {v1alpha1.HelmSource{Repository: "oci://b.example/x"}, []string{"b"}},
		"with a mirror without a Registry": {v1alpha1.HelmSource{Repository: "oci://c.example/x"}, []string{"c"}},
		"all":                              {v1alpha1.HelmSource{Path: "chart"}, []string{"a", "b", "c"}},
	} {
		p := passOf(appOf("web", v1alpha1.AppSpec{Helm: &c.helm}))
		p.PullSecrets = all
		var got []string
		for _, registry := range p.involved() {
			got = append(got, registry.Registry)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for want, registry := range map[string]v1alpha1.PullSecret{
		"": {}, " insecure": {Insecure: true}, " mirror b.example": {Mirror: "b.example"}, " insecure mirror b.example": {Insecure: true, Mirror: "b.example"},
	} {
		if got := settings(registry); got != want {
			t.Errorf("%+v is reached by %q, want %q", registry, got, want)
		}
	}
}

// TestACopyThatAnAppNamesItselfIsThatOfTheRegistry: only administrators can correct it.
func TestACopyThatAnAppNamesItselfIsThatOfTheRegistry(t *testing.T) {
	p := passOf(appOf("web", v1alpha1.AppSpec{}))
	p.PullSecrets = []v1alpha1.PullSecret{{Registry: "a", Host: "a.example"}, {Registry: "b", Host: "b.example"}}
	for want, ref := range map[string]*v1alpha1.LocalSecretReference{"a": {Name: "kubeop-registry-a"}, "": {Name: "own"}} {
		if got := p.ofRegistry(transport.Auth{}, ref); got.Registry != want {
			t.Errorf("%s is of Registry %q, want %q", ref.Name, got.Registry, want)
		}
	}
	if got := p.ofRegistry(transport.Auth{}, nil); got.Registry != "" {
		t.Errorf("no Secret is of Registry %q", got.Registry)
	}
}

// TestTheAppsOwnSecretComesBeforeTheRegistry.
func TestTheAppsOwnSecretComesBeforeTheRegistry(t *testing.T) {
	l := newLocked(t)
	own := func(password string) *corev1.Secret {
		secret := held("locked", l.host(), password)
		secret.Name = "own"
		return secret
	}
	for name, app := range l.apps() {
		t.Run(name, func(t *testing.T) {
			w := l.world(t, v1alpha1.PullSecret{Registry: "locked", Host: l.host(), Insecure: true})
			w.Tags = image.NewStore(w.network(), w.clock.Now, []string{l.host()}, apart.Runner{})
			w.set(held("locked", l.host(), "first-password"))
			w.set(own("wrong-password"))
			ref := &v1alpha1.LocalSecretReference{Name: "own"}
			switch spec := &app.Spec; {
			case spec.Git != nil:
				spec.Git.OCI.SecretRef, spec.Git.OCI.Insecure = ref, true
			case spec.Helm != nil:
				spec.Helm.SecretRef, spec.Helm.Insecure = ref, true
			case spec.Image != nil:
				spec.Image.PullSecrets = append(spec.Image.PullSecrets, *ref)
			}
			if _, end := w.fetch(app); !strings.Contains(end, "AuthenticationFailed: ") || !strings.Contains(end, "Secret ns/own") {
				t.Errorf("got %q", end)
			}
			w.set(own("first-password"))
			if _, end := w.fetch(app); end != "done" {
				t.Errorf("with the right password: %q", end)
			}
		})
	}
}

// TestCredentialsOfARegistryAreNotSentInTheClear, unless the Registry says so.
func TestCredentialsOfARegistryAreNotSentInTheClear(t *testing.T) {
	l := newLocked(t)
	for name, app := range l.apps() {
		w := l.world(t, v1alpha1.PullSecret{Registry: "locked", Host: l.host()})
		w.Tags = image.NewStore(w.network(), w.clock.Now, []string{l.host()}, apart.Runner{})
		w.set(held("locked", l.host(), "first-password"))
		want := "insecure: the credentials of Registry locked are not sent to " + l.host() + " without TLS: take insecure out of app.yaml in Git"
		switch spec := &app.Spec; {
		case spec.Git != nil:
			spec.Git.OCI.Insecure = true
		case spec.Helm != nil:
			spec.Helm.Insecure = true
		case spec.Image != nil: // Administrators list it in plainRegistries.
			want = "done"
		}
		if _, end := w.fetch(app); !strings.Contains(end, want) {
			t.Errorf("%s: got %q, want %q", name, end, want)
		}
	}
	for name, app := range l.apps() {
		for _, allowed := range []bool{false, true} {
			w := l.world(t, v1alpha1.PullSecret{Registry: "locked", Host: l.host(), Insecure: allowed})
			w.set(held("locked", l.host(), "first-password"))
			app := app.DeepCopy()
			switch spec := &app.Spec; {
			case spec.Git != nil:
				spec.Git.OCI.Insecure = allowed
			case spec.Helm != nil:
				spec.Helm.Insecure = allowed
			}
			if _, end := w.fetch(app); (end == "done") != allowed {
				t.Errorf("%s, without TLS where that is allowed (%t): %s", name, allowed, end)
			}
		}
	}
}

// TestDependenciesOfAChartAreFetchedByRegistries that the project has.
func TestDependenciesOfAChartAreFetchedByRegistries(t *testing.T) {
	l := newLocked(t)
	_, server, _ := pushed(t, map[string]string{"Chart.yaml": strings.ReplaceAll(chartYAML, "web", "app") + fmt.Sprintf("dependencies:\n- {name: web, version: 1.2.3, repository: %q}\n", l.Repository())})
	w := l.world(t, v1alpha1.PullSecret{Registry: "locked", Host: l.host(), Insecure: true}, v1alpha1.PullSecret{Registry: "other", Host: "other.example"})
	app := appOf("chart", v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{URL: server.RepoURL()}}})
	if _, end := w.fetch(app); !strings.Contains(end, "secret ns/kubeop-registry-locked with the credentials of Registry locked for "+l.host()+" is gone") {
		t.Errorf("without the copy: %q", end)
	}
	w.set(held("locked", l.host(), "wrong-password"))
	w.set(held("other", "other.example", "of-the-other"))
	if _, end := w.fetch(app); !strings.Contains(end, "dependency web") || !strings.Contains(end, "the credentials are those of Registry locked") {
		t.Errorf("with a wrong password: %q", end)
	}
	w.set(held("locked", l.host(), "first-password"))
	found, end := w.fetch(app)
	if end != "done" {
		t.Fatalf("with the password: %q", end)
	}
	if text := w.read(found.Chart.Files, "charts/web-1.2.3.tgz"); text == "" {
		t.Error("the dependency is empty")
	}
}

// TestAnAppGetsTheRegistriesOfItsHostsOnly: credentials that it does not need have no part in what is fetched.
func TestAnAppGetsTheRegistriesOfItsHostsOnly(t *testing.T) {
	all := []v1alpha1.PullSecret{{Registry: "a", Host: "a.example"}, {Registry: "hub", Host: "docker.io"}}
	secret := &v1alpha1.LocalSecretReference{Name: "own"}
	policy := &v1alpha1.ImagePolicy{SemVer: "*"}
	for name, c := range map[string]struct {
		spec v1alpha1.AppSpec
		want []string
	}{
		"an artifact":              {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: "oci://A.example/x"}}}, []string{"a"}},
		"with its own Secret":      {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: "oci://a.example/x", SecretRef: secret}}}, nil},
		"at another port":          {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: "oci://a.example:5000/x"}}}, nil},
		"with a user in the URL":   {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: "oci://a.example@b.example/x"}}}, nil},
		"a broken URL":             {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: "oci://a.example:x/x"}}}, nil},
		"a Git repository":         {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{URL: "https://a.example/x"}}, nil},
		"a chart on the Hub":       {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Repository: "oci://registry-1.docker.io/x"}}, []string{"hub"}},
		"of a Helm repository":     {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Repository: "https://a.example/x"}}, nil},
		"a chart with its Secret":  {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Repository: "oci://a.example/x", SecretRef: secret}}, nil},
		"a chart in Git":           {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{SecretRef: secret}}}, []string{"a", "hub"}},
		"an image":                 {v1alpha1.AppSpec{Image: &v1alpha1.ImageSource{Reference: "nginx:1"}}, nil},
		"a policy":                 {v1alpha1.AppSpec{Image: &v1alpha1.ImageSource{Reference: "nginx", Policy: policy}}, []string{"hub"}},
		"a policy of another host": {v1alpha1.AppSpec{Image: &v1alpha1.ImageSource{Reference: "b.example/x", Policy: policy}}, nil},
		"manifests":                {v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{}}, nil},
	} {
		w := newWorld(t)
		w.pulls = all
		s := w.subjects.New(appOf("web", c.spec))
		s.PullSecrets = all
		var got []string
		for _, registry := range (&pass{Subject: s}).registries() {
			got = append(got, registry.Registry)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
