package controllers

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/quota"
)

func cpus(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse(n)}
}

// withQuotas returns files of projects, each as "name: processors".
func withQuotas(projects ...string) map[string]string {
	files := map[string]string{}
	for _, p := range projects {
		name, cpu, _ := strings.Cut(p, ": ")
		files["projects/"+name+"/project.yaml"] = fmt.Sprintf(
			"apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: %s}\nspec:\n  quota:\n    requests.cpu: %s\n", name, cpu)
	}
	return files
}

// quotaOf is how many processors the quota of a project's namespace has; "" without a quota.
func (n *team) quotaOf(project string) string {
	live := &corev1.ResourceQuota{}
	err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(n.name, project), Name: quota.Name}, live)
	if client.IgnoreNotFound(err) != nil {
		n.t.Fatal(err)
	}
	amount, there := live.Spec.Hard[corev1.ResourceRequestsCPU]
	if !there {
		return ""
	}
	return amount.String()
}

// hasQuotas waits until the quotas of projects have these processors, each as "name: processors".
func (n *team) hasQuotas(want ...string) {
	n.t.Helper()
	n.eventually(func() error {
		for _, p := range want {
			name, cpu, _ := strings.Cut(p, ": ")
			if got := n.quotaOf(name); got != cpu {
				return fmt.Errorf("the quota of %s has %q, want %s", name, got, cpu)
			}
		}
		return nil
	})
}

// spent waits until the Tenant says what is used of its budget.
func (n *team) spent(want string) *v1alpha1.Tenant {
	n.t.Helper()
	tenant := &v1alpha1.Tenant{}
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Name: n.name}, tenant); err != nil {
			return err
		}
		if b := tenant.Status.Budget; b == nil || b.Summary != want {
			return fmt.Errorf("the budget is %+v, want %s", b, want)
		}
		return nil
	})
	return tenant
}

// TestQuotasOfAllProjectsFitIntoTheBudget pushes what fits, what does not, and what fits because another project shrinks in the same commit.
// Then the budget is lowered.
func TestQuotasOfAllProjectsFitIntoTheBudget(t *testing.T) {
	n := newTeam(t, "budgeted")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Quota, s.Budget = cpus("8"), cpus("10") })
	n.push(withQuotas("blog: 4", "shop: 4"))
	n.hasQuotas("blog: 4", "shop: 4")
	n.spent("requests.cpu 8/10")

	problems := n.problemsOf(n.push(withQuotas("a-new: 3", "shop: 5")))
	want := "projects/a-new/project.yaml:6:5: the quota of project a-new does not fit into the budget of tenant budgeted: requests.cpu 3, with 1 of 10 left (the others have 9: shop 5, blog 4); "
	if !strings.HasPrefix(problems, want) || strings.Contains(problems, "\n") || !strings.HasSuffix(problems, "[over-budget]") {
		t.Errorf("the problems are\n%s\nwant\n%s", problems, want)
	}
	n.hasQuotas("blog: 4", "shop: 5")
	n.hasProjects("blog", "shop")

	n.ready(n.repositoryAt(n.push(withQuotas("shop: 2"))))
	n.hasQuotas("a-new: 3", "blog: 4", "shop: 2")
	n.spent("requests.cpu 9/10")

	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Budget = cpus("6") })
	tenant := n.spent("requests.cpu 9/6")
	n.until(tenant, v1alpha1.OverBudgetCondition, metav1.ConditionTrue, v1alpha1.BudgetExceededReason)
	problems = n.problemsOf(n.push(withQuotas("shop: 3", "blog: 3")))
	if want := "requests.cpu 3, with nothing of 6 left (the others have 6: a-new 3, blog 3)"; !strings.Contains(problems, want) {
		t.Errorf("the problems are\n%s\nwant\n%s", problems, want)
	}
	n.hasQuotas("a-new: 3", "blog: 3", "shop: 2")
	message := n.until(n.project("shop"), v1alpha1.CurrentCondition, metav1.ConditionFalse, v1alpha1.InvalidTreeReason)
	if !strings.Contains(message, "projects/shop/project.yaml:6:5: the quota of project shop does not fit") {
		t.Errorf("the project says %s", message)
	}
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Budget = cpus("20") })
	n.hasQuotas("a-new: 3", "blog: 3", "shop: 3")
	n.eventually(func() error {
		if tenant = n.spent("requests.cpu 9/20"); meta.FindStatusCondition(tenant.Status.Conditions, v1alpha1.OverBudgetCondition) != nil {
			return fmt.Errorf("the Tenant is still over its budget")
		}
		return nil
	})
}

// repositoryAt waits until the repository is synced at a revision, and returns it.
func (n *team) repositoryAt(revision string) *v1alpha1.Repository {
	return n.synced(revision, metav1.ConditionTrue)
}

// TestProjectsPastGitDoNotExceedTheBudget has administrators make several Projects at once: no commit checks these.
func TestProjectsPastGitDoNotExceedTheBudget(t *testing.T) {
	n := newTeam(t, "pastgit")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Quota, s.Budget = cpus("8"), cpus("10") })
	n.spent("requests.cpu 0/10")
	names := []string{"a", "b", "c"}
	for _, name := range names {
		n.create(&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace(n.name), Name: name}, Spec: v1alpha1.ProjectSpec{Quota: cpus("4")}})
	}
	refused := ""
	n.eventually(func() error {
		got := map[string]int{}
		for _, name := range names {
			amount := n.quotaOf(name)
			if got[amount]++; amount == "0" {
				refused = name
			}
		}
		if got["4"] != 2 || got["0"] != 1 {
			return fmt.Errorf("the quotas are %v", got)
		}
		return nil
	})
	message := n.until(n.project(refused), v1alpha1.GuardrailsReadyCondition, metav1.ConditionFalse, v1alpha1.BudgetExceededReason)
	if !strings.Contains(message, "requests.cpu 4, with 2 of 10 left (the others have 8: ") {
		t.Errorf("the project says %s", message)
	}
	other := n.project(map[string]string{"a": "b", "b": "c", "c": "a"}[refused])
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
			return err
		}
		other.Spec.Quota = cpus("1")
		return n.admin.Update(t.Context(), other)
	})
	n.hasQuotas(refused+": 4", other.Name+": 1")
	n.ready(n.project(refused))
}
