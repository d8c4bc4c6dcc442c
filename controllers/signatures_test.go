package controllers

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	ocitest "github.com/kubeop/kubeop/internal/testenv/sources"
)

// signing is a team under a policy that wants everything of a registry to be signed by a key.
type signing struct {
	*team
	registry *ocitest.OCIServer
	key      *ocitest.Signer
	host     string
}

func newSigning(t *testing.T, name string) *signing {
	s := &signing{team: newTeam(t, name), registry: ocitest.ServeOCI(t, httptest.NewServer), key: ocitest.NewSigner(t)}
	s.host = s.registry.Listener.Addr().String()
	registry := registryFor(name, s.host, s.name)
	registry.Spec.Insecure = true
	s.source(name, s.host, "password")
	s.create(registry)
	t.Cleanup(func() { _ = s.admin.Delete(t.Context(), registry) })
	s.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")})
	s.eventually(func() error {
		return s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace(), Name: v1alpha1.GuardrailsName}, &v1alpha1.Guardrails{})
	})
	s.under(signedBy("signed", s.host, s.key))
	s.copyHas(name, s.host, "password")
	return s
}

func signedBy(name, pattern string, key *ocitest.Signer) v1alpha1.Policy {
	rule := v1alpha1.SignatureRule{Images: []string{pattern}, Keys: []string{key.Public()}}
	return v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Verify: []v1alpha1.SignatureRule{rule}}}}}
}

// digest returns the digest of a new manifest in the registry.
func (s *signing) digest(tag string) string {
	s.t.Helper()
	return s.registry.PushArtifact(s.t, tag, "application/vnd.cncf.flux.content.v1.tar+gzip",
		ocitest.TarGz(s.t, ocitest.Entry{Name: "a.yaml", Text: configNamed("from-"+tag, tag)}))
}

// runsImage is the file of an app with a Deployment that runs an image.
func runsImage(image string) string {
	return `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: web}
spec:
  type: Raw
  interval: 1h
  raw:
    manifests:
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec:
        replicas: 0
        selector: {matchLabels: {app: web}}
        template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "` + image + `"}]}}
`
}

// refused waits until an app is refused with all of the words.
func (s *signing) refused(app *v1alpha1.App, condition string, words ...string) {
	s.t.Helper()
	s.eventually(func() error {
		message := s.until(app, condition, metav1.ConditionFalse, v1alpha1.NotAllowedReason)
		for _, w := range words {
			if !strings.Contains(message, w) {
				return fmt.Errorf("the message %q lacks %q", message, w)
			}
		}
		return nil
	})
}

// TestOnlySignedImagesRun: an app is delivered when its image is signed, without another push. The API server lets nobody run another image of the
// registry, and knows what was verified when neither kubeop nor the registry is asked.
func TestOnlySignedImagesRun(t *testing.T) {
	s := newSigning(t, "signing")
	image, foreign := s.digest("image"), s.digest("foreign")
	web, where := s.app("shop", "web"), s.host+"/charts/web"
	s.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop"), "projects/shop/apps/web/app.yaml": runsImage(where + ":image")})
	s.refused(web, v1alpha1.AllowedCondition, where+":image, which has to be signed, without a digest: write it in Git as")
	s.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop"), "projects/shop/apps/web/app.yaml": runsImage(where + "@" + image)})
	s.refused(web, v1alpha1.AllowedCondition, "Deployment/web has the image "+where, "kubeop has verified no signature of it: it has no signature in its registry",
		"change spec.images.verify of policies/signing-signed.yaml in the platform repository")
	pod := func(digest string) func() error {
		return func() error {
			object := s.object(s.namespace(), strings.ReplaceAll(placed("Pod", "hostname: a"), "image: a,", "image: '"+where+"@"+digest+"',"))
			return s.admin.Create(t.Context(), object, client.DryRunAll)
		}
	}
	s.denied(pod(image), "which has to be signed, and kubeop has verified no signature of it. See spec.images.verify of policy signing-signed")

	s.registry.SignTagged(t, image, ocitest.NewSigner(t))
	s.refused(web, v1alpha1.AllowedCondition, "none of its 1 signatures is by one of the keys of the policy")
	s.registry.SignTagged(t, image, s.key)
	s.ready(web)
	s.eventually(pod(image))
	s.denied(pod(foreign), "kubeop has verified no signature of it")

	// Another key, while the app cannot be delivered: what runs is verified by it all the same.
	s.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop"), "projects/shop/apps/web/app.yaml": runsImage(where + "@" + foreign)})
	s.refused(web, v1alpha1.AllowedCondition, "Deployment/web has the image "+where+"@"+foreign)
	later := ocitest.NewSigner(t)
	s.registry.SignReferring(t, image, "https://sigstore.dev/cosign/sign/v1", later)
	s.under(signedBy("later", s.host, later))
	s.eventually(pod(image))
	s.denied(pod(foreign), "See spec.images.verify of policy signing-later")
	s.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop"), "projects/shop/apps/web/app.yaml": runsImage(where + "@" + image)})
	s.ready(web)

	s.registry.Close()
	s.reconcile(web)
	s.ready(web)
	s.eventually(pod(image))
}

// TestOnlySignedChartsAndArtifactsAreUsed, and what a chart renders has to be signed, too.
func TestOnlySignedChartsAndArtifactsAreUsed(t *testing.T) {
	s := newSigning(t, "charting")
	image, artifact := s.digest("image"), s.digest("manifests")
	s.registry.PushChart(t, "1.0.0", "application/vnd.cncf.helm.chart.content.v1.tar+gzip", ocitest.ChartArchive(t, "web", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"templates/web.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: chart}\nspec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, " +
			"spec: {containers: [{name: web, image: '" + s.host + "/charts/web@" + image + "'}]}}}\n",
	}))
	chart := ocitest.DigestOf(s.registry.Manifests["1.0.0"])
	const head = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec:\n  type: %s\n  interval: 1h\n"
	s.push(map[string]string{
		"projects/shop/project.yaml":           fmt.Sprintf(projectFile, "shop"),
		"projects/shop/apps/chart/app.yaml":    fmt.Sprintf(head+"  helm: {repository: '%s', chart: web, version: 1.x}\n", "chart", "Helm", s.registry.Repository()),
		"projects/shop/apps/artifact/app.yaml": fmt.Sprintf(head+"  git: {oci: {url: '%s/web', tag: manifests}}\n", "artifact", "Git", s.registry.Repository()),
	})
	for name, digest := range map[string]string{"chart": chart, "artifact": artifact} {
		s.refused(s.app("shop", name), v1alpha1.SourceReadyCondition, "App/"+name+" is made from "+s.registry.Repository()+"/web@"+digest+
			", which has to be signed: it has no signature in its registry", "change spec.images.verify of policies/charting-signed.yaml")
		s.registry.SignReferring(t, digest, "https://sigstore.dev/cosign/sign/v1", s.key)
	}
	s.ready(s.app("shop", "artifact"))
	s.refused(s.app("shop", "chart"), v1alpha1.ReleasedCondition, "Deployment/chart has the image "+s.host, "it has no signature in its registry")
	s.registry.SignTagged(t, image, s.key)
	s.ready(s.app("shop", "chart"))

	// Other keys: what runs is verified again, because its pods may start anew.
	s.registry.SignTagged(t, image, s.key)
	later := ocitest.NewSigner(t)
	s.under(signedBy("later", s.host, later))
	pod := func() error {
		object := s.object(s.namespace(), strings.ReplaceAll(placed("Pod", "hostname: a"), "image: a,", "image: '"+s.host+"/charts/web@"+image+"',"))
		return s.admin.Create(t.Context(), object, client.DryRunAll)
	}
	s.denied(pod, "kubeop has verified no signature of it. See spec.images.verify of policy charting-later")
	s.under(signedBy("again", s.host, s.key))
	s.eventually(pod)
}
