package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/internal/testenv/sources"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// TestASourceIsNotFetchedWhileItsSecretsCannotBeRead: without the credentials, the server would refuse it, and say that it does not exist.
func TestASourceIsNotFetchedWhileItsSecretsCannotBeRead(t *testing.T) {
	secret := &v1alpha1.LocalSecretReference{Name: "credentials"}
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.NotFound(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for name, spec := range map[string]v1alpha1.AppSpec{
		"Git":            {Git: &v1alpha1.GitSource{URL: server.URL + "/web.git", SecretRef: secret}},
		"its signers":    {Git: &v1alpha1.GitSource{URL: server.URL + "/web.git", Verify: &v1alpha1.GitVerification{SecretRef: *secret}}},
		"an artifact":    {Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: "oci://" + host + "/web", Tag: "1", SecretRef: secret, Insecure: true}}},
		"Flux":           {Git: &v1alpha1.GitSource{SourceRef: &v1alpha1.FluxSourceReference{Kind: "GitRepository", Name: "web"}}},
		"a chart":        {Helm: &v1alpha1.HelmSource{Repository: server.URL, Chart: "web", SecretRef: secret}},
		"a chart in Git": {Helm: &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{URL: server.URL + "/web.git", SecretRef: secret}}},
		"an image": {Image: &v1alpha1.ImageSource{
			Reference: host + "/web", Policy: &v1alpha1.ImagePolicy{SemVer: "1.x"}, PullSecrets: []v1alpha1.LocalSecretReference{*secret},
		}},
	} {
		w := newWorld(t)
		w.Inputs.Version = func(context.Context, string, string, string) (string, error) {
			return "", errors.New("the watch is away")
		}
		s := w.subjects.New(appOf("web", spec))
		s.Client, s.Owner.Tenant = w.api, "acme"
		found := &Found{}
		end := steptest.Outcome(t, w.Fetch(t.Context(), s, found))
		if !strings.HasPrefix(end, "failed ") || !strings.HasSuffix(end, "the watch is away") || requests > 0 || found.Files.FS != nil {
			t.Errorf("%s: %s, after %d requests", name, end, requests)
		}
		if want := "secret credentials of spec.image.pullSecrets does not exist: "; name == "an image" {
			if _, end := newWorld(t).fetch(appOf("web", spec)); !strings.Contains(end, want) || requests > 0 {
				t.Errorf("without the Secret: %s, after %d requests", end, requests)
			}
		} else if _, end := newWorld(t).fetch(appOf("web", spec)); name != "Flux" && !strings.Contains(end, "secret ns/credentials of ") || requests > 0 {
			t.Errorf("%s, without the Secret: %s, after %d requests", name, end, requests)
		}
	}
}

// registry has the image web, with the tag 1.0.0, for who logs in as ann.
func registry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case user != "ann" || password != "secret":
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		case path.Base(r.URL.Path) == "list":
			_, _ = fmt.Fprint(w, `{"tags":["1.0.0"]}`)
		default:
			w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
			w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("a", 64))
			w.Header().Set("Content-Length", "2")
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// TestAPolicyListsTagsWithThePullSecrets of the App.
func TestAPolicyListsTagsWithThePullSecrets(t *testing.T) {
	host := registry(t)
	secret := func(config string) client.Object {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(config)},
		}
	}
	for name, c := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"there":      {[]client.Object{secret(`{"auths":{"` + host + `":{"username":"ann","password":"secret"}}}`)}, "done"},
		"wrong":      {[]client.Object{secret(`{"auths":{"` + host + `":{"username":"ann","password":"wrong"}}}`)}, "AuthenticationFailed: "},
		"missing":    {nil, "secret pull of spec.image.pullSecrets does not exist: create it; an owner of the tenant with the role admin, or an administrator of the cluster, may run: kubectl create secret docker-registry pull "},
		"unreadable": {[]client.Object{secret("nonsense")}, "secret pull of spec.image.pullSecrets: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.objects...)
			w.Tags = image.NewStore(w.network(), w.clock.Now, []string{host}, apart.Runner{})
			app := appOf("web", v1alpha1.AppSpec{Image: &v1alpha1.ImageSource{
				Reference: host + "/web", Policy: &v1alpha1.ImagePolicy{SemVer: "1.x"}, PullSecrets: []v1alpha1.LocalSecretReference{{Name: "pull"}},
			}})
			found, end := w.fetch(app)
			if !strings.Contains(end, c.want) || (end == "done") != (found.Image != nil && found.Image.Tag == "1.0.0") {
				t.Errorf("got %q, want %q; the image is %+v", end, c.want, found.Image)
			}
		})
	}
	app := appOf("web", v1alpha1.AppSpec{Image: &v1alpha1.ImageSource{Policy: &v1alpha1.ImagePolicy{}, PullSecrets: []v1alpha1.LocalSecretReference{{Name: "a"}, {Name: "b"}}}})
	var names []string
	for _, ref := range secretRefsOf(&app.Spec) {
		names = append(names, ref.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("the secrets of the source (-want +got):\n%s", diff)
	}
}

// TestALongFetchIsReportedUnlessTheStatusHasMore: that the last fetch failed says more than that another one is under way.
func TestALongFetchIsReportedUnlessTheStatusHasMore(t *testing.T) {
	_, server, _ := pushed(t, map[string]string{"a": "1"})
	hold := make(chan struct{})
	server.Set(func() {
		server.Wrap = func(http.ResponseWriter, *http.Request, http.Handler) bool { <-hold; return false }
	})
	defer close(hold)
	w := newWorld(t)
	app := appOf("web", v1alpha1.AppSpec{Git: &v1alpha1.GitSource{URL: server.RepoURL()}})
	look := func() error {
		s := w.subjects.New(app)
		s.Client, s.Owner.Tenant = w.api, "acme"
		return w.Fetch(t.Context(), s, &Found{})
	}
	if got := steptest.Outcome(t, look()); got != "soon, after 2s" {
		t.Errorf("at first: %s", got)
	}
	w.clock.Step(step.Quiet)
	if got := steptest.Outcome(t, look()); !strings.HasPrefix(got, "waits Progressing: ") {
		t.Errorf("later: %s", got)
	}
	if got := steptest.AfterFailure(t, look()); got != "soon, after 15s" {
		t.Errorf("later, after a failure: %s", got)
	}
}

// TestAFreezePinsARef to the commit of the status; a tag that is verified stays, because its signature is looked up by its name.
func TestAFreezePinsARef(t *testing.T) {
	ref := &sourcev1.GitRepositoryRef{Branch: "main", Tag: "v1"}
	for name, c := range map[string]struct {
		pin     string
		ref     *sourcev1.GitRepositoryRef
		withTag bool
		want    *sourcev1.GitRepositoryRef
	}{
		"a branch":         {"main@sha1:c0ffee", ref, false, &sourcev1.GitRepositoryRef{Branch: "main", Commit: "c0ffee"}},
		"the default":      {"main@sha1:c0ffee", nil, false, &sourcev1.GitRepositoryRef{Commit: "c0ffee"}},
		"a verified tag":   {"v1@sha1:c0ffee", ref, true, ref},
		"no freeze":        {"", ref, false, ref},
		"no commit":        {"1.0@sha256:aa", ref, false, ref},
		"no commit, a tag": {"1.0@sha256:aa", ref, true, ref},
	} {
		p := &pass{pin: c.pin}
		if diff := cmp.Diff(c.want, p.pinned(c.ref, c.withTag)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAFreezeKeepsAnAppOfATag at the commit that the tag named, and at its revision.
func TestAFreezeKeepsAnAppOfATag(t *testing.T) {
	repo, server, _ := pushed(t, map[string]string{"a.yaml": "1"})
	repo.Git("tag", "v1")
	repo.Git("push", "--quiet", "origin", "v1")
	w := newWorld(t)
	w.freeze = night
	app := appOf("web", v1alpha1.AppSpec{Git: &v1alpha1.GitSource{URL: server.RepoURL(), Ref: &sourcev1.GitRepositoryRef{Tag: "v1"}}})
	found, end := w.build(app)
	first := found.Revision
	if end != "done" || !strings.HasPrefix(first, "v1@sha1:") {
		t.Fatalf("%s; the revision is %s", end, first)
	}
	repo.Write("a.yaml", "2")
	repo.Push("second")
	repo.Git("tag", "--force", "v1")
	repo.Git("push", "--quiet", "--force", "origin", "v1")
	w.clock.Step(20 * time.Minute)
	w.wantPinned(app, first, first[:len("v1@sha1:")+8])
	w.reads.Clear()
	if found, end := w.fetch(app); end != "done" || found.Kept || found.Files.Revision != first {
		t.Errorf("while it is not known which files it reads: %s, kept %t, at %s", end, found.Kept, found.Files.Revision)
	}
	p := passOf(app)
	p.Client, p.pin = w.api, first
	for { // A tag that is verified is not pinned, so it may name another commit.
		commit, err := w.commit(t.Context(), p, git.Source{URL: server.RepoURL(), Ref: app.Spec.Git.Ref, WithTag: true}, nil)
		if err == nil {
			if commit.Revision == first {
				t.Errorf("the tag that was moved names %s", commit.Revision)
			}
			return
		}
		if !errors.As(err, new(*cache.Unanswered)) {
			t.Fatal(err)
		}
		<-w.queue.woken
	}
}

// TestAFreezePinsAnArtifact to the digest in its revision.
func TestAFreezePinsAnArtifact(t *testing.T) {
	for pin, want := range map[string]string{"1.0@sha256:aa": "sha256:aa", "sha256:aa": "sha256:aa", "main@sha1:aa": "", "": ""} {
		if got := (&pass{pin: pin}).pinnedDigest(); got != want {
			t.Errorf("%q: got %q, want %q", pin, got, want)
		}
	}
}

// TestAFreezeKeepsAnAppOfFluxWithoutItsFiles: only the newest artifact can be fetched, so only the health is checked.
func TestAFreezeKeepsAnAppOfFluxWithoutItsFiles(t *testing.T) {
	archive := sources.TarGz(t, sources.Entry{Name: "a.yaml", Text: "1"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }))
	defer server.Close()
	made := map[string]any{
		"url": server.URL + "/gitrepository/ns/web/a.tar.gz", "revision": "main@sha1:1", "digest": sources.DigestOf(archive), "path": "p", "lastUpdateTime": "2026-01-01T00:00:00Z",
	}
	source := fluxSource(map[string]any{"artifact": made})
	w := newWorld(t, source)
	w.freeze = night
	app := appOf("web", v1alpha1.AppSpec{Git: &v1alpha1.GitSource{SourceRef: &v1alpha1.FluxSourceReference{Kind: "GitRepository", Name: "web"}}})
	if found, end := w.fetch(app); end != "done" || found.Kept || found.Revision != "main@sha1:1" {
		t.Fatalf("%s, kept %t; the revision is %s", end, found.Kept, found.Revision)
	}
	w.clock.Step(20 * time.Minute)
	if found, end := w.fetch(app); end != "done" || found.Kept || found.Revision != "main@sha1:1" {
		t.Errorf("the same artifact: %s, kept %t; the revision is %s", end, found.Kept, found.Revision)
	}
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(source), source); err != nil {
		t.Fatal(err)
	}
	archive = sources.TarGz(t, sources.Entry{Name: "a.yaml", Text: "2"})
	made["revision"], made["digest"] = "main@sha1:2", sources.DigestOf(archive)
	source.Object["status"] = map[string]any{"artifact": made}
	if err := w.api.Update(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	if found, end := w.fetch(app); end != "done" || !found.Kept || found.Files.FS != nil || app.Status.LastAttemptedRevision != "main@sha1:1" {
		t.Errorf("a new artifact: %s, kept %t; the status has the revision %s", end, found.Kept, app.Status.LastAttemptedRevision)
	}
}

// TestANewCommitOfOtherFilesIsNoNewRevision also if it is not known before the build which files the App uses, as after a restart.
func TestANewCommitOfOtherFilesIsNoNewRevision(t *testing.T) {
	repo, server, first := pushed(t, map[string]string{"a.yaml": "1", "other": "1"})
	w := newWorld(t)
	app := appOf("web", v1alpha1.AppSpec{Git: &v1alpha1.GitSource{URL: server.RepoURL()}})
	if found, end := w.build(app); end != "done" || found.Revision != first {
		t.Fatalf("%s; the revision is %s", end, found.Revision)
	}
	repo.Write("other", "2")
	repo.Push("of others")
	w.restart()
	w.reads.Clear()
	found, _ := w.fetch(app)
	if found.Revision != "" {
		t.Errorf("before the build the revision is %q", found.Revision)
	}
	_ = w.read(found.Files.FS, "a.yaml")
	if w.Built(w.subjects.New(app), found, ""); found.Revision != first {
		t.Errorf("after the build the revision is %s, want %s", found.Revision, first)
	}
}

// TestNothingIsKnownOfTheSourceOfADeletedApp, and the image that it wanted in Git is dropped.
func TestNothingIsKnownOfTheSourceOfADeletedApp(t *testing.T) {
	b := newFixture(t)
	writer := b.writes(b.app.Spec.Image.Reference)
	b.queries.Get(b.app).source = "git"
	b.reads.Store(client.ObjectKeyFromObject(b.app), nil)
	b.Forget(b.app)
	if source := b.queries.Get(b.app).source; source != "" || writer.dropped != 1 {
		t.Errorf("the source %q is known; dropped %d times", source, writer.dropped)
	}
	if _, reads := b.reads.Load(client.ObjectKeyFromObject(b.app)); reads {
		t.Error("its reads are known")
	}
	b.Images = nil
	b.Forget(b.app) // Without a writer there is nothing to drop.
}
