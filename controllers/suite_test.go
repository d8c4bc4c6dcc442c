package controllers

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/plan/render"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/decrypt/sops"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/release/evaluate"
	"github.com/kubeop/kubeop/internal/digestkey"
	"github.com/kubeop/kubeop/internal/sandbox"
	"github.com/kubeop/kubeop/internal/testenv"
)

// env is the control plane of this package's tests; op is the operator that runs on it, as its own service account.
var (
	env *testenv.Env
	op  = sync.OnceValues(startOperator)
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		os.Exit(sandbox.Serve(os.Args[2:], map[string]sandbox.Function{build.Function: build.Evaluate, build.Decrypts: build.Decrypting(sops.New), pack.Function: pack.Evaluate, image.Function: image.Evaluate}))
	}
	testenv.Main(m, &env)
}

// built counts the builds in other processes by tenant.
var built sync.Map

func builtOf(tenant string) int64 {
	n, _ := built.LoadOrStore(tenant, &atomic.Int64{})
	return n.(*atomic.Int64).Load()
}

// evaluates runs the evaluation of tenants' content in processes of this test binary. The limits for the memory of a build and the CPU time
// of a pack are low, so that small inputs exceed them.
func evaluates() func(context.Context, apart.Call) ([]byte, error) {
	builds := sandbox.New(sandbox.Options{Processes: 2, Limits: sandbox.Limits{Memory: 48 << 20}, Log: logr.Discard()})
	packs := sandbox.New(sandbox.Options{Processes: 1, Limits: sandbox.Limits{CPU: 60 * time.Millisecond}, Log: logr.Discard()})
	return func(ctx context.Context, c apart.Call) ([]byte, error) {
		if testing.Short() { // The race detector cannot run in a confined process.
			return apart.Runner{}.Do(ctx, c)
		}
		call := sandbox.Call{Function: c.Name, Input: c.Input, NewHandler: c.NewHandler, Limits: sandbox.Limits{Questions: c.Questions}}
		switch c.Name {
		case pack.Function:
			return packs.Call(ctx, call)
		case evaluate.Function:
			return apart.Runner{}.Do(ctx, c)
		case build.Function, build.Decrypts:
			n, _ := built.LoadOrStore(c.Tenant, &atomic.Int64{})
			n.(*atomic.Int64).Add(1)
		}
		return builds.Call(ctx, call)
	}
}

// operator is a running operator and its log.
type operator struct {
	// admin is a client without cache; self is one as the operator's service account.
	admin, self client.Client
	hookAddr    string
	started     time.Time
	// requests are the operator's writes; stacks is where those of some namespaces come from.
	requests writes
	stacks   followed

	mu   sync.Mutex
	logs []byte
}

func (o *operator) log() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.logs)
}

func startOperator() (*operator, error) {
	ctx := context.Background()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	admin, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	o := &operator{admin: admin}
	ctrl.SetLogger(funcr.New(func(prefix, args string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.logs = append(o.logs, prefix+" "+args+"\n"...)
	}, funcr.Options{}))
	rest, err := env.InstallChart(ctx, "platformApps="+kube.PlatformAppsClusterAdmin)
	if err != nil {
		return nil, err
	}
	if o.self, err = client.New(rest, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	rest.Wrap(o.requests.record)
	rest.Wrap(o.stacks.record)
	options := ManagerOptions(scheme)
	options.Metrics.BindAddress = "0"
	mgr, err := ctrl.NewManager(rest, options)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kubeop-data-")
	if err != nil {
		return nil, err
	}
	c := Options{Process: Process{DataDir: dir, Namespace: testenv.Namespace, Deployment: "kubeop"}, Concurrency: 10, HelmWorkers: 2, Admitted: []map[string]string{{"kubernetes.io/metadata.name": "ingress"}}, FlowControl: true, OwnerRequests: true,
		PlatformApps: kube.PlatformAppsClusterAdmin,
		Gateway:      "infra/public", Network: Network{ClusterNetworkPolicies: true,
			AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, FluxArtifactHosts: []string{"127.0.0.1"},
			PlainRegistries: []string{images.Listener.Addr().String(), written.Listener.Addr().String()},
		}}
	c.Evaluate, c.EvaluateProcesses, c.Renderer = evaluates(), 2, render.New
	c.unjudged = func(tenant string) bool { return tenant == "unjudged" }
	c.BuildTrials = filepath.Join(dir, "built")
	if c.DigestKey, err = digestkey.Ensure(ctx, o.self, c.Namespace); err != nil {
		return nil, err
	}
	if c.Hook.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	c.Hook.Client, o.hookAddr = mgr.GetClient(), c.Hook.Listener.Addr().String()
	if err := Setup(mgr, c); err != nil {
		return nil, err
	}
	o.started = time.Now()
	go func() { utilruntime.Must(mgr.Start(ctx)) }()
	return o, nil
}

// team is a tenant with a repository of its own, for one test.
type team struct {
	*operator
	t    *testing.T
	name string
	repo *testenv.Repo
}

const (
	layoutFile  = "layout: v1\n"
	projectFile = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata:\n  name: %s\n"
	rawFile     = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata:
  name: %s
spec:
  type: Raw
  raw:
    manifests:
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: %s}
      data: {greeting: %s}
`
)

// newTeam makes a tenant whose repository calls the push hook. The test runs in parallel.
func newTeam(t *testing.T, name string) *team {
	t.Helper()
	t.Parallel()
	return teamOf(t, name)
}

// teamOf is newTeam for a test that has several tenants, or that does not run in parallel.
func teamOf(t *testing.T, name string) *team {
	t.Helper()
	o, err := op()
	if err != nil {
		t.Fatal(err)
	}
	n := &team{operator: o, t: t, name: name}
	n.repo = env.Repo(t, name, "http://"+o.hookAddr+"/hook/"+name, "key-of-"+name)
	n.secret(name+"-git", map[string]string{"username": n.repo.User, "password": n.repo.Password})
	n.secret(name+"-hook", map[string]string{"token": "key-of-" + name})
	n.create(&v1alpha1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.TenantLabel: name}},
		Spec: v1alpha1.TenantSpec{Repository: &v1alpha1.TenantRepository{
			URL:       n.repo.URL,
			SecretRef: &v1alpha1.LocalSecretReference{Name: name + "-git"}, HookSecretRef: &v1alpha1.LocalSecretReference{Name: name + "-hook"},
		}},
	})
	return n
}

func (n *team) secret(name string, data map[string]string) {
	n.t.Helper()
	n.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: name}, StringData: data})
}

// create creates an object. It tries again while the quota that counts it is written at the same time.
func (n *team) create(o client.Object) {
	n.t.Helper()
	err := retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error { return n.admin.Create(n.t.Context(), o) })
	if err != nil {
		n.t.Fatal(err)
	}
}

// push commits files and removes those with the content "-"; kubeop.yaml is always there.
func (n *team) push(files map[string]string) string {
	n.t.Helper()
	files["kubeop.yaml"] = layoutFile
	return n.repo.Push(files)
}

// shopFiles returns the files of a project with apps that each hold one ConfigMap of their name.
func shopFiles(name string, apps ...string) map[string]string {
	files := map[string]string{"projects/" + name + "/project.yaml": fmt.Sprintf(projectFile, name)}
	for _, a := range apps {
		files["projects/"+name+"/apps/"+a+"/app.yaml"] = fmt.Sprintf(rawFile, a, a, "hello")
	}
	return files
}

func (n *team) app(project, name string) *v1alpha1.App {
	return &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ProjectNamespace(n.name, project), Name: name}}
}

func (n *team) repository() *v1alpha1.Repository {
	return &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
}

// until reads o until the condition has the status and reason ("" for any), and returns its message.
func (n *team) until(o step.Object, condition string, status metav1.ConditionStatus, reason string) string {
	n.t.Helper()
	var last string
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		c := conditions.Get(o, condition)
		if c == nil || c.Status != status || (reason != "" && c.Reason != reason) || c.ObservedGeneration != o.GetGeneration() {
			return fmt.Errorf("%T %s: conditions are %+v", o, o.GetName(), o.GetReconcileStatus().Conditions)
		}
		last = c.Message
		return nil
	})
	return last
}

// ready waits until objects are ready.
func (n *team) ready(objects ...step.Object) {
	n.t.Helper()
	for _, o := range objects {
		n.until(o, v1alpha1.ReadyCondition, metav1.ConditionTrue, "")
	}
}

// synced waits until the repository tried a revision, with Ready in the given status.
func (n *team) synced(revision string, status metav1.ConditionStatus) *v1alpha1.Repository {
	n.t.Helper()
	repository := n.repository()
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(repository), repository); err != nil {
			return err
		}
		ready := conditions.Get(repository, v1alpha1.ReadyCondition)
		if repository.Status.LastAttemptedRevision != revision || ready == nil || ready.Status != status {
			return fmt.Errorf("repository %s: attempted %s, Ready %+v", n.name, repository.Status.LastAttemptedRevision, ready)
		}
		return nil
	})
	return repository
}

// eventually tries f until it returns nil, for at most 90 s. After 30 s, longer than a busy machine explains, it logs
// the state.
func (n *team) eventually(f func() error) {
	n.t.Helper()
	began, logged := time.Now(), false
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Since(began) > 90*time.Second {
			n.t.Fatalf("not within 90s: %v\n%s", err, n.state())
		}
		if time.Since(began) > 30*time.Second && !logged {
			n.t.Logf("SLOW, not within 30s: %v\n%s", err, n.state())
			logged = true
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// state describes the team's repository and apps for the message of a failed test.
func (n *team) state() string {
	n.t.Helper()
	state := ""
	repository := n.repository()
	if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(repository), repository); err == nil {
		state += fmt.Sprintf("repository: asked %q, handled %q, attempted %s\n  %+v\n", repository.Annotations[meta.ReconcileRequestAnnotation],
			repository.Status.LastHandledReconcileAt, repository.Status.LastAttemptedRevision, repository.Status.Conditions)
	}
	apps := &v1alpha1.AppList{}
	if err := n.admin.List(n.t.Context(), apps, client.MatchingLabels{v1alpha1.TenantLabel: n.name}); err != nil {
		return state + err.Error()
	}
	for _, app := range apps.Items {
		state += fmt.Sprintf("app %s: generation %d, %+v\n  %+v\n", app.Name, app.Generation, app.Status.Release, app.Status.Conditions)
	}
	return state
}

// reconcile asks for a reconcile and waits until it was done. A push hook may replace the request by a later one before the
// operator reads it, so that a later one counts too.
func (n *team) reconcile(objects ...step.Object) {
	n.t.Helper()
	for _, o := range objects {
		token := time.Now().Format(time.RFC3339Nano)
		before := o.DeepCopyObject().(client.Object)
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[meta.ReconcileRequestAnnotation] = token
		o.SetAnnotations(annotations)
		if err := n.admin.Patch(n.t.Context(), o, client.MergeFrom(before)); err != nil {
			n.t.Fatal(err)
		}
		n.eventually(func() error {
			if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			handled := o.GetReconcileStatus().GetLastHandledReconcileRequest()
			if handled != token && handled != o.GetAnnotations()[meta.ReconcileRequestAnnotation] {
				return fmt.Errorf("%T %s handled %q, want %q", o, o.GetName(), handled, token)
			}
			return nil
		})
	}
}
