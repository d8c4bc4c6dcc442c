package quota

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/few"
)

// Usual returns the kinds that every tenant's projects count, as far as the API server serves them, sorted. It is for those who have no API
// server to ask, see Kinds.
func Usual() []schema.GroupResource {
	kinds := slices.Collect(maps.Keys(usual))
	slices.SortFunc(kinds, func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) })
	return kinds
}

// Shares calculates how much of a budget the quotas of a tenant's projects have.
type Shares struct {
	budget, bounds, usually corev1.ResourceList
	// kinds are those whose counts the budget names.
	kinds []schema.GroupResource
}

// SharesOf returns the Shares of a budget, for projects whose quotas have these terms.
func SharesOf(budget corev1.ResourceList, terms Terms, kinds []schema.GroupResource) *Shares {
	s := &Shares{budget: budget, usually: terms.Default}
	for _, kind := range kinds {
		if _, named := budget[nameOf(kind)]; named {
			s.kinds = append(s.kinds, kind)
		}
	}
	s.bounds = terms.bounds(s.kinds)
	return s
}

// Of returns how much a project's quota has of each resource of the budget, as the function Of calculates it. A resource that the quota does not
// count is left out. A negative amount, which the API server refuses, counts as 0.
func (s *Shares) Of(requested corev1.ResourceList) corev1.ResourceList {
	return Part(s.budget, within(s.bounds, s.usually, requested, s.kinds))
}

// Part returns the amounts of the resources of a budget in a quota.
func Part(budget, hard corev1.ResourceList) corev1.ResourceList {
	part := make(corev1.ResourceList, len(budget))
	for name := range budget {
		amount, counted := hard[name]
		if !counted {
			continue
		}
		if amount.Sign() < 0 {
			amount = resource.Quantity{Format: amount.Format}
		}
		part[name] = amount
	}
	return part
}

// BudgetFault is something wrong with a resource of a budget.
type BudgetFault struct {
	Name corev1.ResourceName
	Why  string
}

// Error says which resource of spec.budget is wrong.
func (f *BudgetFault) Error() string {
	return fmt.Sprintf("spec.budget names %s: %s", few.Line(string(f.Name), 80), f.Why)
}

// CheckBudget returns what is wrong with the budget of a tenant, sorted by the name of the resource. allowed is the maximum quota of each of
// its projects. A budget may only name what the quota of every project counts: of anything else, projects could use more than the budget.
func CheckBudget(budget, allowed corev1.ResourceList) (faults []*BudgetFault) {
	for _, name := range slices.Sorted(maps.Keys(budget)) {
		amount := budget[name]
		why := ""
		switch _, named := allowed[name]; {
		case amount.Sign() < 0:
			why = amount.String() + " is negative; write 0 or more in spec.budget"
		case !named:
			why = uncounted(name)
		}
		if why != "" {
			faults = append(faults, &BudgetFault{name, why})
		}
	}
	return faults
}

// countForm is the form of a name that counts the objects of a kind.
var countForm = regexp.MustCompile(`^count/[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// uncounted says why the quotas of projects do not count a resource by default; "" if they do. Whether the API server serves a kind is not
// known here: of one that it does not serve, no project can have objects.
func uncounted(name corev1.ResourceName) string {
	if _, counted := fixed[name]; counted || name == corev1.ResourcePods {
		return ""
	}
	if _, counted := perUsualPods[name]; counted {
		return ""
	}
	if meant := usualName(name); meant != "" {
		return fmt.Sprintf("the quotas of projects have it as %s; write that in spec.budget", meant)
	}
	if field, ok := budget.FieldOf(string(name)); ok {
		return fmt.Sprintf("the quotas of projects do not count it; write spec.limits.%s of the Tenant instead", field.Name)
	}
	if countForm.MatchString(string(name)) {
		return ""
	}
	return "the quota of a project does not count it, so projects could use more than the budget; remove it, or set in spec.quota how much of it each project may have"
}

// usualName returns the name by which the quotas of projects count a resource, for another name that is often used for it; "" for none.
func usualName(name corev1.ResourceName) corev1.ResourceName {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage:
		return "requests." + name
	}
	for _, kind := range Usual() {
		if kind.Group == "" && string(name) == kind.Resource || kind.Group != "" && (string(name) == kind.Resource || string(name) == counts+kind.Resource) {
			return nameOf(kind)
		}
	}
	return ""
}

// mostNamed is how many resources OverBy names.
const mostNamed = 5

// OverBy says by how much amounts exceed their limits, such as "pods over by 3 (13 of 10)"; "" if none does.
func OverBy(used, limits corev1.ResourceList) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		is, limit := used[name], limits[name]
		if by := is.DeepCopy(); is.Cmp(limit) > 0 {
			by.Sub(limit)
			all = append(all, fmt.Sprintf("%s over by %s (%s of %s)", name, by.String(), is.String(), limit.String()))
		}
	}
	return strings.Join(few.Of(all, mostNamed), ", ")
}
