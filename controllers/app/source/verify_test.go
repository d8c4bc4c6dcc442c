package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/signed"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/cosign"
	"github.com/kubeop/kubeop/delivery/guardrails"
	ocitest "github.com/kubeop/kubeop/internal/testenv/sources"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// wanting are the rules of a policy that wants the images of a registry to be signed.
func wanting(host string, action v1alpha1.PolicyAction, by *ocitest.Signer) v1alpha1.GuardrailsSpec {
	images := &v1alpha1.ImageRules{Verify: []v1alpha1.SignatureRule{{Images: []string{host}, Keys: []string{by.Public()}}}}
	images.Action = action
	return guardrails.Of([]v1alpha1.Policy{{ObjectMeta: metav1.ObjectMeta{Name: "from"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{Images: images}}}})
}

// verified has an App with pods wait for the registries of their images, and returns how that ends.
func (w *world) verified(spec *v1alpha1.GuardrailsSpec, pods ...*unstructured.Unstructured) (*subject.Subject, string) {
	w.t.Helper()
	s := w.subjects.New(appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppHelm}))
	s.Client, s.Owner.Tenant, s.Guardrails = w.api, "acme", spec
	apart := s.Apart()
	return apart, steptest.Outcome(w.t, w.AwaitVerified(w.t.Context(), apart, pods))
}

// TestARegistryThatFailsIsNoVerdict about its images where a policy refuses: they are verified again. Where a policy only warns, nothing waits for it.
func TestARegistryThatFailsIsNoVerdict(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusInternalServerError) }))
	t.Cleanup(server.Close)
	host, digest := server.Listener.Addr().String(), "sha256:"+strings.Repeat("a", 64)
	image := host + "/charts/web@" + digest
	for action, want := range map[v1alpha1.PolicyAction]string{
		v1alpha1.DenyAction: "verifying the signatures of image " + image + ", which is tried again: ", v1alpha1.WarnAction: "", v1alpha1.AuditAction: "",
	} {
		w := newWorld(t)
		w.Cosign = cosign.NewVerifier(w.network(), []string{host}, nil)
		spec := wanting(host, action, ocitest.NewSigner(t))
		s, end := w.verified(&spec, podOf(image))
		if refused := strings.Contains(end, "tried again"); !strings.Contains(end, want) || strings.Contains(end, "stopped") || refused != (want != "") {
			t.Errorf("%s: it ended with %s", action, end)
		}
		if why := w.Unsigned(s.App); (len(why) == 1) != (want == "") {
			t.Errorf("%s: without a signature are %v", action, why)
		}
		if len(s.Guardrails.Signed) != 0 && want == "" {
			t.Errorf("%s: listed are %v", action, s.Guardrails.Signed)
		}
	}
}

// TestAnAppHasNoMoreImagesThanAListCanHave: no registry is asked about any of them.
func TestAnAppHasNoMoreImagesThanAListCanHave(t *testing.T) {
	w, asked := newWorld(t), 0
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { asked++; rw.WriteHeader(http.StatusNotFound) }))
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	w.Cosign = cosign.NewVerifier(w.network(), []string{host}, nil)
	spec := wanting(host, v1alpha1.DenyAction, ocitest.NewSigner(t))
	var pods []*unstructured.Unstructured
	for n := range v1alpha1.MaxSignedImages + 1 {
		pods = append(pods, podOf(fmt.Sprintf("%s/charts/web@sha256:%064x", host, n)))
	}
	s := w.subjects.New(appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppHelm}))
	s.Client, s.Owner.Tenant, s.Guardrails = w.api, "acme", &spec
	want := fmt.Sprintf("the app has %d images that policies want to be signed, and may have %d: split it in Git", len(pods), v1alpha1.MaxSignedImages)
	if end := steptest.Outcome(t, w.Verify(t.Context(), s, pods)); !strings.HasPrefix(end, "stopped "+v1alpha1.TooLargeReason) || !strings.Contains(end, want) || asked != 0 {
		t.Errorf("it ended with %s after %d requests, want %s", end, asked, want)
	}
}

// lists has signed images listed in the Guardrails, after so many conflicts. It returns the number of writes.
func (w *world) lists(conflicts int) *int {
	writes := 0
	w.Signed = &signed.Images{Client: interceptor.NewClient(w.api, interceptor.Funcs{
		Apply: func(ctx context.Context, api client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			if writes++; writes <= conflicts {
				return apierrors.NewConflict(schema.GroupResource{Resource: "guardrails"}, v1alpha1.GuardrailsName, errors.New("changed"))
			}
			sent, live := &v1alpha1.Guardrails{}, &v1alpha1.Guardrails{}
			text, err := json.Marshal(o)
			if err = errors.Join(err, json.Unmarshal(text, sent), api.Get(ctx, client.ObjectKeyFromObject(sent), live)); err != nil {
				return err
			}
			live.Spec.Signed = sent.Spec.Signed
			return api.Update(ctx, live)
		},
	})}
	return &writes
}

// listed reports whether the Guardrails have an image as a signed one.
func (w *world) listed(image string) bool {
	w.t.Helper()
	live := &v1alpha1.Guardrails{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: v1alpha1.GuardrailsName}, live); err != nil {
		w.t.Fatal(err)
	}
	return strings.Contains(fmt.Sprint(live.Spec.Signed), image)
}

// TestRunningImagesAreListedWhenTheRulesChange: pods that start anew before the next release would be refused otherwise.
func TestRunningImagesAreListedWhenTheRulesChange(t *testing.T) {
	key, server := ocitest.NewSigner(t), ocitest.ServeOCI(t, httptest.NewServer)
	host, digest, later := server.Listener.Addr().String(), "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	server.SignTagged(t, digest, key)
	image, unsigned := host+"/charts/web@"+digest, host+"/charts/web@"+later
	spec := wanting(host, v1alpha1.DenyAction, key)
	running, other, elsewhere := podOf(image), podOf(unsigned), podOf(host+"/charts/web@sha256:"+strings.Repeat("c", 64))
	running.SetNamespace("ns")
	other.SetNamespace("ns")
	other.SetName("other")
	elsewhere.SetNamespace("elsewhere")
	w := newWorld(t, &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: v1alpha1.GuardrailsName}, Spec: spec}, running, other, elsewhere)
	w.Cosign = cosign.NewVerifier(w.network(), []string{host}, nil)
	s := w.subjects.New(appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppHelm}))
	s.Client, s.Owner.Tenant, s.Guardrails = w.api, "acme", &spec
	entries := []v1alpha1.InventoryEntry{
		{ID: "ns_web__Pod", Version: "v1"}, {ID: "ns_gone__Pod", Version: "v1"}, {ID: "ns_settings__ConfigMap", Version: "v1"}, {ID: "elsewhere_web__Pod", Version: "v1"},
	}
	verify := func(entries ...v1alpha1.InventoryEntry) string {
		t.Helper()
		return steptest.Outcome(t, step.Repeat(t.Context(), time.Millisecond, 10*time.Millisecond, func() error { return w.VerifyRunning(t.Context(), s, entries) }))
	}
	if got := verify(entries...); got != "done" || w.listed(image) {
		t.Errorf("without a list: %s", got)
	}
	writes := w.lists(0)
	waiting := v1alpha1.InventoryEntry{ID: "ns_other__Pod", Version: "v1"}
	for range 2 { // What has no signature may get one, so it is looked at again.
		if got := verify(waiting); got != "done" || w.listed(unsigned) {
			t.Errorf("without a signature: %s", got)
		}
	}
	if got := verify(append(entries, v1alpha1.InventoryEntry{ID: "ns_other__Pod", Version: "v1", Stale: true})...); got != "done" || !w.listed(image) || *writes != 1 {
		t.Errorf("it ended with %s after %d writes; listed: %t", got, *writes, w.listed(image))
	}
	broken := v1alpha1.InventoryEntry{ID: "broken"}
	if got := verify(broken); got != "done" {
		t.Errorf("by the same rules, again: %s", got)
	}
	another := wanting(host, v1alpha1.DenyAction, ocitest.NewSigner(t))
	s.Guardrails = &another
	if got := verify(broken); got == "done" {
		t.Errorf("by other rules, what the App has is not looked at: %s", got)
	}
	w.VerifyKept(t.Context(), s, []v1alpha1.InventoryEntry{broken}) // It holds nothing back.
	s.Client = interceptor.NewClient(w.api, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("down")
	}})
	if got := verify(entries...); got != "failed Failed: reading Pod/web to verify the signatures of its images: down" {
		t.Errorf("an object that cannot be read: %s", got)
	}
}

// TestAnImageThatIsSignedLaterIsWorthAnotherTry of the App that was refused because of it.
func TestAnImageThatIsSignedLaterIsWorthAnotherTry(t *testing.T) {
	key, server := ocitest.NewSigner(t), ocitest.ServeOCI(t, httptest.NewServer)
	host, digest := server.Listener.Addr().String(), "sha256:"+strings.Repeat("a", 64)
	spec := wanting(host, v1alpha1.DenyAction, key)
	w := newWorld(t)
	w.Cosign = cosign.NewVerifier(w.network(), []string{host}, nil)
	s, end := w.verified(&spec, podOf(host+"/charts/web@"+digest))
	if end != "done" || len(w.Unsigned(s.App)) != 1 || w.SignedLater(t.Context(), s) != 0 {
		t.Fatalf("it ended with %s; without a signature are %v", end, w.Unsigned(s.App))
	}
	server.SignTagged(t, digest, key)
	w.clock.Step(time.Hour)
	for deadline := time.Now().Add(30 * time.Second); w.SignedLater(t.Context(), s) == 0; time.Sleep(10 * time.Millisecond) {
		if w.queue.taken(""); time.Now().After(deadline) {
			t.Fatal("nothing was signed")
		}
	}
	if got := w.SignedLater(t.Context(), s); got != 1 || len(w.Unsigned(s.App)) != 0 {
		t.Errorf("%d images were signed, want 1; without a signature are %v", got, w.Unsigned(s.App))
	}
}

// TestASignedImageIsListedBeforeItsPods: Verify ends when the Guardrails that the API server reads have the image, also if another app changed them first.
// A list without room stops the App.
func TestASignedImageIsListedBeforeItsPods(t *testing.T) {
	key, server := ocitest.NewSigner(t), ocitest.ServeOCI(t, httptest.NewServer)
	host, digest := server.Listener.Addr().String(), "sha256:"+strings.Repeat("a", 64)
	server.SignTagged(t, digest, key)
	image := host + "/charts/web@" + digest
	full := make([]string, v1alpha1.MaxSignedImages)
	for n := range full {
		full[n] = fmt.Sprintf("%s/other@sha256:%064x", host, n)
	}
	for name, c := range map[string]struct {
		others    []string
		conflicts int
		want      string
		writes    int
	}{
		"a list with room":       {full[:1], 0, "done", 1},
		"another app was faster": {full[:1], 2, "done", 3},
		"a full list":            {full, 0, "stopped " + v1alpha1.TooLargeReason, 0},
	} {
		t.Run(name, func(t *testing.T) {
			spec := wanting(host, v1alpha1.DenyAction, key)
			spec.Signed = []v1alpha1.SignedImages{{Signatures: spec.Deny[0].Signatures, Images: c.others}}
			w := newWorld(t, &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: v1alpha1.GuardrailsName}, Spec: spec})
			w.Cosign = cosign.NewVerifier(w.network(), []string{host}, nil)
			writes := w.lists(c.conflicts)
			w.Signed.Ask(types.NamespacedName{Namespace: "ns", Name: "other"}, c.others)
			s, end := w.verified(&spec, podOf(image))
			if !strings.HasPrefix(end, c.want) || *writes != c.writes {
				t.Errorf("it ended with %s after %d writes, want %s after %d", end, *writes, c.want, c.writes)
			}
			if listed := w.listed(image); listed != (c.want == "done") {
				t.Errorf("the list has the image: %t", listed)
			}
			if why := w.Unsigned(s.App); len(why) != 0 {
				t.Errorf("without a signature are %v", why)
			}
		})
	}
}
