package repository

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/gitops/tree"
)

// refuse has the App or Project say that each problem of the commit is about that its newest version is refused: they keep
// their last good state, and whoever looks at them alone would take the push for delivered.
func (r *Reconciler) refuse(s *scope, problems []tree.Problem) {
	refused := map[refusal.Unit]refusal.Refusal{}
	for _, p := range problems {
		unit := unitOf(p)
		if _, first := refused[unit]; !first && unit.Name != "" {
			refused[unit] = refusal.Refusal{Revision: s.commit.Revision, Problem: p.String()}
		}
	}
	r.Refusals.Set(s.repository.Name, refused)
}

// unitOf returns the App in whose folder the problem is, else the Project; none for one about more than a Project.
func unitOf(p tree.Problem) refusal.Unit {
	if p.Tenant == "" || p.Project == "" {
		return refusal.Unit{}
	}
	if app := appOf(p.File); app != "" {
		return refusal.Unit{Kind: v1alpha1.AppKind, ObjectKey: client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(p.Tenant, p.Project), Name: app}}
	}
	return refusal.Unit{Kind: v1alpha1.ProjectKind, ObjectKey: client.ObjectKey{Namespace: v1alpha1.HomeNamespace(p.Tenant), Name: p.Project}}
}
