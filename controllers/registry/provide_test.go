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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

var shopLabels = map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"}

// provided is a project over an API server that applies.
type provided struct {
	*Provider
	api client.WithWatch
	Place
	// recorded are the names of what the project may have, each time that it was recorded.
	recorded []string
	// deployers is how often a client of the deployer was asked for.
	deployers int
}

func newProvided(t *testing.T, f *steptest.Failing, held Held, objects ...client.Object) *provided {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	objects = append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "default"}})
	p := &provided{api: fake.NewClientBuilder().WithScheme(scheme).WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithReturnManagedFields().
		WithIndex(&v1alpha1.Registry{}, bySecret, func(o client.Object) []string { return []string{o.(*v1alpha1.Registry).Spec.SecretRef.Name} }).
		WithIndex(&v1alpha1.Project{}, byRegistry, func(o client.Object) []string { return registriesOf(o) }).
		WithStatusSubresource(&v1alpha1.Registry{}).WithObjects(objects...).Build()}
	away := p.api
	if f != nil {
		away = f.Client(p.api)
	}
	live := func(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(kind)
		if err := p.api.Get(ctx, key, o); apierrors.IsNotFound(err) {
			return nil, true, nil
		} else if err != nil {
			return nil, false, err
		}
		return o, true, nil
	}
	p.Place = Place{Tenant: &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, Namespace: shop, Labels: shopLabels, Held: held, Record: func(_ context.Context, held Held) error {
		p.recorded = append(p.recorded, strings.Join(held.names(), " "))
		return nil
	}}
	p.Provider = &Provider{
		Client: away, Direct: away, Secrets: NewSecrets(p.api, away, p.api, "kubeop-system", clocktesting.NewFakePassiveClock(time.Unix(1000, 0))), Applier: &apply.Applier{Live: live},
		Deployer: func(string) (client.Client, error) { p.deployers++; return away, nil },
		Version:  func(context.Context, string, string, string) (string, error) { return "1", nil },
	}
	return p
}

// credential is a Registry of acme, with its Secret.
func credential(name string) []client.Object {
	return []client.Object{
		&v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RegistrySpec{
			Host: name + ".example.com", Tenants: []string{"acme"}, SecretRef: v1alpha1.LocalSecretReference{Name: "of-" + name},
		}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: "of-" + name}, Data: map[string][]byte{"username": []byte("ann"), "password": []byte("hunter2")}},
	}
}

// pull is the pull Secret of a Registry, with labels.
func pull(registry string, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "kubeop-registry-" + registry, Labels: labels}}
}

// there are the pull Secrets in the namespace, and what the default service account names.
func (p *provided) there(t *testing.T) string {
	t.Helper()
	secrets, account := &corev1.SecretList{}, &corev1.ServiceAccount{}
	if err := errors.Join(p.api.List(t.Context(), secrets, client.InNamespace(shop)), p.api.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "default"}, account)); err != nil {
		t.Fatal(err)
	}
	var names, named []string
	for i := range secrets.Items {
		names = append(names, secrets.Items[i].Name)
	}
	for _, ref := range account.ImagePullSecrets {
		named = append(named, ref.Name)
	}
	return strings.Join(names, " ") + "; named " + strings.Join(named, " ")
}

// TestAProjectGetsAndLosesPullSecrets, and its status says so.
func TestAProjectGetsAndLosesPullSecrets(t *testing.T) {
	gone := Held{Secrets: secretsOf("gone"), Entries: []v1alpha1.InventoryEntry{entry("kubeop-registry-gone", "Secret")}}
	p := newProvided(t, nil, gone, append(credential("a"), pull("gone", shopLabels))...)
	held, err := p.Provide(t.Context(), p.Place)
	if err != nil || p.there(t) != "kubeop-registry-a; named kubeop-registry-a" {
		t.Errorf("there is %s: %v", p.there(t), err)
	}
	if diff := cmp.Diff(secretsOf("a"), held.Secrets); diff != "" || len(held.Entries) != 1 || held.Entries[0].Digest == "" {
		t.Errorf("it has %+v", held)
	}
	if !slices.Equal(p.recorded, []string{"kubeop-registry-gone kubeop-registry-a"}) {
		t.Errorf("before it was made, recorded were %v", p.recorded)
	}
	p.Held = held
	if again, err := p.Provide(t.Context(), p.Place); err != nil || len(p.recorded) != 1 || cmp.Diff(held, again) != "" {
		t.Errorf("again it has %+v, recorded %v: %v", again, p.recorded, err)
	}
}

// TestAProjectWithoutRegistriesNeedsNoDeployer: most have none.
func TestAProjectWithoutRegistriesNeedsNoDeployer(t *testing.T) {
	p := newProvided(t, nil, Held{})
	if held, err := p.Provide(t.Context(), p.Place); err != nil || len(held.names()) != 0 || p.deployers != 0 {
		t.Errorf("it has %+v, and %d clients were asked for: %v", held, p.deployers, err)
	}
}

// TestACopyStaysWhileItsCredentialIsMissing. A Secret of another owner is not changed.
func TestACopyStaysWhileItsCredentialIsMissing(t *testing.T) {
	held := Held{Secrets: secretsOf("a", "b"), Entries: []v1alpha1.InventoryEntry{entry("kubeop-registry-a", "Secret"), entry("kubeop-registry-b", "Secret")}}
	held.Entries[0].Digest, held.Entries[1].Digest = "old", "old"
	another := map[string]string{v1alpha1.TenantLabel: "beta", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: "web"}
	missing := credential("b")[:1]
	p := newProvided(t, nil, held, slices.Concat(credential("a"), missing, []client.Object{pull("a", another), pull("b", shopLabels)})...)
	now, err := p.Provide(t.Context(), p.Place)
	got := steptest.Outcome(t, err)
	if !strings.HasPrefix(got, "later steps run; failed PullSecretRefused: ") || !strings.Contains(got, "secret kubeop-system/of-b of spec.secretRef does not exist") {
		t.Errorf("got %q", got)
	}
	if diff := cmp.Diff(Held{Secrets: secretsOf("b"), Entries: held.Entries[1:]}, now); diff != "" {
		t.Errorf("it has (-want +got):\n%s", diff)
	}
	if got := p.there(t); got != "kubeop-registry-a kubeop-registry-b; named kubeop-registry-b" {
		t.Errorf("there is %s", got)
	}
}

// TestTheOnlyCopyStaysWhileItsCredentialIsMissing: pods need it to start.
func TestTheOnlyCopyStaysWhileItsCredentialIsMissing(t *testing.T) {
	held := Held{Secrets: secretsOf("a"), Entries: []v1alpha1.InventoryEntry{entry("kubeop-registry-a", "Secret")}}
	held.Entries[0].Digest = "old"
	p := newProvided(t, nil, held, credential("a")[0], pull("a", shopLabels))
	if now, _ := p.Provide(t.Context(), p.Place); cmp.Diff(held, now) != "" || p.there(t) != "kubeop-registry-a; named kubeop-registry-a" {
		t.Errorf("it has %+v, and there is %s", now, p.there(t))
	}
}

// TestNoErrorOfARequestIsLost, and what a project has stays recorded with it: a forgotten pull Secret would never be taken away.
func TestNoErrorOfARequestIsLost(t *testing.T) {
	before := Held{Secrets: secretsOf("gone"), Entries: []v1alpha1.InventoryEntry{entry("kubeop-registry-gone", "Secret")}}
	for name, c := range map[string]struct {
		do    func(*provided) (Held, error)
		least int
	}{
		"provide":  {func(p *provided) (Held, error) { return p.Provide(t.Context(), p.Place) }, 8},
		"withdraw": {func(p *provided) (Held, error) { return p.Withdraw(t.Context(), p.Place) }, 5},
	} {
		t.Run(name, func(t *testing.T) {
			requests := steptest.EachRequest(t, func(f *steptest.Failing) error {
				p := newProvided(t, f, before, append(credential("a"), pull("gone", shopLabels))...)
				held, err := c.do(p)
				if err != nil && !slices.Contains(held.names(), "kubeop-registry-gone") {
					t.Errorf("it has %v with the error %v", held.names(), err)
				}
				return err
			})
			if requests < c.least {
				t.Errorf("%d requests, want %d at least", requests, c.least)
			}
		})
	}
	used := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}, Status: v1alpha1.ProjectStatus{PullSecrets: secretsOf("a")}}
	for name, do := range map[string]func(*Reconciler, *scope) error{
		"read":         func(r *Reconciler, s *scope) error { return r.readSecret(t.Context(), s) },
		"awaitRemoval": func(r *Reconciler, s *scope) error { return r.awaitRemoval(t.Context(), s) },
	} {
		if requests := steptest.EachRequest(t, func(f *steptest.Failing) error {
			p := newProvided(t, f, Held{}, append(credential("a"), used.DeepCopy())...)
			return do(&Reconciler{Client: p.Client, Secrets: p.Secrets}, &scope{registry: credential("a")[0].(*v1alpha1.Registry)})
		}); requests == 0 {
			t.Errorf("%s makes no request", name)
		}
	}
	for name, take := range map[string]func(*provided){
		"the client of the deployer": func(p *provided) {
			p.Deployer = func(string) (client.Client, error) { return nil, errors.New("away") }
		},
		"the version of the account": func(p *provided) {
			p.Version = func(context.Context, string, string, string) (string, error) { return "", errors.New("away") }
		},
		"the record": func(p *provided) {
			p.Record = func(context.Context, Held) error { return errors.New("away") }
		},
	} {
		p := newProvided(t, nil, before, append(credential("a"), pull("gone", shopLabels))...)
		take(p)
		if held, err := p.Provide(t.Context(), p.Place); err == nil || !slices.Contains(held.names(), "kubeop-registry-gone") {
			t.Errorf("without %s it has %v: %v", name, held.names(), err)
		}
		if name == "the record" {
			continue
		}
		if held, err := p.Withdraw(t.Context(), p.Place); err == nil || !slices.Contains(held.names(), "kubeop-registry-gone") {
			t.Errorf("without %s it has %v after the withdrawal: %v", name, held.names(), err)
		}
	}
}

// TestSecretsWrittenBeforeAnErrorAreRecorded, so that the next pass knows them as its own.
func TestSecretsWrittenBeforeAnErrorAreRecorded(t *testing.T) {
	p := newProvided(t, nil, Held{}, slices.Concat(credential("a"), credential("b"))...)
	p.Record = func(_ context.Context, held Held) error {
		if slices.Contains(held.names(), "kubeop-registry-b") {
			return errors.New("away")
		}
		return nil
	}
	held, err := p.Provide(t.Context(), p.Place)
	if err == nil || !slices.ContainsFunc(held.Entries, func(e v1alpha1.InventoryEntry) bool {
		return e.ID == entry("kubeop-registry-a", "Secret").ID && e.Digest != ""
	}) {
		t.Errorf("it has %+v: %v", held, err)
	}
}

// TestOneSecretThatCannotBeWrittenHoldsUpNoOther: the others are written, and pods get them. All errors are returned, and what there was stays.
func TestOneSecretThatCannotBeWrittenHoldsUpNoOther(t *testing.T) {
	held := Held{Secrets: secretsOf("a"), Entries: []v1alpha1.InventoryEntry{entry("kubeop-registry-a", "Secret")}}
	held.Entries[0].Digest = "old"
	p := newProvided(t, nil, held, slices.Concat(credential("a"), credential("b"), credential("c"), []client.Object{pull("a", shopLabels)})...)
	p.Secrets = NewSecrets(p.api, interceptor.NewClient(p.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if key.Name != "of-b" {
				return fmt.Errorf("%s is away", key.Name)
			}
			return c.Get(ctx, key, o, options...)
		},
	}), p.api, "kubeop-system", clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
	now, err := p.Provide(t.Context(), p.Place)
	if !step.Fails(err) || !strings.Contains(err.Error(), "of-a is away") || !strings.Contains(err.Error(), "of-c is away") {
		t.Errorf("got %v", err)
	}
	if got := p.there(t); got != "kubeop-registry-a kubeop-registry-b; named kubeop-registry-b" {
		t.Errorf("there is %s", got)
	}
	if diff := cmp.Diff(secretsOf("a", "b"), now.Secrets); diff != "" || len(now.Entries) != 2 {
		t.Errorf("it has %+v (-want +got):\n%s", now, diff)
	}
}

// TestOneSecretThatCannotBeDeletedHoldsUpNoOther: a tenant may not keep credentials because of another registry.
func TestOneSecretThatCannotBeDeletedHoldsUpNoOther(t *testing.T) {
	p := newProvided(t, nil, Held{Secrets: secretsOf("a", "b", "c")}, pull("a", shopLabels), pull("b", shopLabels), pull("c", shopLabels))
	deployer := interceptor.NewClient(p.api, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if o.GetName() != "kubeop-registry-b" {
				return fmt.Errorf("%s stays", o.GetName())
			}
			return c.Delete(ctx, o, options...)
		},
	})
	p.Deployer = func(string) (client.Client, error) { return deployer, nil }
	_, err := p.Withdraw(t.Context(), p.Place)
	if err == nil || !strings.Contains(err.Error(), "kubeop-registry-a stays") || !strings.Contains(err.Error(), "kubeop-registry-c stays") {
		t.Errorf("got %v", err)
	}
	if got := p.there(t); got != "kubeop-registry-a kubeop-registry-c; named " {
		t.Errorf("there is %s", got)
	}
}

// TestOnlySecretsOfTheProjectAreTakenAway, whatever other labels people gave them. One that is gone already holds nothing up.
func TestOnlySecretsOfTheProjectAreTakenAway(t *testing.T) {
	labelled := map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", "team": "web"}
	another := map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: "web"}
	held := Held{Secrets: secretsOf("another", "away", "labelled")}
	p := newProvided(t, nil, held, pull("labelled", labelled), pull("another", another))
	left, err := p.Withdraw(t.Context(), p.Place)
	if err != nil || len(left.names()) != 0 || p.there(t) != "kubeop-registry-another; named " {
		t.Errorf("it has %v, and there is %s: %v", left.names(), p.there(t), err)
	}
}

// TestAChangedSecretIsReadAnew, although the watch may not show its new version yet.
func TestAChangedSecretIsReadAnew(t *testing.T) {
	objects := credential("a")
	p := newProvided(t, nil, Held{}, objects...)
	registry := objects[0].(*v1alpha1.Registry)
	p.Secrets = NewSecrets(p.api, p.api, newProvided(t, nil, Held{}, objects...).api, "kubeop-system", clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
	old, err := p.Secrets.Content(t.Context(), registry)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	if err := p.api.Get(t.Context(), client.ObjectKeyFromObject(objects[1]), secret); err != nil {
		t.Fatal(err)
	}
	secret.Data["password"] = []byte("hunter3")
	if err := p.api.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	p.Secrets.Changed(t.Context(), secret)
	if now, err := p.Secrets.Content(t.Context(), registry); err != nil || cmp.Diff(old, now) == "" {
		t.Errorf("got the old content: %v", err)
	}
}

// TestAnAppThatDeliversTheListOfTheAccountIsNamed, and nothing is written.
func TestAnAppThatDeliversTheListOfTheAccountIsNamed(t *testing.T) {
	for app, want := range map[string]string{
		"web": "stopped AccountDelivered: app web delivers the default service account with imagePullSecrets: add kubeop-registry-a to them in Git, or take the field out of it", "": "done",
	} {
		p := newProvided(t, nil, Held{})
		delivered := core.ServiceAccount("default", shop).WithImagePullSecrets(core.LocalObjectReference().WithName("own"))
		if app != "" {
			delivered = delivered.WithLabels(map[string]string{v1alpha1.AppLabel: app})
		}
		if err := p.api.Apply(t.Context(), delivered, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
			t.Fatal(err)
		}
		refused, err := p.attach(t.Context(), shop, []string{"kubeop-registry-a"}, nil)
		if got := steptest.Outcome(t, refused); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		if named := p.there(t) == "; named own kubeop-registry-a"; named != (app == "") {
			t.Errorf("of app %q there is %s", app, p.there(t))
		}
	}
}

// TestARegistryReportsItsSecretAndGoesWhenItIsDeleted, unless a project still has its credentials.
func TestARegistryReportsItsSecretAndGoesWhenItIsDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		deleted bool
		used    bool
		gone    bool
		ready   metav1.ConditionStatus
	}{
		"in use": {used: true, ready: metav1.ConditionTrue}, "deleted and in use": {deleted: true, used: true, ready: metav1.ConditionUnknown}, "deleted": {deleted: true, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := credential("a")
			objects[0].SetFinalizers([]string{v1alpha1.Finalizer})
			if c.used {
				objects = append(objects, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}, Status: v1alpha1.ProjectStatus{PullSecrets: secretsOf("a")}})
			}
			p := newProvided(t, nil, Held{}, objects...)
			registry := &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			if c.deleted {
				if err := p.api.Delete(t.Context(), registry); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.api.Get(t.Context(), client.ObjectKeyFromObject(registry), registry); err != nil {
				t.Fatal(err)
			}
			r := &Reconciler{Client: p.api, Secrets: p.Secrets, Steps: &step.Runner{Client: p.api, Events: events.NewFakeRecorder(9), Clock: clocktesting.NewFakeClock(time.Unix(1000, 0))}}
			if _, err := r.Reconcile(t.Context(), registry); err != nil {
				t.Fatal(err)
			}
			err := p.api.Get(t.Context(), client.ObjectKeyFromObject(registry), registry)
			if apierrors.IsNotFound(err) != c.gone {
				t.Fatalf("it is gone: %v", err)
			}
			if c.gone {
				return
			}
			if ready := slices.IndexFunc(registry.Status.Conditions, func(at metav1.Condition) bool { return at.Type == v1alpha1.ReadyCondition && at.Status == c.ready }); ready < 0 {
				t.Errorf("the conditions are %+v", registry.Status.Conditions)
			}
		})
	}
}

// TestTheProjectsOfARegistryAreSorted by what a message has of them.
func TestTheProjectsOfARegistryAreSorted(t *testing.T) {
	p := newProvided(t, nil, Held{}, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}, Status: v1alpha1.ProjectStatus{PullSecrets: secretsOf("a")}},
		&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-2", Name: "shop"}, Status: v1alpha1.ProjectStatus{PullSecrets: secretsOf("a")}})
	s := &scope{registry: &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}
	if err := (&Reconciler{Client: p.api}).count(t.Context(), s); err != nil || !slices.Equal(s.projects, []string{"acme-2/shop", "acme/shop"}) {
		t.Errorf("got %v, %v", s.projects, err)
	}
}
