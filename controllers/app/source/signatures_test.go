package source

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
)

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
