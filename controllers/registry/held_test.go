package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

const shop = "kubeop-acme-shop"

func entry(name, kind string) v1alpha1.InventoryEntry {
	return v1alpha1.InventoryEntry{ID: shop + "_" + name + "__" + kind, Version: "v1"}
}

func secretsOf(registries ...string) (all []v1alpha1.PullSecret) {
	for _, name := range registries {
		all = append(all, v1alpha1.PullSecret{Registry: name, Host: name + ".example.com"})
	}
	return all
}

// TestAProjectHoldsTheSecretsThatWereBeingMade: the Secrets of its inventory, with those that were being made when the process ended.
func TestAProjectHoldsTheSecretsThatWereBeingMade(t *testing.T) {
	status := &v1alpha1.ProjectStatus{PullSecrets: secretsOf("a")}
	status.Inventory.Entries = []v1alpha1.InventoryEntry{entry("quota", "ResourceQuota"), entry("kubeop-registry-a", "Secret"), entry("kubeop-registry-b", "Secret"), {ID: "nonsense"}}
	held, rest := HeldBy(status)
	if diff := cmp.Diff(Held{Secrets: secretsOf("a"), Entries: []v1alpha1.InventoryEntry{entry("kubeop-registry-a", "Secret"), entry("kubeop-registry-b", "Secret")}}, held); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]v1alpha1.InventoryEntry{entry("quota", "ResourceQuota"), {ID: "nonsense"}}, rest.Entries); diff != "" {
		t.Errorf("the rest (-want +got):\n%s", diff)
	}
	if got := held.names(); !slices.Equal(got, []string{"kubeop-registry-a", "kubeop-registry-b"}) {
		t.Errorf("there may be %v", got)
	}
	now := Held{Secrets: []v1alpha1.PullSecret{{Registry: "b", Host: "new.example.com"}}, Entries: []v1alpha1.InventoryEntry{{ID: entry("kubeop-registry-b", "Secret").ID, Digest: "new"}}}
	both := now.and(Held{Secrets: secretsOf("c", "b", "a"), Entries: held.Entries})
	want := Held{
		Secrets: []v1alpha1.PullSecret{{Registry: "a", Host: "a.example.com"}, {Registry: "b", Host: "new.example.com"}, {Registry: "c", Host: "c.example.com"}},
		Entries: []v1alpha1.InventoryEntry{entry("kubeop-registry-a", "Secret"), {ID: entry("kubeop-registry-b", "Secret").ID, Digest: "new"}},
	}
	if diff := cmp.Diff(want, both); diff != "" {
		t.Errorf("with those of before (-want +got):\n%s", diff)
	}
}

func TestAProviderKeepsItsSecretsAndTheDefaultAccount(t *testing.T) {
	for object, want := range map[[2]string]bool{
		{"Secret", "kubeop-registry-a"}: true, {"Secret", "own"}: false, {"ConfigMap", "kubeop-registry-a"}: false,
		{"ServiceAccount", "default"}: true, {"ServiceAccount", "web"}: false, {"Secret", "default"}: false,
	} {
		if got := Concerns(object[0], object[1]); got != want {
			t.Errorf("%v: got %t", object, got)
		}
	}
}

// delays is a queue that remembers what is added later.
type delays struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []string
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (d *delays) AddAfter(request reconcile.Request, after time.Duration) {
	d.added = append(d.added, fmt.Sprint(request.Name, " ", after))
}

// TestARegistryIsWokenByTheProjectsThatGetOrLoseIt, and by no other change of them.
func TestARegistryIsWokenByTheProjectsThatGetOrLoseIt(t *testing.T) {
	with := func(registries ...string) *v1alpha1.Project {
		return &v1alpha1.Project{Status: v1alpha1.ProjectStatus{PullSecrets: secretsOf(registries...)}}
	}
	for name, tc := range map[string]struct {
		do   func(q queue)
		want []string
	}{
		"a new project": {func(q queue) { counted.Create(t.Context(), event.CreateEvent{Object: with("a", "b")}, q) }, []string{"a 500ms", "b 500ms"}},
		"it is gone":    {func(q queue) { counted.Delete(t.Context(), event.DeleteEvent{Object: with("a")}, q) }, []string{"a 500ms"}},
		"one for another": {func(q queue) {
			counted.Update(t.Context(), event.UpdateEvent{ObjectOld: with("a", "b"), ObjectNew: with("b", "c")}, q)
		}, []string{"a 500ms", "c 500ms"}},
		"the same": {func(q queue) {
			counted.Update(t.Context(), event.UpdateEvent{ObjectOld: with("a"), ObjectNew: with("a")}, q)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			q := &delays{}
			tc.do(q)
			if diff := cmp.Diff(tc.want, q.added); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// kept is an API server with the default service account, and projects that have credentials of the registry "a".
func kept(t *testing.T, functions interceptor.Funcs, projects int, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	for i := range projects {
		objects = append(objects, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: fmt.Sprint("p", i)}, Status: v1alpha1.ProjectStatus{PullSecrets: secretsOf("a")}})
	}
	objects = append(objects, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "other"}, Status: v1alpha1.ProjectStatus{PullSecrets: secretsOf("b")}})
	return fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.Project{}, byRegistry, func(o client.Object) []string { return registriesOf(o) }).
		WithObjects(objects...).WithInterceptorFuncs(functions).Build()
}

// TestADeletedRegistryWaitsForItsProjects, and its status counts them.
func TestADeletedRegistryWaitsForItsProjects(t *testing.T) {
	for projects, want := range map[int]string{
		0: "done", 1: "waits Progressing: waits until 1 project no longer has its credentials: acme/p0, after 10s", 2: "waits Progressing: waits until 2 projects no longer have its credentials: acme/p0; acme/p1, after 10s",
	} {
		r := &Reconciler{Client: kept(t, interceptor.Funcs{}, projects)}
		s := &scope{registry: &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}
		if got := steptest.Outcome(t, r.awaitRemoval(t.Context(), s)); got != want {
			t.Errorf("of %d projects: got %q, want %q", projects, got, want)
		}
		if s.Record(); s.registry.Status.Projects != projects {
			t.Errorf("the status counts %d of %d", s.registry.Status.Projects, projects)
		}
	}
}

func TestTheStatusSaysWhoMayUseARegistry(t *testing.T) {
	for name, tc := range map[string]struct {
		spec v1alpha1.RegistrySpec
		want string
	}{
		"nobody":   {v1alpha1.RegistrySpec{}, "Nobody may use it: an administrator names tenants or policies in spec.tenants or spec.policies in Git"},
		"tenants":  {v1alpha1.RegistrySpec{Host: "r.example.com", Tenants: []string{"acme"}}, "Credentials for r.example.com are in 3 projects"},
		"policies": {v1alpha1.RegistrySpec{Host: "r.example.com", Policies: []string{"base"}}, "Credentials for r.example.com are in 3 projects"},
	} {
		if got := (&scope{registry: &v1alpha1.Registry{Spec: tc.spec}, projects: []string{"acme/a", "acme/b", "acme/c"}}).Summary(); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// TestTheDefaultAccountNamesThePullSecrets: it is read when it changed or is to change, and written only if the list does.
func TestTheDefaultAccountNamesThePullSecrets(t *testing.T) {
	reads, patches := 0, 0
	var conflict error
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "default"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "own"}}}
	api := kept(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if patches++; conflict != nil {
				return conflict
			}
			return c.Patch(ctx, o, patch, options...)
		},
	}, 0, account)
	version := ""
	p := &Provider{Direct: api, Version: func(_ context.Context, namespace, kind, name string) (string, error) {
		if namespace != shop || kind != "ServiceAccount" || name != "default" {
			t.Errorf("the version of %s %s/%s is asked for", kind, namespace, name)
		}
		return version, nil
	}}
	seen := func() {
		t.Helper()
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(account), account); err != nil {
			t.Fatal(err)
		}
		version = account.ResourceVersion
	}
	expect := func(name string, want, gone []string, wantReads, wantPatches int, list ...string) {
		t.Helper()
		reads, patches = 0, 0
		if refused, err := p.attach(t.Context(), shop, want, gone); refused != nil || err != nil {
			t.Errorf("%s: %v, %v", name, refused, err)
		}
		if reads != wantReads || patches != wantPatches {
			t.Errorf("%s: %d reads and %d writes, want %d and %d", name, reads, patches, wantReads, wantPatches)
		}
		seen()
		var names []string
		for _, ref := range account.ImagePullSecrets {
			names = append(names, ref.Name)
		}
		if !slices.Equal(names, list) {
			t.Errorf("%s: it names %v, want %v", name, names, list)
		}
	}
	expect("before Kubernetes has made it", []string{"a"}, nil, 0, 0, "own")
	expect("at first", []string{"a"}, nil, 1, 1, "own", "a")
	expect("again", []string{"a"}, nil, 0, 0, "own", "a")
	expect("another one", []string{"a", "b"}, nil, 1, 1, "own", "a", "b")
	expect("one is gone", []string{"b"}, []string{"a"}, 1, 1, "own", "b")
	expect("one that is gone, of an account that did not change", []string{"b"}, []string{"a"}, 1, 0, "own", "b")
	account.Annotations = map[string]string{"x": "y"}
	if err := api.Update(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	seen()
	expect("somebody changed something else", []string{"b"}, nil, 1, 0, "own", "b")
	p.Forget(shop)
	expect("after the namespace was forgotten", []string{"b"}, nil, 1, 0, "own", "b")
	conflict = apierrors.NewConflict(schema.GroupResource{Resource: "serviceaccounts"}, "default", nil)
	if _, err := p.attach(t.Context(), shop, []string{"c"}, nil); steptest.Outcome(t, err) != "failed ApplyFailed: "+conflict.Error()+", after 1s" {
		t.Errorf("written by somebody else at the same time: %s", steptest.Outcome(t, err))
	}
	conflict = errors.New("away")
	if _, err := p.attach(t.Context(), shop, []string{"c"}, nil); err == nil || err.Error() != "naming the pull Secrets in service account kubeop-acme-shop/default: away" {
		t.Errorf("got %v", err)
	}
}

// TestProblemsOfSomeRegistriesAreReportedTogether, with the reason of the first.
func TestProblemsOfSomeRegistriesAreReportedTogether(t *testing.T) {
	if err := outcome([]error{nil, nil}); err != nil {
		t.Errorf("of none: %v", err)
	}
	missing, invalid := step.Stop(v1alpha1.SecretMissingReason, errors.New("secret a does not exist")), step.Stop(v1alpha1.SecretInvalidReason, errors.New("secret b has no password"))
	err := outcome([]error{nil, missing, invalid})
	if got := steptest.Outcome(t, err); got != "later steps run; failed SecretMissing: secret a does not exist\nsecret b has no password" {
		t.Errorf("got %q", got)
	}
	if _, reported := step.Failure(err); reported {
		t.Error("Ready reports it, although what is delivered stands")
	}
}

func TestACredentialThatIsMissingSaysWhoCanHelp(t *testing.T) {
	registry := func(secret string) *v1alpha1.Registry {
		return &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "of-" + secret}, Spec: v1alpha1.RegistrySpec{Host: "r.example.com", SecretRef: v1alpha1.LocalSecretReference{Name: secret}}}
	}
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: name}, Data: data}
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.Registry{}, bySecret, func(o client.Object) []string { return []string{o.(*v1alpha1.Registry).Spec.SecretRef.Name} }).
		WithObjects(registry("good"), registry("bad"), registry("none"), registry("away"), secret("away", nil),
			secret("good", map[string][]byte{"username": []byte("ann"), "password": []byte("hunter2"), "more": []byte("x")}), secret("bad", map[string][]byte{"username": []byte("ann")})).
		WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if key.Name == "away" {
				return errors.New("the API server is away")
			}
			return c.Get(ctx, key, o, options...)
		}}).Build()
	s := NewSecrets(api, api, api, "kubeop-system", clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
	content, err := s.Content(t.Context(), registry("good"))
	if want := `{"auths":{"r.example.com":{"username":"ann","password":"hunter2","auth":"YW5uOmh1bnRlcjI="}}}`; err != nil || len(content) != 1 || string(content[corev1.DockerConfigJsonKey]) != want {
		t.Errorf("got %s, %v, want %s", content, err, want)
	}
	for name, want := range map[string]string{
		"none": "stopped SecretMissing: secret kubeop-system/none of spec.secretRef does not exist: create it, or name another one in Git; copies in projects stay as they are; ",
		"bad":  "stopped SecretInvalid: secret kubeop-system/bad of spec.secretRef cannot be used, and copies in projects stay as they are: ",
		"away": "failed Failed: reading secret kubeop-system/away of spec.secretRef: ",
	} {
		content, err := s.Content(t.Context(), registry(name))
		if got := steptest.Outcome(t, err); content != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	fromGit := registry("none")
	fromGit.Annotations = map[string]string{v1alpha1.SecretRefAnnotation: "registries/of-none.yaml:6:3"}
	_, err = s.Content(t.Context(), fromGit)
	if want := "secret kubeop-system/none of spec.secretRef, at registries/of-none.yaml:6:3 of the platform repository, does not exist: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("of a file: got %v, want %s", err, want)
	}
	if woken := s.changed(t.Context(), secret("bad", nil)); len(woken) != 1 || woken[0].Name != "of-bad" {
		t.Errorf("a changed Secret wakes %v", woken)
	}
	if !s.named(t.Context(), "good") || s.named(t.Context(), "other") {
		t.Error("it is not known which Secrets are named")
	}
}

// TestTheSecretOfARegistryIsTakenAwayWhateverTheAccountNames: the tenant may write the account all the time.
func TestTheSecretOfARegistryIsTakenAwayWhateverTheAccountNames(t *testing.T) {
	labels := map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"}
	for name, conflict := range map[string]error{"it can be written": nil, "somebody else wrote it": apierrors.NewConflict(schema.GroupResource{Resource: "serviceaccounts"}, "default", nil)} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "default"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "kubeop-registry-a"}}}
		secret := func(registry string) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "kubeop-registry-" + registry, Labels: labels}}
		}
		stays := &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: v1alpha1.RegistrySpec{Host: "b.example.com", Tenants: []string{"acme"}}}
		api := kept(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			return errors.Join(conflict, c.Patch(ctx, o, patch, options...))
		}}, 0, account, secret("a"), secret("b"), stays)
		p := &Provider{Client: api, Direct: api, Deployer: func(string) (client.Client, error) { return api, nil },
			Version: func(context.Context, string, string, string) (string, error) { return "1", nil }}
		entries := []v1alpha1.InventoryEntry{entry("kubeop-registry-a", "Secret"), entry("kubeop-registry-b", "Secret")}
		held, err := p.Withdraw(t.Context(), Place{Tenant: &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, Namespace: shop, Labels: labels, Held: Held{secretsOf("a", "b"), entries}})
		want := Held{secretsOf("b"), entries[1:]}
		if conflict != nil { // What the account may still name stays recorded.
			want = Held{secretsOf("a", "b"), entries}
		}
		if diff := cmp.Diff(want, held); diff != "" || (err != nil) != (conflict != nil) {
			t.Errorf("%s: %v, -want +got:\n%s", name, err, diff)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(secret("a")), secret("a")); !apierrors.IsNotFound(err) {
			t.Errorf("%s: the Secret of a is there: %v", name, err)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(secret("b")), secret("b")); err != nil {
			t.Errorf("%s: the Secret of b: %v", name, err)
		}
	}
}

// TestAMissingPolicyTakesNoPullSecret: guardrails stay as they are while a policy that the tenant is under does not exist, and pods need their images then, too.
func TestAMissingPolicyTakesNoPullSecret(t *testing.T) {
	labels := map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"}
	registry := &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.RegistrySpec{Host: "a.example.com", Policies: []string{"strict"}}}
	for name, tc := range map[string]struct {
		under []string
		stays bool
	}{"under it": {[]string{"strict"}, true}, "under another": {[]string{"other"}, false}, "under none": {nil, false}} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "kubeop-registry-a", Labels: labels}}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "default"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: secret.Name}}}
		api := kept(t, interceptor.Funcs{}, 0, account, secret, registry)
		p := &Provider{Client: api, Direct: api, Deployer: func(string) (client.Client, error) { return api, nil },
			Version: func(context.Context, string, string, string) (string, error) { return "1", nil }}
		tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{Policies: tc.under}}
		_, err := p.Withdraw(t.Context(), Place{Tenant: tenant, Namespace: shop, Labels: labels, Held: Held{secretsOf("a"), []v1alpha1.InventoryEntry{entry("kubeop-registry-a", "Secret")}}})
		if got := api.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil || (got == nil) != tc.stays {
			t.Errorf("%s: %v; the Secret: %v", name, err, got)
		}
	}
}
