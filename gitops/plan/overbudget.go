package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/quota"
)

// OverBudget is why the quota of a project does not grow: it is above the maximum for each project, or does not fit into the budget of the tenant.
type OverBudget struct {
	Tenant, Project string
	// Excess is what is above the maximum of a policy; nil if that is not the reason.
	Excess *quota.Excess
	// Lacks are the resources of which too little is left, sorted by name.
	Lacks []Lack
}

// Lack is a resource of which too little is left.
type Lack struct {
	Name corev1.ResourceName
	// Wants is what the quota of the project would have, Limit the budget, and Others what the quotas of the other projects have.
	Wants, Limit, Others resource.Quantity
	// Default: the project does not request the resource, so it has the default.
	Default bool
	// Largest are the other projects that have most of it, largest first, with the amounts. More is the number of the projects after them.
	Largest []string
	More    int
}

// named is how many other projects a message names.
const named = 3

// Error says for each resource what is wanted, what is left, and who has the rest; and who can change what.
func (o *OverBudget) Error() string {
	if o.Excess != nil {
		return o.Excess.Error()
	}
	var lacks []string
	for _, l := range o.Lacks {
		lacks = append(lacks, l.String())
	}
	return fmt.Sprintf("the quota of project %s does not fit into the budget of tenant %s: %s; ask for at most what is left in spec.quota of project.yaml, shrink another project, "+
		"or ask an administrator of the cluster for more with %s", o.Project, o.Tenant, strings.Join(few.Of(lacks, named), "; "), command.OfTenant("spec.budget"))
}

// Field is the first field of project.yaml that asks for too much; it may be one that the file does not have.
func (o *OverBudget) Field() string {
	if o.Excess != nil {
		return o.Excess.Field()
	}
	for _, l := range o.Lacks {
		if !l.Default {
			return "spec.quota." + string(l.Name)
		}
	}
	return "spec.quota"
}

// String returns a text such as "requests.cpu 8, with 2 of 16 left (the others have 14: shop 8, blog 6)".
func (l Lack) String() string {
	text := fmt.Sprintf("%s %s", l.Name, l.Wants.String())
	if l.Default {
		text += " (the default)"
	}
	left := l.Limit.DeepCopy()
	left.Sub(l.Others)
	if left.Sign() <= 0 {
		text += fmt.Sprintf(", with nothing of %s left", l.Limit.String())
	} else {
		text += fmt.Sprintf(", with %s of %s left", left.String(), l.Limit.String())
	}
	if len(l.Largest) == 0 {
		return text
	}
	others := l.Largest
	if l.More > 0 {
		others = append(slices.Clone(others), few.More(l.More))
	}
	return text + fmt.Sprintf(" (the others have %s: %s)", l.Others.String(), strings.Join(others, ", "))
}

// refuse records why projects are refused. sum is what all projects have in the end.
func (b Budget) refuse(a *Allotment, refused []*Share, sum tally) {
	out := map[string]bool{}
	for _, s := range refused {
		out[s.Project] = true
		delete(a.Grows, s.Project)
	}
	holders := map[corev1.ResourceName][]holder{}
	for i := range b.Shares {
		s := &b.Shares[i]
		share := s.after()
		if out[s.Project] {
			share = s.Has
		}
		for name, amount := range share {
			if amount.Sign() > 0 {
				holders[name] = append(holders[name], holder{s, amount})
			}
		}
	}
	for _, list := range holders {
		slices.SortFunc(list, func(x, y holder) int { return cmp.Or(y.amount.Cmp(x.amount), strings.Compare(x.Project, y.Project)) })
	}
	for _, s := range refused {
		a.Refused[s.Project] = b.over(s, sum, holders)
	}
}

// over returns why one project is refused. If it would fit in the end, because others gave something back after it was looked at, all that it
// wants more of is named.
func (b Budget) over(s *Share, sum tally, holders map[corev1.ResourceName][]holder) *OverBudget {
	names := s.grown(b.Limit)
	lacking := slices.DeleteFunc(slices.Clone(names), func(name corev1.ResourceName) bool {
		after, limit := sum.with(name, s), b.Limit[name]
		return after.Cmp(limit) <= 0
	})
	if len(lacking) > 0 {
		names = lacking
	}
	over := &OverBudget{Tenant: b.Tenant, Project: s.Project}
	for _, name := range names {
		over.Lacks = append(over.Lacks, b.lack(name, s, sum, holders[name]))
	}
	return over
}

// holder is a project that has some of a resource.
type holder struct {
	*Share
	amount resource.Quantity
}

func (b Budget) lack(name corev1.ResourceName, s *Share, sum tally, holders []holder) Lack {
	others := sum[name].DeepCopy()
	others.Sub(s.Has[name])
	l := Lack{Name: name, Wants: s.Wants[name], Limit: b.Limit[name], Others: others, Default: !in(s.Requested, name)}
	for i := 0; i < len(holders) && len(l.Largest) < named; i++ {
		if holders[i].Project != s.Project {
			l.Largest = append(l.Largest, holders[i].text())
		}
	}
	l.More = len(holders) - len(l.Largest)
	if has := s.Has[name]; has.Sign() > 0 {
		l.More-- // The project itself is one of them.
	}
	return l
}

func (h holder) text() string {
	text := h.Project + " " + h.amount.String()
	if h.Leaving {
		text += " until it is gone"
	}
	return text
}
