//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// pushed pushes the sample application with more programs, and returns the image by its digest.
func pushed(t *testing.T, repository, tag string, more ...string) (reference, digest string) {
	t.Helper()
	var programs []string
	for _, name := range append([]string{"hello"}, more...) {
		programs = append(programs, filepath.Join(filepath.Dir(platform.ClusterBinary()), name))
	}
	_, err := platform.PushImage(t.Context(), repository+":"+tag, programs...)
	must(t, err)
	digest, err = platform.Digest(t.Context(), repository, tag)
	must(t, err)
	return platform.Registry() + "/" + repository + "@" + digest, digest
}

// TestOnlySignedImagesRun: an image runs as soon as it is signed. With no operator at all its pods start again and scale, and an unsigned image still does not
// run.
func TestOnlySignedImagesRun(t *testing.T) {
	const policy = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Policy\nmetadata: {name: sealed}\nspec: {images: {verify: [{images: [%q], keys: [%q]}]}}\n"
	signer, err := stage.NewSigner()
	must(t, err)
	key, err := signer.Public()
	must(t, err)
	n := newTeam(t, "sealed")
	tenant, err := samples.Platform.Read("tenants/sealed/tenant.yaml")
	must(t, err)
	must(t, samples.Platform.Write("tenants/sealed/tenant.yaml", append(tenant, "  policies: [sealed]\n"...)))
	must(t, samples.Platform.Write("policies/sealed.yaml", fmt.Appendf(nil, policy, platform.Registry()+"/vouched", key)))
	must(t, samples.Platform.Push(t.Context(), "Ask for signatures of the images of sealed"))
	until(t, "the policy holds", func(ctx context.Context) error {
		guardrails := &v1alpha1.Guardrails{}
		if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: n.namespace(), Name: v1alpha1.GuardrailsName}, guardrails); err != nil {
			return err
		}
		if len(guardrails.Spec.Deny) == 0 {
			return errors.New("the Guardrails have no rules")
		}
		return nil
	})

	good, digest := pushed(t, "vouched", "good")
	bad, _ := pushed(t, "vouched", "bad", "decrypt")
	n.deliver("web", good, "web")
	n.deliver("bad", bad, "bad")
	n.push("Ship")
	for _, app := range []string{"web", "bad"} {
		n.waitForReady(app, v1alpha1.NotAllowedReason, "kubeop has verified no signature of it: it has no signature in its registry")
	}
	must(t, platform.Sign(t.Context(), "vouched", digest, signer))
	n.appReady("web")
	n.answers("web", "web")

	must(t, platform.ScaleOperator(t.Context(), 0))
	defer func() {
		must(t, platform.ScaleOperator(context.WithoutCancel(t.Context()), 1))
		n.appReady("web")
	}()
	in := []string{"-n", n.namespace()}
	kubectl(t, append(in, "delete", "pods", "-l", v1alpha1.AppLabel+"=web")...)
	kubectl(t, append(in, "scale", "deployment/web", "--replicas=2")...)
	kubectl(t, append(in, "rollout", "status", "deployment/web", "--timeout=120s")...)
	n.answers("web", "web")
	const restricted = `--overrides={"spec":{"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},"containers":[{"name":"bad","image":%q,` +
		`"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}}`
	for what, args := range map[string][]string{
		"a pod":          {"run", "bad", "--image=" + bad, fmt.Sprintf(restricted, bad)},
		"a Deployment":   {"create", "deployment", "bad", "--image=" + bad},
		"another image":  {"set", "image", "deployment/web", "*=" + bad},
		"without digest": {"create", "deployment", "bad", "--image=" + strings.Split(good, "@")[0] + ":good"},
	} {
		if out, err := platform.Kubectl(t.Context(), append(args, in...)...); err == nil || !strings.Contains(err.Error(), "which has to be signed") {
			t.Errorf("%s is not refused for its signature: %s %v", what, out, err)
		}
	}
	deployments := &appsv1.DeploymentList{}
	must(t, platform.Client.List(t.Context(), deployments, client.InNamespace(n.namespace())))
	if len(deployments.Items) != 1 {
		t.Errorf("there are %d Deployments, want the signed one", len(deployments.Items))
	}
}
