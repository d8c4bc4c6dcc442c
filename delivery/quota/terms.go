package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/command"
)

// Terms are what administrators say about the quotas of a tenant's projects. Without any, the defaults of a project are also the most that it may
// have.
type Terms struct {
	// Max is the most that a project may have, and Default what it has if it requests nothing, as far as Max allows it.
	Max, Default corev1.ResourceList
	// policy is the name of the policy whose maximum holds for a resource, if it is not that of the Tenant.
	policy map[corev1.ResourceName]string
}

// TermsOf returns the terms for the projects of a tenant that is under these policies: of each resource the smallest amount that one of them, or
// the Tenant, states.
func TermsOf(tenant *v1alpha1.Tenant, policies []v1alpha1.Policy) Terms {
	t := Terms{Max: maps.Clone(tenant.Spec.Quota), policy: map[corev1.ResourceName]string{}}
	for i := range policies {
		rules := policies[i].Spec.Quota
		if rules == nil {
			continue
		}
		for name := range rules.Max {
			if lower(&t.Max, name, rules.Max[name]) {
				t.policy[name] = policies[i].Name
			}
		}
		for name := range rules.Default {
			lower(&t.Default, name, rules.Default[name])
		}
	}
	return t
}

// lower sets an amount in a list that has none or a larger one, and reports whether it did.
func lower(list *corev1.ResourceList, name corev1.ResourceName, amount resource.Quantity) bool {
	if is, there := (*list)[name]; there && is.Cmp(amount) <= 0 {
		return false
	}
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = amount
	return true
}

// Excess is what a project requests beyond what its tenant's projects may have.
type Excess struct {
	// Beyond are the resources, sorted by name.
	Beyond []Beyond
}

// Beyond is a resource of which a project requests too much.
type Beyond struct {
	Name corev1.ResourceName
	// Wants is what the project requests, and Allowed what it may have; nil if that is nothing.
	Wants   resource.Quantity
	Allowed *resource.Quantity
	// Policy is the name of the policy that says so; "" if it is the Tenant.
	Policy string
}

// excess returns what is requested beyond the bounds; nil for nothing.
func (t Terms) excess(bounds, requested corev1.ResourceList) *Excess {
	e := &Excess{}
	for _, name := range slices.Sorted(maps.Keys(requested)) {
		bound, ok := bounds[name]
		one := Beyond{Name: name, Wants: requested[name], Policy: t.policy[name]}
		if ok && one.Wants.Cmp(bound) <= 0 {
			continue
		}
		if ok {
			one.Allowed = &bound
		}
		e.Beyond = append(e.Beyond, one)
	}
	if len(e.Beyond) == 0 {
		return nil
	}
	return e
}

// Grown returns what a project requests beyond the maximum of a policy, and more of than it did before; nil for nothing. A commit may keep what a
// project requested before the policy was stricter.
func (t Terms) Grown(requested, before corev1.ResourceList) *Excess {
	e := t.excess(t.Max, requested)
	if e == nil {
		return nil
	}
	e.Beyond = slices.DeleteFunc(e.Beyond, func(b Beyond) bool {
		was, there := before[b.Name]
		return b.Policy == "" || there && b.Wants.Cmp(was) <= 0
	})
	if len(e.Beyond) == 0 {
		return nil
	}
	return e
}

// Error says what is requested, what is allowed, and who can allow more.
func (e *Excess) Error() string {
	var all, fields []string
	for _, b := range e.Beyond {
		allowed := "nothing"
		if b.Allowed != nil {
			allowed = b.Allowed.String()
		}
		all = append(all, fmt.Sprintf("%s %s, of which %s is allowed", b.Name, b.Wants.String(), allowed))
		if field := b.where(); !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	return fmt.Sprintf("spec.quota requests %s; ask for less, or ask an administrator of the cluster for more with %s", strings.Join(all, "; "), strings.Join(fields, " and "))
}

// Field is the field of project.yaml that asks for too much.
func (e *Excess) Field() string { return "spec.quota." + string(e.Beyond[0].Name) }

// where is the field with the maximum.
func (b Beyond) where() string {
	if b.Policy == "" {
		return command.OfTenant("spec.quota")
	}
	return command.OfPolicy(b.Policy, "spec.quota.max")
}

// Fault is something wrong with the quota of a policy.
type Fault struct {
	// Field in the spec of the Policy, such as "quota.max[requests.cpu]".
	Field, Why string
}

// CheckRules returns what the schema cannot check of the quota of a policy: that no amount is negative, and no default above the maximum.
func CheckRules(rules *v1alpha1.QuotaRules) (faults []Fault) {
	lists := map[string]corev1.ResourceList{"max": rules.Max, "default": rules.Default}
	for _, list := range slices.Sorted(maps.Keys(lists)) {
		for _, name := range slices.Sorted(maps.Keys(lists[list])) {
			amount, field := lists[list][name], fmt.Sprintf("quota.%s[%s]", list, name)
			if amount.Sign() < 0 {
				faults = append(faults, Fault{field, amount.String() + " is negative; it must be 0 or more"})
			}
			if most, there := rules.Max[name]; list == "default" && there && amount.Cmp(most) > 0 {
				faults = append(faults, Fault{field, fmt.Sprintf("%s is above %s in max; it must be at most that", amount.String(), most.String())})
			}
		}
	}
	return faults
}
