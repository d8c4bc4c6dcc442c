package repository

import (
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/gitops/tree"
)

// refuse has each App and Project that a problem of the commit is about say that its newest version is refused: they keep
// their last good state, and whoever looks at them alone would take the push for delivered.
func (r *Reconciler) refuse(s *scope) {
	refused := map[refusal.Unit]refusal.Refusal{}
	add := func(p tree.Problem) bool {
		unit := refusal.Unit{Kind: p.Of.Kind(), ObjectKey: p.Of.Key()}
		if _, known := refused[unit]; !known && p.Of.Project != "" {
			refused[unit] = refusal.Refusal{Revision: s.commit.Revision, Problem: p.String()}
		}
		return true
	}
	s.found.All(add)
	for _, p := range s.progress.refusals() {
		add(p)
	}
	r.Refusals.Set(s.repository.Name, refused)
}
