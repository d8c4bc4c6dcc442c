package source

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/cosign"
	"github.com/kubeop/kubeop/delivery/guardrails"
	ocitest "github.com/kubeop/kubeop/internal/testenv/sources"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// podOf is a pod that runs an image.
func podOf(image string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": image}}}}}
}

// TestAHelmActionWaitsForTheRegistries of all images, and for one that does not answer only as long as it may: it says for which.
func TestAHelmActionWaitsForTheRegistries(t *testing.T) {
	w, key, hang := newWorld(t), ocitest.NewSigner(t), make(chan struct{})
	var slow atomic.Bool
	slow.Store(true)
	server := ocitest.ServeOCI(t, func(served http.Handler) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			if slow.Load() {
				select {
				case <-hang:
				case <-req.Context().Done():
				}
			}
			served.ServeHTTP(rw, req)
		}))
	})
	host := server.Listener.Addr().String()
	w.Cosign = cosign.NewVerifier(w.network(), []string{host}, nil)
	digest, other := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	server.SignTagged(t, digest, key)
	spec := guardrails.Of([]v1alpha1.Policy{{ObjectMeta: metav1.ObjectMeta{Name: "from"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Images: &v1alpha1.ImageRules{Verify: []v1alpha1.SignatureRule{{Images: []string{host}, Keys: []string{key.Public()}}}},
	}}}})
	signed, unsigned := host+"/charts/web@"+digest, host+"/charts/web@"+other
	await := func(ctx context.Context) (*subject.Subject, error) {
		s := w.subjects.New(appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppHelm}))
		s.Client, s.Owner.Tenant, s.Guardrails = w.api, "acme", &spec
		apart := s.Apart()
		return apart, w.AwaitVerified(ctx, apart, []*unstructured.Unstructured{podOf(signed), podOf(unsigned), podOf(signed)})
	}

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	time.AfterFunc(100*time.Millisecond, func() { w.clock.Step(step.Quiet + time.Second) })
	if _, err := await(ctx); err == nil || !step.Waits(err) || err.Error() != "verifies the signatures of image "+unsigned {
		t.Errorf("the registry did not answer in time: %v", err)
	}

	slow.Store(false)
	close(hang)
	s, err := await(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if list := s.Guardrails.Signed; len(list) != 1 || len(list[0].Images) != 1 || list[0].Images[0] != signed {
		t.Errorf("listed are %v", list)
	}
	if why := w.Unsigned(s.App); len(why) != 1 || why[unsigned] != "it has no signature in its registry" {
		t.Errorf("without a signature are %v", why)
	}
	if len(spec.Signed) != 0 {
		t.Errorf("the rules of the Reconcile were changed: %v", spec.Signed)
	}
}

// TestADependencyWhoseSignaturesCannotBeVerifiedIsRefused, before its registry is asked; one of another registry is not.
func TestADependencyWhoseSignaturesCannotBeVerifiedIsRefused(t *testing.T) {
	_, server, _ := pushed(t, map[string]string{"Chart.yaml": chartYAML + "dependencies:\n- {name: web, version: 1.0.0, repository: 'oci://127.0.0.1:1/charts'}\n"})
	w := newWorld(t)
	app := appOf("shop", v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{URL: server.RepoURL()}}})
	for pattern, refused := range map[string]bool{"127.0.0.1:1/charts": true, "127.0.0.1:2": false} {
		rule := v1alpha1.SignatureRule{Images: []string{pattern}, Keys: []string{"k"}}
		spec := guardrails.Of([]v1alpha1.Policy{{ObjectMeta: metav1.ObjectMeta{Name: "from"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
			Images: &v1alpha1.ImageRules{Verify: []v1alpha1.SignatureRule{rule}},
		}}}})
		w.guardrails = &spec
		_, end := w.fetch(app)
		want := fmt.Sprintf("stopped NotAllowed: reading the chart's dependencies: .: dependency web: Chart/web is fetched from oci://127.0.0.1:1/charts/web, which has to be signed, and its signatures "+
			"cannot be verified: put the chart into charts/ of the chart that depends on it, in Git"+remedy, "images.verify")
		if (end == want) != refused || !refused && strings.Contains(end, "NotAllowed") {
			t.Errorf("with the pattern %s:\ngot  %s\nwant %s", pattern, end, want)
		}
	}
}

// TestAChartAndAnArtifactHaveToBeSigned before anything of them is used. Their registry is asked with the Secret that the App names for it.
func TestAChartAndAnArtifactHaveToBeSigned(t *testing.T) {
	for _, name := range []string{"chart", "artifact"} {
		t.Run(name, func(t *testing.T) {
			l, key := newLocked(t), ocitest.NewSigner(t)
			own := held("locked", l.host(), "first-password")
			own.Name = "own"
			app, ref := l.apps()[name], &v1alpha1.LocalSecretReference{Name: "own"}
			tag := "1.2.3"
			if oci := app.Spec.Git; oci != nil {
				oci.OCI.SecretRef, oci.OCI.Insecure, tag = ref, true, oci.OCI.Tag
			} else {
				app.Spec.Helm.SecretRef, app.Spec.Helm.Insecure = ref, true
			}
			w := l.world(t)
			w.set(own)
			w.Cosign = cosign.NewVerifier(w.network(), nil, nil)
			is := l.Repository() + "/web@" + ocitest.DigestOf(l.Manifests[tag])
			look := func(what string, action v1alpha1.PolicyAction, want string, broken int) {
				t.Helper()
				spec := wanting(l.host(), action, key)
				w.guardrails = &spec
				found, end := w.fetch(app)
				if !strings.HasPrefix(end, want) || len(found.Broken) != broken || broken > 0 && found.Broken[0].Object != "App/"+name || (found.Revision == "") != (want != "done") {
					t.Errorf("%s: %s at %q with %v, want %s", what, end, found.Revision, found.Broken, want)
				}
			}
			const why = ", which has to be signed: it has no signature in its registry"
			look("not signed", v1alpha1.DenyAction, "stopped NotAllowed: App/"+name+" is made from "+is+why, 1)
			look("not signed, with a warning", v1alpha1.WarnAction, "done", 1)
			l.SignTagged(t, ocitest.DigestOf(l.Manifests[tag]), key)
			w.clock.Step(5 * time.Minute)
			look("signed", v1alpha1.DenyAction, "done", 0)

			allow := l.Allow
			l.Allow = func(req *http.Request) bool { return allow(req) && !strings.Contains(req.URL.Path, "sha256-") }
			key = ocitest.NewSigner(t) // By other rules, the registry is asked again.
			look("the registry does not say", v1alpha1.DenyAction, "stopped AuthenticationFailed: verifying the signatures of "+is+": ", 0)
			look("the registry does not say, with a warning", v1alpha1.WarnAction, "done", 1)
		})
	}
}

// TestARegistryIsAskedAboutSignaturesAgainWithOtherCredentials at once.
func TestARegistryIsAskedAboutSignaturesAgainWithOtherCredentials(t *testing.T) {
	l, key := newLocked(t), ocitest.NewSigner(t)
	image := l.host() + "/charts/web@" + ocitest.DigestOf(l.Manifests["1.2.3"])
	l.SignTagged(t, ocitest.DigestOf(l.Manifests["1.2.3"]), key)
	spec := wanting(l.host(), v1alpha1.DenyAction, key)
	own := func(password string) *corev1.Secret {
		secret := held("locked", l.host(), password)
		secret.Name = "own"
		return secret
	}
	policy := v1alpha1.AppSpec{Image: &v1alpha1.ImageSource{Reference: l.host() + "/charts/web", Policy: &v1alpha1.ImagePolicy{SemVer: "1.x"}, PullSecrets: []v1alpha1.LocalSecretReference{{Name: "own"}}}}
	for name, c := range map[string]struct {
		spec   v1alpha1.AppSpec
		pulls  []v1alpha1.PullSecret
		secret func(password string) *corev1.Secret
	}{
		"of a Registry": {v1alpha1.AppSpec{Type: v1alpha1.AppHelm}, []v1alpha1.PullSecret{{Registry: "locked", Host: l.host(), Insecure: true}}, func(p string) *corev1.Secret { return held("locked", l.host(), p) }},
		"of the App":    {policy, nil, own},
	} {
		t.Run(name, func(t *testing.T) {
			w := l.world(t, c.pulls...)
			w.Cosign = cosign.NewVerifier(w.network(), []string{l.host()}, nil)
			look := func(password string) string {
				w.set(c.secret(password))
				s := w.subjects.New(appOf("web", c.spec))
				s.Client, s.Owner.Tenant, s.Guardrails, s.PullSecrets = w.api, "acme", &spec, c.pulls
				return steptest.Outcome(t, w.AwaitVerified(t.Context(), s.Apart(), []*unstructured.Unstructured{podOf(image)}))
			}
			if end := look("wrong-password"); !strings.Contains(end, "verifying the signatures of image "+image+", which is tried again: ") {
				t.Errorf("with a wrong password: %s", end)
			}
			if end := look("first-password"); end != "done" {
				t.Errorf("with the right one: %s", end)
			}
		})
	}
}

// TestVerifiedImagesAreListedUnderTheirRules, once for each image, and by the rules as they are in the cluster.
func TestVerifiedImagesAreListedUnderTheirRules(t *testing.T) {
	key, server := ocitest.NewSigner(t), ocitest.ServeOCI(t, httptest.NewServer)
	host, digest := server.Listener.Addr().String(), "sha256:"+strings.Repeat("a", 64)
	server.SignTagged(t, digest, key)
	image := host + "/charts/web@" + digest
	spec := wanting(host, v1alpha1.DenyAction, key)
	w := newWorld(t)
	w.Cosign = cosign.NewVerifier(w.network(), []string{host}, nil)
	s, end := w.verified(&spec, podOf(image))
	want := []v1alpha1.SignedImages{{Signatures: spec.Deny[0].Signatures, Images: []string{image}}}
	if end != "done" || !reflect.DeepEqual(s.Guardrails.Signed, want) {
		t.Errorf("%s; listed are %v, want %v", end, s.Guardrails.Signed, want)
	}
	w.queue.taken("")
	if _, end := w.verified(&spec, podOf(image)); end != "done" || len(w.queue.taken("")) != 0 {
		t.Errorf("%s; the App is woken although nothing has to be asked again", end)
	}

	twice := spec
	twice.Warn = wanting(host, v1alpha1.WarnAction, ocitest.NewSigner(t)).Warn
	twice.Warn[0].Policy = "another"
	s.Guardrails = &twice
	if n := w.ask(s, []*unstructured.Unstructured{podOf(image)}); n != 1 {
		t.Errorf("one image that two policies want to be signed counts as %d", n)
	}

	w.lists(0)
	if _, end := w.verified(&spec, podOf(image)); !strings.HasPrefix(end, "failed Failed: reading the guardrails of namespace ns: ") {
		t.Errorf("without Guardrails: %s", end)
	}
	if _, end := w.verified(&v1alpha1.GuardrailsSpec{}, podOf(image)); end != "done" {
		t.Errorf("without rules: %s", end)
	}
}
