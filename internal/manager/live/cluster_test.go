package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { testenv.Main(m, &env) }

var install = sync.OnceValue(func() error {
	_, err := env.InstallChart(context.Background(), "manager.enabled=true", "manager.plainHTTP=true", "manager.git.secrets={acme-git}", "manager.keySecret=keys", "manager.webhooks.enabled=true")
	return err
})

// accounts installs the chart, and returns a client for administrators, and the configuration of the service account that the chart makes for the manager.
func accounts(t *testing.T) (admin client.Client, manager *rest.Config) {
	t.Helper()
	if err := install(); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	all, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	token, err := all.CoreV1().ServiceAccounts(testenv.Namespace).CreateToken(t.Context(), "kubeop-manager", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	manager = rest.AnonymousClientConfig(env.Config)
	manager.BearerToken = token.Status.Token
	return admin, manager
}

// TestAClusterThatCannotBeConnectedToIsAnError: the manager would serve an empty index.
func TestAClusterThatCannotBeConnectedToIsAnError(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1", TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(t.TempDir(), "none")}}
	if c, err := NewCluster(t.Context(), config); c != nil || err == nil || !strings.HasPrefix(err.Error(), "making the caches: ") {
		t.Errorf("got %v, %v", c, err)
	}
}

// follow starts a Cluster, and returns it when it was read.
func follow(t *testing.T, config *rest.Config) *Cluster {
	t.Helper()
	return followWith(t, config, nil)
}

// followWith is follow for further kinds, and calls a function with each object that changes.
func followWith(t *testing.T, config *rest.Config, changed func(client.Object), also ...client.Object) *Cluster {
	t.Helper()
	running, stop := context.WithCancel(context.Background())
	c, err := NewCluster(running, config, also...)
	if err != nil {
		t.Fatal(err)
	}
	c.Changed = changed
	if c.Synced(running) == nil {
		t.Error("a Cluster that was not started has read")
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Start(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the stop failed: %v", err)
		}
	})
	eventually(t, func() bool { return c.Synced(running) == nil })
	return c
}

func create(t *testing.T, admin client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheClusterIsFollowedWithTheRightsOfTheChart: what is there before, what is changed and what is deleted; and nothing secret is kept.
func TestTheClusterIsFollowedWithTheRightsOfTheChart(t *testing.T) {
	ctx := t.Context()
	admin, manager := accounts(t)
	const secret = "hunter2"
	app := func(name string, spec v1alpha1.AppSpec) *v1alpha1.App {
		return &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-cached-shop", Name: name, Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": secret}}, Spec: spec}
	}
	raw := app("raw", v1alpha1.AppSpec{Type: v1alpha1.AppRaw, Raw: &v1alpha1.RawSource{Manifests: []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"` + secret + `"}}`)}}}})
	chart := app("chart", v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Path: "chart", Values: &apiextensionsv1.JSON{Raw: []byte(`{"password":"` + secret + `"}`)}}})
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "cached", Labels: map[string]string{v1alpha1.TenantLabel: "cached"}, Annotations: map[string]string{"paas.kubeop.io/allow-deletion": "cached"}}}
	tenant.Spec.Owners = []v1alpha1.Owner{{Kind: "User", Name: "ann", Role: "edit"}}
	create(t, admin,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-cached"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-cached-shop"}},
		tenant, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-cached", Name: "shop"}}, raw, chart)
	c := follow(t, manager)
	names := func(list string) (all []string) {
		for _, item := range c.Index.Page(list, "", 10, func(string) bool { return true }) {
			all = append(all, item.Name)
		}
		return all
	}
	for list, want := range map[string]string{"tenants/cached": "cached", "projects/cached": "shop", "apps/cached/shop": "chart raw"} {
		if got := strings.Join(names(list), " "); got != want {
			t.Errorf("%s has %q", list, got)
		}
	}
	for _, a := range []*v1alpha1.App{raw, chart} {
		kept := &v1alpha1.App{}
		if err := c.caches.Get(ctx, client.ObjectKeyFromObject(a), kept); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(kept)
		if err != nil || strings.Contains(string(text), secret) || kept.Spec.Raw != nil || !equality.Semantic.DeepEqual(kept.Spec, slimSpec(a.Spec)) || len(kept.ManagedFields) > 0 {
			t.Errorf("%v: it is kept as %s", err, text)
		}
	}
	if c.Index.Get("tenants", "cached") == nil {
		t.Error("the list of all tenants lacks it")
	}
	scopes := func() string {
		grant, err := c.Owners.Grant(ctx, "ann", nil)
		if err != nil {
			t.Error(err)
		}
		return fmt.Sprint(grant)
	}
	if got := scopes(); got != "[tenant:cached:edit]" {
		t.Errorf("an owner has %s", got)
	}
	before := c.Index.Get("apps/cached/shop", "raw")
	raw.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded", LastTransitionTime: metav1.Now(), ObservedGeneration: raw.Generation}}
	if err := admin.Status().Update(ctx, raw); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		now := c.Index.Get("apps/cached/shop", "raw")
		return strings.Contains(string(now.Body), `"ready":"True"`) && now.ETag != before.ETag
	})
	for _, o := range []client.Object{chart, tenant} {
		if err := admin.Delete(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() bool {
		return strings.Join(names("apps/cached/shop"), " ") == "raw" && c.Index.Get("tenants", "cached") == nil && len(names("tenants/cached")) == 0 && scopes() == "[]"
	})
}

// TestASlimAppStillSaysWhetherItsStatusIsCurrent, also if it has content from elsewhere, whose spec is dropped.
func TestASlimAppStillSaysWhetherItsStatusIsCurrent(t *testing.T) {
	failed := &metav1.Condition{Status: metav1.ConditionFalse}
	for name, tc := range map[string]struct {
		spec      v1alpha1.AppSpec
		attempted string
		want      bool
	}{
		"a chart in the own folder": {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Path: "chart"}}, "main@sha1:1", false},
		"the same, tried":           {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Path: "chart"}}, "main@sha1:2", true},
		"a chart of a repository":   {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Repository: "https://charts.example.com"}}, "1.0.0", true},
		"a chart of another Git":    {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{}}}, "main@sha1:9", true},
		"content of another Git":    {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{URL: "https://git.example.com"}}, "main@sha1:9", true},
	} {
		app := &v1alpha1.App{Spec: tc.spec}
		app.Annotations = map[string]string{v1alpha1.TreeAnnotation: "tree", v1alpha1.RevisionAnnotation: "main@sha1:2"}
		app.Status.LastAttemptedRevision = tc.attempted
		if _, err := slim(app); err != nil {
			t.Fatal(err)
		}
		if got := app.StatusIsCurrent(failed); got != tc.want || strings.Contains(fmt.Sprintf("%+v", app.Spec), "example.com") {
			t.Errorf("%s: %t of %+v", name, got, app.Spec)
		}
	}
}

// TestOnlyNamedSecretsCanBeRead, and of Repositories what is needed to write to them.
func TestOnlyNamedSecretsCanBeRead(t *testing.T) {
	ctx := t.Context()
	admin, config := accounts(t)
	for _, name := range []string{"acme-git", "another"} {
		create(t, admin, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: name}})
	}
	manager, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.Get(ctx, client.ObjectKey{Namespace: testenv.Namespace, Name: "acme-git"}, &corev1.Secret{}); err != nil {
		t.Error(err)
	}
	if err := manager.Get(ctx, client.ObjectKey{Namespace: testenv.Namespace, Name: "another"}, &corev1.Secret{}); !apierrors.IsForbidden(err) {
		t.Errorf("another Secret: %v", err)
	}
	if err := manager.List(ctx, &corev1.SecretList{}, client.InNamespace(testenv.Namespace)); !apierrors.IsForbidden(err) {
		t.Errorf("the list: %v", err)
	}
	repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "written"}, Spec: v1alpha1.RepositorySpec{URL: "https://git.example.com/written.git", Tenant: "written", SecretRef: &v1alpha1.LocalSecretReference{Name: "acme-git"}}}
	create(t, admin, repository)
	c := follow(t, config)
	kept := &v1alpha1.Repository{}
	if err := c.Reader().Get(ctx, client.ObjectKeyFromObject(repository), kept); err != nil || kept.Spec.URL != repository.Spec.URL || kept.Spec.SecretRef == nil {
		t.Errorf("%v: it is kept as %+v", err, kept.Spec)
	}
}

// TestACutConnectionIsReported: what was read stays as it was, and is not reported as fresh. When the API server is there again, it is followed again.
func TestACutConnectionIsReported(t *testing.T) {
	ctx := t.Context()
	admin, manager := accounts(t)
	var line wire
	manager.Dial = line.dial
	c := follow(t, manager)
	eventually(t, func() bool { return c.Following(ctx) == nil && c.Behind() == 0 })
	line.cut()
	eventually(t, func() bool { return c.Following(ctx) != nil && c.Behind() > 0 })
	if err := c.Following(ctx); !strings.Contains(err.Error(), errCut.Error()) || c.Synced(ctx) != nil {
		t.Errorf("it is reported by %v, and whether it was read by %v", err, c.Synced(ctx))
	}
	create(t, admin, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "meanwhile", Labels: map[string]string{v1alpha1.TenantLabel: "meanwhile"}}})
	line.mend()
	eventually(t, func() bool {
		return c.Following(ctx) == nil && c.Behind() == 0 && c.Index.Get("tenants", "meanwhile") != nil
	})
}

var errCut = errors.New("the line is cut")

// wire is a connection to the API server that can be cut.
type wire struct {
	mu    sync.Mutex
	isCut bool
	open  []net.Conn
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isCut {
		return nil, errors.Join(errCut, connection.Close())
	}
	w.open = append(w.open, connection)
	return connection, nil
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = true
	for _, connection := range w.open {
		_ = connection.Close()
	}
	w.open = nil
}

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = false
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(4 * time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come true")
		}
	}
}

// TestThePriceListOfATenantIsFollowed: the one that it names, else the default one, with who wrote it.
func TestThePriceListOfATenantIsFollowed(t *testing.T) {
	ctx := t.Context()
	admin, manager := accounts(t)
	list := func(name, currency string, first bool) *v1alpha1.PriceList {
		p := &v1alpha1.PriceList{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:1", v1alpha1.AuthorAnnotation: "ann"}}}
		p.Spec = v1alpha1.PriceListSpec{Default: first, Currency: currency, Meters: []v1alpha1.PriceMeter{{Name: "pods", Unit: "hour", Periods: []v1alpha1.PricePeriod{{From: "2026-01-01", Tiers: []v1alpha1.PriceTier{{Price: "1"}}}}}}}
		return p
	}
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "priced", Labels: map[string]string{v1alpha1.TenantLabel: "priced"}}, Spec: v1alpha1.TenantSpec{PriceList: "named"}}
	standard := list("standard", "EUR", true)
	create(t, admin, tenant, standard, list("named", "CHF", false))
	c := follow(t, manager)
	o := &Operations{Index: c.Index, Synced: c.Synced}
	holds := func() string {
		of, why, err := o.PricesOf(ctx, "priced")
		if err != nil {
			t.Error(err)
		}
		if of == nil {
			return why
		}
		return strings.Join([]string{of.Name, of.Spec.Currency, of.Revision, of.Author}, " ")
	}
	if got := holds(); got != "named CHF main@sha1:1 ann" {
		t.Errorf("it has %s", got)
	}
	tenant.Spec.PriceList = ""
	if err := admin.Update(ctx, tenant); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return holds() == "standard EUR main@sha1:1 ann" })
	create(t, admin, list("second", "EUR", true))
	eventually(t, func() bool { return strings.HasPrefix(holds(), "Two price lists") })
	for _, name := range []string{"second", "standard"} {
		if err := admin.Delete(ctx, list(name, "EUR", true)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() bool { return strings.HasPrefix(holds(), "The tenant names no price list") })
	if _, _, err := o.PricesOf(ctx, "none"); err == nil {
		t.Error("a tenant that is not there has prices")
	}
}
