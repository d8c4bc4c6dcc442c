package app

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/build/scheduler"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/trials"
)

// buildFixture builds in this process.
type buildFixture struct {
	*fixture
	// built are the names of the functions that builds called. keys are the Secrets that they got.
	built, keys []string
	// hold delays builds until it is closed.
	hold chan struct{}
}

func newBuildFixture(t *testing.T, app *v1alpha1.App, objects ...client.Object) *buildFixture {
	t.Helper()
	b := &buildFixture{fixture: newFixture(t, app, interceptor.Funcs{}, objects...), hold: make(chan struct{})}
	close(b.hold)
	b.renderer.builder = &build.Builder{Trials: trials.New(t.TempDir(), "build"), Apart: apart.Runner{Run: b.run}, Now: b.clock.Now}
	b.renderer.inputs.Version = func(ctx context.Context, namespace, kind, name string) (string, error) {
		o := map[string]client.Object{inputs.ConfigMap: &corev1.ConfigMap{}, inputs.Secret: &corev1.Secret{}}[kind]
		err := b.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
		return o.GetResourceVersion(), client.IgnoreNotFound(err)
	}
	b.next()
	return b
}

// next begins another Reconcile.
func (b *buildFixture) next() {
	b.s = b.newScope(b.app)
	b.s.Owner.Tenant, b.s.Client, b.s.Limits = "acme", b.api, budget.Default()
}

// run runs a build. What it decrypts is "hunter22hunter22".
func (b *buildFixture) run(ctx context.Context, c apart.Call) ([]byte, error) {
	select {
	case <-b.hold:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	b.built = append(b.built, c.Name)
	if c.Name == build.Decrypts {
		c.Function = build.Decrypting(func(secret string, data map[string][]byte, _ http.RoundTripper) (decrypt.Decrypter, error) {
			b.keys = append(b.keys, secret+" "+string(data["a.agekey"]))
			return func(decrypt.Format, []byte) (decrypt.Decrypted, error) {
				return decrypt.Decrypted{Plain: []byte(strings.Replace(settings, "%", "hunter22hunter22", 1)), Secrets: []string{"hunter22hunter22"}}, nil
			}, nil
		})
	}
	return apart.Runner{}.Do(ctx, c)
}

// render renders until the build has ended, as Reconciles do that its end wakes, and describes how the step ends.
func (b *buildFixture) render() string {
	b.t.Helper()
	for range 600 {
		err := b.renderer.render(b.t.Context(), b.s)
		if end := b.ended(err); !errors.Is(err, scheduler.ErrUnfinished) && !strings.HasPrefix(end, "soon, ") {
			return end
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.t.Fatal("the build does not end")
	return ""
}

// rendered are the names of the objects, each with a value of its data or its label "tier".
func (b *buildFixture) rendered() (all []string) {
	for _, o := range b.s.objects {
		text := o.GetKind() + "/" + o.GetName()
		if data, ok := o.Object["data"].(map[string]any); ok {
			text += " " + data["a"].(string)
		}
		if tier := o.GetLabels()["tier"]; tier != "" {
			text += " " + tier
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: %}\n"

func gitApp(change ...func(*v1alpha1.GitSource)) *v1alpha1.App {
	return webApp(func(app *v1alpha1.App) {
		app.Spec.Type, app.Spec.Git = v1alpha1.AppGit, &v1alpha1.GitSource{URL: "https://git.example.com/web.git"}
		for _, c := range change {
			c(app.Spec.Git)
		}
	})
}

// inGit sets the only file of the Git repository.
func (b *buildFixture) inGit(revision, value string) {
	b.s.found.Files.FS = fstest.MapFS{"a.yaml": {Data: []byte(strings.Replace(settings, "%", value, 1))}}
	b.s.found.Files.Revision = revision
}

func TestEachTypeOfAppIsRendered(t *testing.T) {
	inline := func(texts ...string) *v1alpha1.RawSource {
		raw := &v1alpha1.RawSource{}
		for _, text := range texts {
			raw.Manifests = append(raw.Manifests, runtime.RawExtension{Raw: []byte(text)})
		}
		return raw
	}
	label := kustomize.Patch{
		Target: &kustomize.Selector{Kind: "Deployment"}, Patch: `[{"op": "add", "path": "/metadata/labels/tier", "value": "front"}]`,
	}
	for name, c := range map[string]struct {
		app  func(*v1alpha1.App)
		want string
		// objects are those of the rendered source, and apart whether another process built them.
		objects []string
		apart   bool
	}{
		"Image": {
			app: func(a *v1alpha1.App) {
				a.Spec.Type, a.Spec.Image = v1alpha1.AppImage, &v1alpha1.ImageSource{Reference: "registry.example.com/web:1"}
			},
			want: "done", objects: []string{"Deployment/web"},
		},
		"Image, patched": {
			app: func(a *v1alpha1.App) {
				a.Spec.Type = v1alpha1.AppImage
				a.Spec.Image = &v1alpha1.ImageSource{Reference: "registry.example.com/web:1", Patches: []kustomize.Patch{label}}
			},
			want: "done", objects: []string{"Deployment/web front"}, apart: true,
		},
		"Image, with a patch that does not fit": {
			app: func(a *v1alpha1.App) {
				a.Spec.Type = v1alpha1.AppImage
				a.Spec.Image = &v1alpha1.ImageSource{Reference: "registry.example.com/web:1", Patches: []kustomize.Patch{{Patch: `[{"op": "replace", "path": "/none/of/it", "value": 1}]`, Target: label.Target}}}
			},
			want: "stopped RenderFailed: spec.image: ", apart: true,
		},
		"Raw": {
			app: func(a *v1alpha1.App) {
				a.Spec.Type = v1alpha1.AppRaw
				a.Spec.Raw = inline(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"a":"b"}}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"more"}}`)
			},
			want: "done", objects: []string{"ConfigMap/more", "ConfigMap/settings b"},
		},
		"Raw, without a kind": {
			app: func(a *v1alpha1.App) {
				a.Spec.Type, a.Spec.Raw = v1alpha1.AppRaw, inline(`{"apiVersion":"v1","metadata":{"name":"settings"}}`)
			},
			want: "stopped RenderFailed: ",
		},
		"another": {app: func(a *v1alpha1.App) { a.Spec.Type = "Docker" }, want: "stopped RenderFailed: type Docker has no objects of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuildFixture(t, webApp(c.app))
			if got := b.render(); !endsAs(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if diff := cmp.Diff(c.objects, b.rendered()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if apart := len(b.built) > 0; apart != c.apart {
				t.Errorf("built in another process: %v, want %t", b.built, c.apart)
			}
		})
	}
}

// TestAnImageThatThePolicyChoseIsDelivered in place of that of the spec.
func TestAnImageThatThePolicyChoseIsDelivered(t *testing.T) {
	b := newBuildFixture(t, webApp(func(a *v1alpha1.App) {
		a.Spec.Type, a.Spec.Image = v1alpha1.AppImage, &v1alpha1.ImageSource{Reference: "registry.example.com/web:1"}
	}))
	b.s.found.Reference = "registry.example.com/web:1.4"
	if got := b.render(); got != "done" || len(b.s.objects) != 1 {
		t.Fatalf("%s: %v", got, b.rendered())
	}
	if text, err := b.s.objects[0].MarshalJSON(); err != nil || !strings.Contains(string(text), `"registry.example.com/web:1.4"`) {
		t.Errorf("%v: %s", err, text)
	}
}

func TestVariablesOfAGitAppComeFromItsNamespace(t *testing.T) {
	variable := configMap("vars")
	variable.Data = map[string]string{"color": "red"}
	for name, c := range map[string]struct {
		from    v1alpha1.SubstituteReference
		want    string
		objects []string
	}{
		"there":             {v1alpha1.SubstituteReference{Kind: inputs.ConfigMap, Name: "vars"}, "done", []string{"ConfigMap/settings red"}},
		"missing":           {v1alpha1.SubstituteReference{Kind: inputs.ConfigMap, Name: "none"}, "failed ValuesFailed: ", nil},
		"missing, optional": {v1alpha1.SubstituteReference{Kind: inputs.ConfigMap, Name: "none", Optional: true}, "done", []string{"ConfigMap/settings blue"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuildFixture(t, gitApp(func(g *v1alpha1.GitSource) { g.SubstituteFrom = []v1alpha1.SubstituteReference{c.from} }), variable)
			b.inGit("main@sha1:1", "'${color:=blue}'")
			if got := b.render(); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if diff := cmp.Diff(c.objects, b.rendered()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnUnchangedSourceIsBuiltAgainOnlyOnRequest, once per request.
func TestAnUnchangedSourceIsBuiltAgainOnlyOnRequest(t *testing.T) {
	b := newBuildFixture(t, gitApp(func(g *v1alpha1.GitSource) { g.Substitute = map[string]string{"color": "red"} }))
	for _, c := range []struct {
		when   string
		change func()
		builds int
	}{
		{"at first", func() {}, 1},
		{"unchanged", func() {}, 1},
		{"on request", func() { b.app.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "1"} }, 2},
		{"at the same request", func() {}, 2},
		{"at the next request", func() { b.app.Annotations[meta.ReconcileRequestAnnotation] = "2" }, 3},
		{"after the request", func() { b.app.Status.LastHandledReconcileAt = "2" }, 3},
		{"for another generation", func() { b.app.Generation++ }, 4},
	} {
		c.change()
		b.next()
		b.inGit("main@sha1:1", "'${color}'")
		if got := b.render(); got != "done" || len(b.built) != c.builds {
			t.Errorf("%s: %s, built %d times, want %d", c.when, got, len(b.built), c.builds)
		}
		if diff := cmp.Diff([]string{"ConfigMap/settings red"}, b.rendered()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.when, diff)
		}
	}
}

// TestDecryptedValuesAreMaskedInMessages, and only the process that decrypts gets the keys.
func TestDecryptedValuesAreMaskedInMessages(t *testing.T) {
	keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "sops"}, Data: map[string][]byte{"a.agekey": []byte("AGE-1")}}
	app := gitApp(func(g *v1alpha1.GitSource) {
		g.Decryption = &v1alpha1.Decryption{Provider: "sops", SecretRef: v1alpha1.LocalSecretReference{Name: "sops"}}
	})
	b := newBuildFixture(t, app.DeepCopy(), keys)
	b.inGit("main@sha1:1", `"ENC[AES256_GCM,data:x]"}`+"\nsops: {mac: x")
	if got := b.render(); got != "done" || !slices.Equal(b.rendered(), []string{"ConfigMap/settings hunter22hunter22"}) {
		t.Fatalf("%s: %v", got, b.rendered())
	}
	if diff := cmp.Diff([]string{shop + "/sops AGE-1"}, b.keys); diff != "" || !slices.Equal(b.built, []string{build.Decrypts}) {
		t.Errorf("built by %v with keys %v", b.built, b.keys)
	}
	if got := b.s.Mask("cannot log in with hunter22hunter22"); got != "cannot log in with ***" {
		t.Errorf("a message says %q", got)
	}
	b = newBuildFixture(t, app)
	b.inGit("main@sha1:1", "b")
	want := "failed DecryptionFailed: decryption.secretRef: Secret sops does not exist in this namespace: create it, or correct the name in app.yaml; an owner of the tenant with the role admin, " +
		"or an administrator of the cluster, may run: kubectl create secret generic sops -n kubeop-acme-shop --from-literal=KEY=...; nothing is decrypted without it"
	if got := b.render(); got != want || len(b.built) > 0 {
		t.Errorf("without keys: got %q, built %v", got, b.built)
	}
}

// TestALongBuildIsReportedAfterAWhile.
func TestALongBuildIsReportedAfterAWhile(t *testing.T) {
	b := newBuildFixture(t, gitApp(func(g *v1alpha1.GitSource) { g.Substitute = map[string]string{"color": "red"} }))
	b.hold = make(chan struct{})
	b.inGit("main@sha1:1", "'${color}'")
	look := func() string { return b.ended(b.renderer.render(t.Context(), b.s)) }
	if got := look(); got != "soon, after 2s" {
		t.Errorf("at first: %s", got)
	}
	b.clock.Step(3 * time.Second)
	if got := look(); got != "waits Progressing: builds its manifests: the build has not finished yet, after 15s" {
		t.Errorf("later: %s", got)
	}
	close(b.hold)
	if got := b.render(); got != "done" || len(b.built) != 1 {
		t.Errorf("%s, built %d times", got, len(b.built))
	}
}

// TestABuildThatWaitsForItsTurnIsReportedLate: the tenant has as many builds as it may.
func TestABuildThatWaitsForItsTurnIsReportedLate(t *testing.T) {
	b := newBuildFixture(t, gitApp(func(g *v1alpha1.GitSource) { g.Substitute = map[string]string{"color": "red"} }))
	end := make(chan struct{})
	defer func() { // Otherwise the App's build would begin when the others end, after the test.
		b.renderer.builds.Forget(string(b.app.UID))
		close(end)
	}()
	for _, other := range []string{"1", "2"} {
		_, _ = b.renderer.builds.Do(scheduler.Task[made]{
			Key: other, Input: "1", Tenant: "acme", Within: time.Minute, Wake: func() {},
			Run: func(context.Context) (made, error) { <-end; return made{}, nil },
		})
	}
	b.inGit("main@sha1:1", "'${color}'")
	b.app.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "1"}
	look := func() string { return b.ended(b.renderer.render(t.Context(), b.s)) }
	if got := look(); got != "soon, after 30s" || !b.s.found.InLine {
		t.Errorf("at first: %s, in line %t", got, b.s.found.InLine)
	}
	b.clock.Step(31 * time.Second)
	if got := look(); got != "waits WaitingForTurn: waits for its turn: 8 builds run at once, 2 of a tenant: as many builds run as may, after 1m0s" {
		t.Errorf("later: %s", got)
	}
	if b.renderer.retried.Get(b.app).request != "" {
		t.Error("the request counts as tried although the build did not begin")
	}
}
