package plan

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Budget is spec.budget of a Tenant, with what the quotas of its projects have of it before and after a commit.
type Budget struct {
	Tenant string
	// Limit is the most that all quotas together may have, for each resource that the budget names.
	Limit  corev1.ResourceList
	Shares []Share
}

// Allotment says which projects may have what the commit gives them.
type Allotment struct {
	// Refused are the projects that keep what they have, by name, with the reason.
	Refused map[string]*OverBudget
	// Shrinks are the projects that give something back, and take nothing. Grows are those that take something, and may. What grows is
	// changed after all that shrinks.
	Shrinks, Grows map[string]bool
	// Used is the sum of all shares after the commit, and Over by how much it exceeds the limit, without the resources of which it does not.
	Used, Over corev1.ResourceList
}

// Refusals says who is refused and why, in one text that is the same for the same refusals.
func (a Allotment) Refusals() string {
	var all []string
	for _, project := range slices.Sorted(maps.Keys(a.Refused)) {
		all = append(all, a.Refused[project].Error())
	}
	return strings.Join(all, "\n")
}

// Fit decides about all projects of a commit together. What shrinks counts first, whatever the order of the files. If what grows does not
// fit as a whole, the projects are admitted in the order of their names, previews last, each if it fits into what is left. A project is
// refused only for a resource of which it takes more: if a sum exceeds a budget that was lowered, what does not grow stays as it is.
func (b Budget) Fit() Allotment {
	a := Allotment{Refused: map[string]*OverBudget{}, Shrinks: map[string]bool{}, Grows: map[string]bool{}}
	var growing []*Share
	all, sum := tally{}, tally{} // If all is admitted, and what is admitted so far.
	for i := range b.Shares {
		s := &b.Shares[i]
		all.add(s.after(), 1)
		switch grown := len(s.grown(b.Limit)) > 0; {
		case s.Excess != nil:
			a.Refused[s.Project] = &OverBudget{Tenant: b.Tenant, Project: s.Project, Excess: s.Excess}
			sum.add(s.after(), 1)
		case grown:
			growing = append(growing, s)
			sum.add(s.Has, 1)
		default:
			a.Shrinks[s.Project] = s.Wants != nil && s.shrinks(b.Limit)
			sum.add(s.after(), 1)
		}
	}
	maps.DeleteFunc(a.Shrinks, func(_ string, shrinks bool) bool { return !shrinks })
	slices.SortFunc(growing, (*Share).inOrder)
	refused := slices.Clone(growing)
	if b.fits(all, growing) {
		refused, sum = nil, all
	}
	for range rounds {
		refused = slices.DeleteFunc(refused, func(s *Share) bool { return b.admit(sum, s) })
	}
	for _, s := range growing {
		a.Grows[s.Project] = true
	}
	a.Used, a.Over = b.total(sum)
	b.refuse(&a, refused, sum)
	return a
}

// rounds bounds how often refused projects are looked at again, because one that was admitted after them gave something back.
const rounds = 3

// admit counts what a growing project wants if that fits.
func (b Budget) admit(sum tally, s *Share) bool {
	for _, name := range s.grown(b.Limit) {
		if after, limit := sum.with(name, s), b.Limit[name]; after.Cmp(limit) > 0 {
			return false
		}
	}
	sum.add(s.Has, -1)
	sum.add(s.Wants, 1)
	return true
}

// fits reports whether the growing projects may all have what they want.
func (b Budget) fits(all tally, growing []*Share) bool {
	for _, s := range growing {
		for _, name := range s.grown(b.Limit) {
			if sum, limit := all[name], b.Limit[name]; sum.Cmp(limit) > 0 {
				return false
			}
		}
	}
	return true
}

// total returns the sum of all shares, and by how much it exceeds the limit.
func (b Budget) total(sum tally) (used, over corev1.ResourceList) {
	used, over = corev1.ResourceList{}, corev1.ResourceList{}
	for name, limit := range b.Limit {
		amount := sum[name]
		used[name] = amount
		if amount.Cmp(limit) > 0 {
			amount = amount.DeepCopy()
			amount.Sub(limit)
			over[name] = amount
		}
	}
	return used, over
}
