package release

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/storage/driver"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	cached "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/fair"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/delivery/release/cause"
	"github.com/kubeop/kubeop/delivery/release/charts"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/evaluate"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/internal/sandbox"
	"github.com/kubeop/kubeop/internal/testenv"
)

var env *testenv.Env

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"

const clusterRole = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: root\n"

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func minutes(attempts int) time.Duration { return time.Duration(attempts) * time.Minute }

// boxes evaluate the charts of all tests, in processes of this test binary.
var boxes *sandbox.Pool

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		os.Exit(sandbox.Serve(os.Args[2:], map[string]sandbox.Function{evaluate.Function: evaluate.Chart}))
	}
	log.SetLogger(logr.Discard())
	boxes = sandbox.New(sandbox.Options{})
	testenv.Main(m, &env)
}

// evaluator is apart.Runner.Run.
type evaluator = func(context.Context, apart.Call) ([]byte, error)

// evaluateIn has a pool of processes evaluate charts.
func evaluateIn(p *sandbox.Pool) evaluator {
	return func(ctx context.Context, c apart.Call) ([]byte, error) {
		if testing.Short() { // The race detector cannot run in a confined process.
			return apart.Runner{}.Do(ctx, c)
		}
		usage := &sandbox.Usage{}
		fair.Uses(ctx, usage.CPU)
		return p.Call(ctx, sandbox.Call{Function: c.Name, Input: c.Input, NewHandler: c.NewHandler, Usage: usage})
	}
}

// team is a namespace, its deployer, and an engine that works as it.
type team struct {
	*testing.T
	*Engine
	namespace string
	admin     kubernetes.Interface
	requests  *requests
	notified  chan types.NamespacedName
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	records   cache.SharedIndexInformer
	// between stands between the next engine and the API server; now is its clock.
	between func(http.RoundTripper) http.RoundTripper
	now     func() time.Time
	// evaluate is the next engine's, and trials where all engines of the team remember what cannot be evaluated.
	evaluate evaluator
	trials   string
	// turn shares the evaluations of the next engine.
	turn func(context.Context, string, func(context.Context) error) error
	// bad is a request that fails.
	bad Request
}

// newTeam lets the test run beside others: each has its own namespace.
func newTeam(t *testing.T) *team {
	t.Helper()
	return newTeamIn(t, metav1.ObjectMeta{GenerateName: "team-"})
}

func newTeamIn(t *testing.T, namespace metav1.ObjectMeta) *team {
	t.Helper()
	t.Parallel()
	admin, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	ns, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: namespace}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deployer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: deployer(ns.Name)}},
	}
	if _, err := admin.RbacV1().RoleBindings(ns.Name).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tm := &team{T: t, namespace: ns.Name, admin: admin, requests: &requests{}, notified: make(chan types.NamespacedName, 100),
		evaluate: evaluateIn(boxes), trials: t.TempDir()}
	tm.awaitRights()
	tm.watch()
	tm.Engine = tm.engine("me")
	return tm
}

// watch begins the index of the namespace's records.
func (t *team) watch() {
	t.Helper()
	client, err := metadata.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.records = metadatainformer.NewFilteredMetadataInformer(client, corev1.SchemeGroupVersion.WithResource("secrets"), t.namespace, 0,
		cache.Indexers{}, func(o *metav1.ListOptions) { o.LabelSelector = "owner=helm" }).Informer()
	go t.records.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), t.records.HasSynced) {
		t.Fatal("the index of records did not begin")
	}
}

// indexed is what the watch has seen, by a label.
func (t *team) indexed(label, value string) []metav1.PartialObjectMetadata {
	var out []metav1.PartialObjectMetadata
	for _, o := range t.records.GetStore().List() {
		if m, ok := o.(*metav1.PartialObjectMetadata); ok && m.Labels[label] == value {
			out = append(out, *m)
		}
	}
	return out
}

// restart has another process go on, once the index is up to date. What the last one runs it still runs.
func (t *team) restart(holder string) {
	t.Helper()
	t.catchUp()
	t.Engine = t.engine(holder)
}

// until waits for what Kubernetes does in its own time.
func (t *team) until(what string, is func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, is); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// catchUp waits until the index is up to date.
func (t *team) catchUp() {
	t.Helper()
	t.until("the index catches up", func(ctx context.Context) (bool, error) {
		list, err := t.admin.CoreV1().Secrets(t.namespace).List(ctx, metav1.ListOptions{LabelSelector: "owner=helm"})
		if err != nil {
			return false, err
		}
		seen := map[string]string{}
		for _, m := range t.indexed("owner", "helm") {
			seen[m.Name] = m.ResourceVersion
		}
		for _, s := range list.Items {
			if seen[s.Name] != s.ResourceVersion {
				return false, nil
			}
		}
		return len(list.Items) == len(seen), nil
	})
}

// awaitRights waits until the API server's authorizer has seen the binding.
func (t *team) awaitRights() {
	t.Helper()
	t.until("the deployer may list Secrets", func(ctx context.Context) (bool, error) {
		review, err := t.admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               deployer(t.namespace),
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: t.namespace, Verb: "list", Resource: "secrets"},
			},
		}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	})
}

func deployer(namespace string) string {
	return "system:serviceaccount:" + namespace + ":kubeop-deployer"
}

// engine is one more process of the operator.
func (t *team) engine(holder string) *Engine {
	config := rest.CopyConfig(env.Config)
	config.Wrap(t.requests.count)
	if t.between != nil {
		config.Wrap(t.between)
	}
	plain, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	discovered := cached.NewMemCacheClient(plain)
	t.mapper = restmapper.NewDeferredDiscoveryRESTMapper(discovered)
	return New(Options{
		Config: config, Discovery: discovered, Mapper: t.mapper, Holder: holder,
		Notify: func(app types.NamespacedName) { t.notified <- app },
		Now:    t.now, Explain: t.explain, Apart: apart.Runner{Run: t.evaluate, Turn: t.turn}, Trials: t.trials,
		Records: func(_ context.Context, _, release string) ([]metav1.PartialObjectMetadata, error) {
			return t.indexed("name", release), nil
		},
		Releases: func(_ context.Context, _, app string) ([]string, error) {
			names := map[string]bool{}
			for _, m := range t.indexed(decide.AppLabel, app) {
				names[m.Labels["name"]] = true
			}
			return slices.Sorted(maps.Keys(names)), nil
		},
	})
}

// requested keeps the files of all charts: their address is their digest, and must not become that of other files.
var requested sync.Map

// request is the app "web" with a chart folder; values are "key=value".
func (t *team) request(files fs.FS, values ...string) Request {
	requested.Store(fmt.Sprintf("%p", files), files)
	r := Request{
		App:       types.NamespacedName{Namespace: t.namespace, Name: "shop"},
		Name:      "web",
		Namespace: t.namespace,
		User:      deployer(t.namespace),
		Input:     Input{Chart: charts.Chart{Files: files, Digest: fmt.Sprintf("%p", files)}, Values: map[string]any{}},
		Timeout:   2 * time.Second,
		Policy:    Policy{Admit: t.admit, Refused: func(err error) bool { return !cause.IsEnvironment(err) }, Owned: t.owned},
	}
	for _, v := range values {
		key, value, _ := strings.Cut(v, "=")
		r.Input.Values[key] = value
	}
	return r
}

func (t *team) owned(ctx context.Context) (map[types.UID][]string, error) {
	c, err := client.New(env.Config, client.Options{})
	if err != nil {
		return nil, err
	}
	return garbage.ClaimsByOwner(ctx, c, t.namespace)
}

func (t *team) admit(objects []*unstructured.Unstructured) error {
	scope := func(kind schema.GroupVersionKind) (bool, error) {
		m, err := t.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return false, err
		}
		return m.Scope.Name() == "namespace", nil
	}
	// Claims of these tests hold data because they name a volume, which apps may not.
	if err := policy.Without(policy.Check(objects, policy.Bounds{Namespace: t.namespace}, scope), "ForeignVolume"); err != nil {
		return err
	}
	own.Owner{Tenant: "acme", Project: "dev", App: "shop", Namespace: t.namespace}.Stamp(objects)
	return nil
}

// settle reconciles until nothing runs.
func (t *team) settle(r Request) Outcome {
	t.Helper()
	for range 100 {
		out, err := t.Reconcile(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if !out.Running {
			return out
		}
		t.await(r)
	}
	t.Fatalf("after 100 actions it is not settled; the last: %v", t.pool.Slot(r.key()).Memory.last)
	return Outcome{}
}

// deploy settles and expects success.
func (t *team) deploy(r Request) Outcome {
	t.Helper()
	out := t.settle(r)
	if out.Failed != nil {
		t.Fatalf("not deployed: %v", out.Failed)
	}
	return out
}

func (t *team) await(r Request) {
	t.Helper()
	select {
	case app := <-t.notified:
		if app != r.App {
			t.Fatalf("notified of %s, want %s", app, r.App)
		}
	case <-time.After(time.Minute):
		t.Fatal("no action ended in a minute")
	}
}

// versions of every record and object of the team, by kind and name.
func (t *team) versions() map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, kind := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "services"},
		{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "batch", Version: "v1", Resource: "jobs"},
	} {
		t.list(kind, out)
	}
	delete(out, "configmaps/kube-root-ca.crt")
	return out
}

// settled returns the versions when Kubernetes' own controllers, which write the status of what was made a moment ago, have
// left them alone for a second.
func (t *team) settled() map[string]string {
	t.Helper()
	last := t.versions()
	for quiet, looks := 0, 0; quiet < 10 && looks < 300; looks++ {
		time.Sleep(100 * time.Millisecond)
		now := t.versions()
		if quiet++; !maps.Equal(last, now) {
			quiet = 0
		}
		last = now
	}
	return last
}

func (t *team) list(kind schema.GroupVersionResource, into map[string]string) {
	t.Helper()
	path := "/apis/" + kind.GroupVersion().String()
	if kind.Group == "" {
		path = "/api/v1"
	}
	raw, err := t.admin.CoreV1().RESTClient().Get().AbsPath(path, "namespaces", t.namespace, kind.Resource).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list unstructured.UnstructuredList
	if err := list.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	for _, u := range list.Items {
		into[kind.Resource+"/"+u.GetName()] = u.GetResourceVersion()
	}
}

func (t *team) configMap(name string) *corev1.ConfigMap {
	t.Helper()
	c, err := t.admin.CoreV1().ConfigMaps(t.namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (t *team) update(c *corev1.ConfigMap) {
	t.Helper()
	if _, err := t.admin.CoreV1().ConfigMaps(t.namespace).Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// uninstall removes the release and expects it to be gone, when Kubernetes has let go of what it protects.
func (t *team) uninstall(r Request) {
	t.Helper()
	for began := time.Now(); ; {
		done, err := t.Uninstall(t.Context(), r)
		var left *fault.Terminating
		switch {
		case errors.As(err, &left) && time.Since(began) < time.Minute:
			time.Sleep(100 * time.Millisecond)
			continue
		case err != nil:
			t.Fatal(err)
		case done:
			return
		}
		t.await(r)
	}
}

// helm is a person's helm command.
func (t *team) helm() *person {
	t.Helper()
	conn, err := t.dial(t.request(nil))
	if err != nil {
		t.Fatal(err)
	}
	conn.Client.Terms.App = "shop" // a person's helm does not look at our labels
	config, err := conn.Configuration(driver.NewSecrets(conn.Secrets))
	if err != nil {
		t.Fatal(err)
	}
	return &person{config: config}
}

// person is somebody with a helm command.
type person struct{ config *action.Configuration }

// requests counts what is asked of the API server, apart from discovery.
type requests struct {
	mu   sync.Mutex
	list []string
}

func (r *requests) count(next http.RoundTripper) http.RoundTripper { return counted{r, next} }

// take returns the requests since the last take.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.list
	r.list = nil
	return out
}

type counted struct {
	*requests
	next http.RoundTripper
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if slices.Contains(strings.Split(r.URL.Path, "/"), "namespaces") {
		c.mu.Lock()
		c.list = append(c.list, r.Method+" "+r.URL.Path)
		c.mu.Unlock()
	}
	return c.next.RoundTrip(r)
}
