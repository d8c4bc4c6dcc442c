//go:build e2e

package guards

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/tenants"
)

// declaration is a file of a tenant's repository that is refused.
type declaration struct {
	file, content, words string
	// kind and name are what would exist, in namespace if it has one.
	kind, namespace, name string
}

const header = "apiVersion: paas.kubeop.io/v1alpha1\n"

// TestNothingIsDeclaredThatOnlyAdministratorsMay: neither what belongs in the platform repository, nor a project with more than its tenant may have. The control is a
// project with the quota that is allowed, in the same commit. What is above quota of the Tenant alone is lowered to it.
func TestNothingIsDeclaredThatOnlyAdministratorsMay(t *testing.T) {
	before := versions(t)
	home := v1alpha1.HomeNamespace(narrow)
	projectOf := func(name, spec string) string {
		return header + "kind: Project\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
	}
	all := []declaration{
		{"policies/mine.yaml", header + "kind: Policy\nmetadata: {name: mine}\nspec: {default: true}\n", "of the platform repository only", "Policy", "", "mine"},
		{"registries/mine.yaml", header + "kind: Registry\nmetadata: {name: mine}\nspec: {host: pull.example.com, secretRef: {name: " + narrow + "-pull}, tenants: [" + narrow + "]}\n",
			"of the platform repository only", "Registry", "", "mine"},
		{"tenants/twin/tenant.yaml", header + "kind: Tenant\nmetadata: {name: twin}\nspec: {clusterKinds: [Namespace]}\n", "the platform repository only", "Tenant", "", "twin"},
		{"projects/crowded/project.yaml", projectOf("crowded", "{quota: {pods: '61'}}"), "spec.quota requests pods 61, of which 60 is allowed", "Project", home, "crowded"},
		{"projects/over/project.yaml", projectOf("over", "{quota: {requests.cpu: '1000'}}"), "does not fit into the budget of tenant " + narrow, "Project", home, "over"},
		{"projects/elsewhere/project.yaml", projectOf("elsewhere", "{namespace: default}"), "only projects of the platform itself", "Project", home, "elsewhere"},
	}
	files := map[string]string{
		"projects/fits/project.yaml":   projectOf("fits", "{quota: {services.loadbalancers: '5', pods: '60'}}"),
		"projects/greedy/project.yaml": projectOf("greedy", "{quota: {services.loadbalancers: '6'}}"),
	}
	for _, d := range all {
		files[d.file] = d.content
	}
	must(t, tenants.Push(t.Context(), repositories[narrow], files))
	soon(t, "the files are refused", func(ctx context.Context) error {
		if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: home, Name: "fits"}, &v1alpha1.Project{}); err != nil {
			return fmt.Errorf("the control: %w", err)
		}
		repository := &v1alpha1.Repository{}
		if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: home, Name: narrow}, repository); err != nil {
			return err
		}
		for _, d := range all {
			if !d.refused(repository.Status.Problems) {
				return errors.New(d.file + " is not refused with " + d.words + ":\n" + strings.Join(repository.Status.Problems, "\n"))
			}
		}
		return nil
	})
	for _, d := range all {
		o := ofKind(ours+d.kind, d.name)
		o.SetNamespace(d.namespace)
		if err := platform.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("ESCAPE: in Git: %s: it exists: %v", d.file, err)
		}
	}
	tried.add("in Git: a project with a quota above that of the tenant", "")
	soon(t, "the project has the quota that the tenant has", func(ctx context.Context) error {
		quota := &corev1.ResourceQuota{}
		err := platform.Client.Get(ctx, client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(narrow, "greedy"), Name: "kubeop"}, quota)
		if balancers := quota.Spec.Hard[corev1.ResourceServicesLoadBalancers]; err == nil && balancers.Value() != 5 {
			err = errors.New("ESCAPE: it has " + balancers.String())
		}
		return err
	})
	unchanged(t, before)
}

// refused reports whether a problem says what is wrong with the file, and notes it.
func (d declaration) refused(problems []string) bool {
	for _, problem := range problems {
		if strings.HasPrefix(problem, d.file) && strings.Contains(problem, d.words) {
			tried.add("in Git: "+d.file, problem)
			return true
		}
	}
	return false
}
