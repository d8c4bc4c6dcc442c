package source

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/app/wake"
	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/chart"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
	"github.com/kubeop/kubeop/internal/testenv/watchtest"
)

var fluxKind = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}

// world is a Fetcher between real servers and a fake API server.
type world struct {
	*Fetcher
	t          *testing.T
	api        client.WithWatch
	subjects   *subject.Subjects
	clock      *clocktesting.FakeClock
	queue      *queued
	dir        string
	freeze     []v1alpha1.FreezeWindow
	guardrails *v1alpha1.GuardrailsSpec
	pulls      []v1alpha1.PullSecret
}

// queued collects the Apps that are added to the work queue.
type queued struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	mu    sync.Mutex
	names []string
	woken chan string
}

func (q *queued) Add(r reconcile.Request) {
	q.mu.Lock()
	q.names = append(q.names, r.Name)
	q.mu.Unlock()
	q.woken <- r.Name
}

func (q *queued) AddAfter(r reconcile.Request, _ time.Duration) { q.Add(r) }

// taken returns the collected names, without those of an App itself.
func (q *queued) taken(except string) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.woken) > 0 {
		<-q.woken
	}
	var others []string
	for _, name := range q.names {
		if name != except {
			others = append(others, name)
		}
	}
	q.names = nil
	return others
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := schemeOf(t)
	scheme.AddKnownTypeWithName(fluxKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(fluxKind.GroupVersion().WithKind("GitRepositoryList"), &unstructured.UnstructuredList{})
	w := &world{t: t, clock: clocktesting.NewFakeClock(time.Unix(1e9, 0)), queue: &queued{woken: make(chan string, 100)}, dir: lastingDir(t)}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithRESTMapper(watchtest.Mapper(scheme, "")).Build()
	w.subjects = &subject.Subjects{Clock: w.clock}
	network := w.network()
	w.Fetcher = &Fetcher{
		Client: w.api, Inputs: &inputs.Reader{Version: w.version}, Queue: &wake.Queue{Clock: w.clock}, Git: git.NewStore(filepath.Join(w.dir, "git"), network),
		Charts:  chart.NewStore(filepath.Join(w.dir, "charts"), network),
		Answers: NewAnswers(pool.New(pool.Options{Reach: pool.ReachOf}, w.clock), w.clock),
	}
	w.sweepArtifacts()
	w.Queue.Start(w.queue)
	w.Start()
	return w
}

// lastingDir is a temporary folder like that of t.TempDir, which fails when a fetch that still runs writes into it while it is removed.
func lastingDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubeop-sources-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 100 {
			if os.RemoveAll(dir) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("%s cannot be removed", dir)
	})
	return dir
}

func (w *world) network() *transport.Network {
	return &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

// sweepArtifacts removes all artifacts from the disk.
func (w *world) sweepArtifacts() {
	w.t.Helper()
	dir := filepath.Join(w.dir, "artifacts")
	if err := os.RemoveAll(dir); err != nil {
		w.t.Fatal(err)
	}
	w.Artifacts = artifact.NewStore(dir, w.network(), "127.0.0.1")
}

// version is the version of an object as a watch shows it.
func (w *world) version(ctx context.Context, namespace, kind, name string) (string, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	if kind == fluxKind.Kind {
		o.SetGroupVersionKind(fluxKind)
	}
	err := w.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	return o.GetResourceVersion(), client.IgnoreNotFound(err)
}

// appOf is an App that is reconciled every ten minutes.
func appOf(name string, spec v1alpha1.AppSpec) *v1alpha1.App {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Generation: 1}, Spec: spec}
	app.Spec.Interval.Duration = 10 * time.Minute
	return app
}

// fetch takes the step until its source has answered.
func (w *world) fetch(app *v1alpha1.App) (*Found, string) {
	w.t.Helper()
	for {
		s := w.subjects.New(app)
		s.Client, s.Owner.Tenant, s.Freeze, s.Guardrails, s.PullSecrets = w.api, "acme", w.freeze, w.guardrails, w.pulls
		found := &Found{}
		err := w.Fetch(w.t.Context(), s, found)
		if err == nil || err.Error() != "under way" {
			found.Record(app)
			app.Status.ObservedGeneration = app.Generation
			return found, steptest.Outcome(w.t, err)
		}
		for name := ""; name != app.Name; {
			select {
			case name = <-w.queue.woken:
			case <-time.After(30 * time.Second):
				w.t.Fatal("the source did not answer")
			}
		}
	}
}

func (w *world) read(from fs.FS, name string) string {
	w.t.Helper()
	text, err := fs.ReadFile(from, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// pushed serves a repository with these files.
func pushed(t *testing.T, files map[string]string) (*sources.GitRepo, *sources.GitServer, string) {
	t.Helper()
	repo := sources.NewGitRepo(t)
	for name, text := range files {
		repo.Write(name, text)
	}
	return repo, sources.ServeGit(t, repo, httptest.NewServer), "main@sha1:" + repo.Push("first")
}

// TestAGitAppFollowsTheFilesThatItReads: a commit that changes other files is no new revision.
func TestAGitAppFollowsTheFilesThatItReads(t *testing.T) {
	repo, server, first := pushed(t, map[string]string{"web/a.yaml": "1", "web/b.md": "1", "other": "1"})
	w := newWorld(t)
	app := appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: server.RepoURL(), Path: "web", Ignore: "*.md"}})
	build := func(what, revision string) {
		t.Helper()
		found, end := w.fetch(app)
		if end != "done" || !found.Files.FromCommit() || found.Files.Author != "t" {
			t.Fatalf("%s: %s, author %q", what, end, found.Files.Author)
		}
		_ = w.read(found.Files.FS, "web/a.yaml")
		if _, err := fs.Stat(found.Files.FS, "web/b.md"); !errors.Is(err, fs.ErrNotExist) || err.Error() != "stat web/b.md: no such file or folder" {
			t.Errorf("%s: an ignored file is there: %v", what, err)
		}
		w.Built(w.subjects.New(app), found, "")
		found.Record(app)
		if found.Revision != revision {
			t.Errorf("%s: the revision is %s, want %s", what, found.Revision, revision)
		}
	}
	build("the first commit", first)
	repo.Write("other", "2")
	repo.Push("of others")
	build("within the interval", first)
	w.clock.Step(20 * time.Minute)
	build("of other files", first)
	repo.Write("web/a.yaml", "2")
	second := "main@sha1:" + repo.Push("of the app")
	w.clock.Step(20 * time.Minute)
	build("of the app's files", second)
}

// TestACommitWakesTheAppsWhoseFilesItChanges.
func TestACommitWakesTheAppsWhoseFilesItChanges(t *testing.T) {
	repo, server, _ := pushed(t, map[string]string{"a/x": "1", "b/x": "1", "c/x": "1"})
	w := newWorld(t)
	app := func(name string) *v1alpha1.App {
		return appOf(name, v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: server.RepoURL(), Path: name}})
	}
	a, b, c := app("a"), app("b"), app("c")
	build := func(app *v1alpha1.App) {
		t.Helper()
		found, end := w.fetch(app)
		if end != "done" {
			t.Fatal(end)
		}
		_ = w.read(found.Files.FS, app.Name+"/x")
		w.Built(w.subjects.New(app), found, "")
		found.Record(app)
	}
	build(a)
	build(b)
	if _, end := w.fetch(c); end != "done" { // The build of c does not end, so its files are unknown.
		t.Fatal(end)
	}
	w.queue.taken("")
	for name, change := range map[string]struct {
		file string
		want []string
	}{"a file of b": {"b/x", []string{"b", "c"}}, "no file": {"", nil}, "a file of no app": {"d", []string{"c"}}} {
		if change.file != "" {
			repo.Write(change.file, name)
			repo.Push(name)
		}
		w.clock.Step(20 * time.Minute)
		build(a)
		if diff := cmp.Diff(change.want, slices.Compact(slices.Sorted(slices.Values(w.queue.taken("a"))))); diff != "" {
			t.Errorf("%s changed; woken are (-want +got):\n%s", name, diff)
		}
		build(b) // It sees the commit, and reads its files again.
		w.queue.taken("")
	}
	w.Forget(b)
	if got := w.sharing(w.queries.Get(a).source); len(got) != 2 {
		t.Errorf("the Apps %v share the source after one was deleted", got)
	}
}

// TestANotedBuildIsRecognizedInTheNextCommit, also by another process, if the commit changes none of its files.
func TestANotedBuildIsRecognizedInTheNextCommit(t *testing.T) {
	repo, server, _ := pushed(t, map[string]string{"a": "1", "b": "1"})
	w := newWorld(t)
	app := appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: server.RepoURL()}})
	found, _ := w.fetch(app)
	_ = w.read(found.Files.FS, "a")
	noted, err := found.Files.Noted()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file string
		same bool
	}{{"b", true}, {"a", false}} {
		repo.Write(c.file, "2")
		repo.Push("change")
		w.clock.Step(20 * time.Minute)
		next, _ := w.fetch(app)
		if _, known := w.reads.Load(w.subjects.New(app).Key()); known {
			t.Errorf("%s changed: while a build is under way, what it reads is known", c.file)
		}
		if got := next.Files.ReadsAs(noted); got != c.same || next.Files.ReadsAs("nonsense") {
			t.Errorf("%s changed: the same files: %t, want %t", c.file, got, c.same)
		}
		w.Built(w.subjects.New(app), next, noted)
		if known, _ := w.reads.Load(w.subjects.New(app).Key()); len(known.(folder.Reads)) == 0 {
			t.Errorf("%s changed: the reads of the earlier build are lost", c.file)
		}
	}
	next, _ := w.fetch(app)
	next.Revision, next.Files.Revision = "", "main@sha1:now"
	if w.Built(w.subjects.New(app), next, "nonsense"); next.Revision != "main@sha1:now" {
		t.Errorf("without the reads of a build the revision is %q, want the commit", next.Revision)
	}
	artifact := &Found{Revision: "1"}
	if w.Built(w.subjects.New(app), artifact, ""); artifact.Revision != "1" || artifact.Files.FromCommit() {
		t.Errorf("an artifact has the revision %s", artifact.Revision)
	}
}

// TestTheKeysOfASignedSourceAreRead from a Secret of the App's namespace.
func TestTheKeysOfASignedSourceAreRead(t *testing.T) {
	_, server, _ := pushed(t, map[string]string{"a": "1"})
	keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "keys"}, Data: map[string][]byte{"ann.pub": []byte("no key")}}
	signer, _ := sources.NewSSHKey(t)
	valid := keys.DeepCopy()
	valid.Data["ann.pub"] = ssh.MarshalAuthorizedKey(signer.PublicKey())
	for name, c := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"there is none": {nil, "failed FetchFailed: secret ns/keys of verify.secretRef does not exist: create it; an administrator of the cluster may run: kubectl create secret generic keys -n ns --from-file=people.pub=..."},
		"no key":        {[]client.Object{keys}, `stopped InvalidSource: ann.pub of the Secret of verify cannot be read: *.asc are keys as "gpg --armor --export" prints them, *.pub lines as in authorized_keys without options; an administrator of the cluster may run: kubectl create secret generic keys -n ns --from-file=people.pub=... --dry-run=client -o yaml | kubectl apply -f -`},
		"no signature":  {[]client.Object{valid}, "stopped VerificationFailed"},
	} {
		w := newWorld(t, c.objects...)
		app := appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: server.RepoURL(), Verify: &v1alpha1.GitVerification{SecretRef: v1alpha1.LocalSecretReference{Name: "keys"}}}})
		if found, end := w.fetch(app); !strings.HasPrefix(end, c.want) || found.Files.FS != nil {
			t.Errorf("%s: got %q, want %q", name, end, c.want)
		}
		p := passOf(app)
		p.Client, app.Spec.Git.Verify.Mode = w.api, sourcev1.ModeGitTag
		if who, err := w.verification(t.Context(), p, app.Spec.Git.Verify); err == nil && !who.WantsTag() || (err == nil) != (c.objects != nil) {
			t.Errorf("%s: the tag is to be verified: %t, %v", name, who.WantsTag(), err)
		}
	}
}

// TestAnArtifactOfARegistryIsPulledOnce, and again if it is no longer on the disk.
func TestAnArtifactOfARegistryIsPulledOnce(t *testing.T) {
	server := sources.ServeOCI(t, httptest.NewServer)
	digest := server.PushArtifact(t, "1.0.0", "application/vnd.cncf.flux.content.v1.tar+gzip", sources.TarGz(t, sources.Entry{Name: "a.yaml", Text: "1"}))
	w := newWorld(t)
	app := appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: server.Repository() + "/web", Tag: "1.0.0", Insecure: true}}})
	other := appOf("other", *app.Spec.DeepCopy())
	look := func(what string, app *v1alpha1.App, asked bool) {
		t.Helper()
		server.Requests()
		found, end := w.fetch(app)
		if end != "done" || found.Revision != "1.0.0@"+digest || found.Files.FromCommit() || found.Files.Digest == "" {
			t.Fatalf("%s: %s; the revision is %s", what, end, found.Revision)
		}
		if text := w.read(found.Files.FS, "a.yaml"); text != "1" || (len(server.Requests()) > 0) != asked {
			t.Errorf("%s: read %q, asked %t", what, text, !asked)
		}
	}
	look("the first time", app, true)
	look("again", app, false)
	look("another App of the tenant, which is new", other, true)
	look("another App of the tenant", other, false)
	w.sweepArtifacts()
	look("without the files", app, true)
	w.queue.taken("")
	digest = server.PushArtifact(t, "1.0.0", "application/vnd.cncf.flux.content.v1.tar+gzip", sources.TarGz(t, sources.Entry{Name: "a.yaml", Text: "1"}, sources.Entry{Name: "b.yaml", Text: "2"}))
	w.clock.Step(20 * time.Minute)
	look("a new artifact", app, true)
	if got := w.queue.taken("web"); len(got) != 1 || got[0] != "other" {
		t.Errorf("woken are %v, want the other App of the artifact", got)
	}
	w.clock.Step(20 * time.Minute)
	look("the same artifact", app, true)
	if got := w.queue.taken("web"); len(got) != 0 {
		t.Errorf("woken are %v, although nothing changed", got)
	}
}

// fluxSource is a GitRepository of Flux with this status.
func fluxSource(status map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	o.SetGroupVersionKind(fluxKind)
	o.SetNamespace("ns")
	o.SetName("web")
	return o
}

// TestAFluxSourceIsUsedOnceItIsReady, and its artifact is fetched once for each version of the source.
func TestAFluxSourceIsUsedOnceItIsReady(t *testing.T) {
	archive := sources.TarGz(t, sources.Entry{Name: "a.yaml", Text: "1"})
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked.Add(1)
		if !strings.HasSuffix(req.URL.Path, "a.tar.gz") {
			http.NotFound(w, req)
			return
		}
		_, _ = w.Write(archive)
	}))
	t.Cleanup(server.Close)
	made := func(name string) map[string]any {
		return map[string]any{"url": server.URL + "/gitrepository/ns/web/" + name, "revision": "main@sha1:1", "digest": sources.DigestOf(archive), "path": "p", "lastUpdateTime": "2026-01-01T00:00:00Z"}
	}
	ready := func(status, message string) []any {
		return []any{map[string]any{"type": "Ready", "status": status, "reason": "R", "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}}
	}
	app := appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{SourceRef: &v1alpha1.FluxSourceReference{Kind: "GitRepository", Name: "web"}}})
	for name, c := range map[string]struct {
		source *unstructured.Unstructured
		kind   string
		want   string
	}{
		"there is none":      {nil, "GitRepository", "waits DependencyNotReady: GitRepository ns/web does not exist: create it; an administrator of the cluster may run: flux create source git web -n ns --url=..., after 1m0s"},
		"no such kind":       {nil, "Bucket", "waits DependencyNotReady: the cluster does not serve Bucket of source.toolkit.fluxcd.io: install Flux's source-controller; an administrator of the cluster may run: flux install --components=source-controller, after 1m0s"},
		"no artifact yet":    {fluxSource(map[string]any{}), "GitRepository", "waits DependencyNotReady: GitRepository ns/web has no artifact yet, after 1m0s"},
		"not ready":          {fluxSource(map[string]any{"artifact": made("a.tar.gz"), "conditions": ready("False", "no such branch")}), "GitRepository", `waits DependencyNotReady: GitRepository ns/web is not ready: "no such branch", after 1m0s`},
		"a strange status":   {fluxSource(map[string]any{"artifact": "a"}), "GitRepository", "failed FetchFailed: reading the status of GitRepository ns/web: cannot restore struct from: string"},
		"no archive":         {fluxSource(map[string]any{"artifact": made("none")}), "GitRepository", "stopped SourceNotFound: GitRepository ns/web: fetching the artifact "},
		"ready":              {fluxSource(map[string]any{"artifact": made("a.tar.gz"), "conditions": ready("True", "")}), "GitRepository", "done"},
		"its state is open":  {fluxSource(map[string]any{"artifact": made("a.tar.gz"), "conditions": ready("Unknown", "")}), "GitRepository", "done"},
		"without conditions": {fluxSource(map[string]any{"artifact": made("a.tar.gz")}), "GitRepository", "done"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if c.source != nil {
				objects = append(objects, c.source)
			}
			w, app := newWorld(t, objects...), app.DeepCopy()
			app.Spec.Git.SourceRef.Kind = c.kind
			found, end := w.fetch(app)
			if !strings.HasPrefix(end, c.want) {
				t.Fatalf("got  %q\nwant %q", end, c.want)
			}
			if end == "done" && (found.Revision != "main@sha1:1" || w.read(found.Files.FS, "a.yaml") != "1") {
				t.Errorf("the revision is %s", found.Revision)
			}
			w.queue.taken("")
			for range 2 {
				w.Queue.KindsServed()
			}
			if got := w.queue.taken(""); len(got) == 1 != (c.kind == "Bucket") {
				t.Errorf("a new kind is served, and woken are %v", got)
			}
		})
	}
	w := newWorld(t, fluxSource(map[string]any{"artifact": made("a.tar.gz")}))
	asked.Store(0)
	look := func(what string, want int32) {
		t.Helper()
		if _, end := w.fetch(app); end != "done" || asked.Load() != want {
			t.Errorf("%s: %s after %d requests, want %d", what, end, asked.Load(), want)
		}
	}
	look("the first time", 1)
	w.clock.Step(30 * time.Hour)
	w.queue.taken("")
	if look("much later", 1); len(w.queue.taken("")) != 0 {
		t.Error("much later: the artifact is looked for again")
	}
	w.sweepArtifacts()
	look("without the files", 2)
}

// TestTheAnswerOfAnUnusedSourceIsDropped, and that of a source that another App uses stays.
func TestTheAnswerOfAnUnusedSourceIsDropped(t *testing.T) {
	_, server, _ := pushed(t, map[string]string{"a": "1"})
	w := newWorld(t)
	spec := v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: server.RepoURL()}}
	spec.Git.SubstituteFrom = []v1alpha1.SubstituteReference{{Kind: "ConfigMap", Name: "vars"}}
	one, two := appOf("one", spec), appOf("two", spec)
	for _, app := range []*v1alpha1.App{one, two} {
		if _, end := w.fetch(app); end != "done" {
			t.Fatal(end)
		}
	}
	key := w.queries.Get(one).source
	for _, c := range []struct {
		gone  *v1alpha1.App
		known bool
	}{{one, true}, {two, false}} {
		w.Forget(c.gone)
		if _, _, known := w.Answers.Commits.Last(key); known != c.known {
			t.Errorf("without App %s the answer is known: %t, want %t", c.gone.Name, known, c.known)
		}
	}
}
