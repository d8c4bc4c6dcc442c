package source

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/cosign"
	"github.com/kubeop/kubeop/delivery/guardrails"
	ocitest "github.com/kubeop/kubeop/internal/testenv/sources"
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
