package repositories

import (
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/placement"
	"github.com/kubeop/kubeop/gitops/plan"
	"github.com/kubeop/kubeop/gitops/tree"
)

// move adds what a change of a Tenant or Project takes away from a cluster, whose operator always holds that. A commit of the manager changes no Cluster.
func (w *weighing) move(ref identity.Ref, is *tree.Tree) {
	if ref.App != "" || ref.OneFile() {
		return
	}
	refs := []identity.Ref{ref}
	if ref.Project == "" {
		for _, project := range is.ProjectsOf(ref.Tenant) {
			refs = append(refs, project.Ref())
		}
	}
	for _, of := range refs {
		from, to := w.clustersOf(w.was, of), w.clustersOf(is, of)
		if len(to) > 0 && slices.ContainsFunc(from, func(cluster string) bool { return !slices.Contains(to, cluster) }) {
			w.commit.Losses = append(w.commit.Losses, plan.Loss{Ref: of, Cluster: strings.Join(to, ", ")})
		}
	}
	if tenant, declared := is.Declared(ref).(*v1alpha1.Tenant); declared && tenant.Spec.Repository != nil {
		from, to := w.clustersOf(w.was, ref), w.clustersOf(is, ref)
		w.elsewhere = len(from) > 0 && len(to) > 0 && from[0] != to[0]
	}
}

// clustersOf returns the clusters that have a Tenant or Project of a tree, the one first that has the projects of a Tenant that name none. Nil: nobody knows, or no cluster is declared.
func (w *weighing) clustersOf(t *tree.Tree, ref identity.Ref) []string {
	rules, named, ofPlatform := t.Rules(), w.clusters, ref.Tenant == v1alpha1.PlatformTenant
	if t.Scope.Tenant == "" && !ofPlatform {
		tenant, declared := t.Declared(identity.Ref{Tenant: ref.Tenant}).(*v1alpha1.Tenant)
		if !declared {
			return nil
		}
		named = tenant.Spec.Clusters
	}
	allowed := rules.Allowed(named)
	switch {
	case len(rules.Clusters) == 0:
		return nil
	case ref.Project == "":
		return allowed
	}
	project, declared := t.Declared(ref).(*v1alpha1.Project)
	if !declared {
		return nil
	}
	on, refused := rules.Place(placement.Project{Tenant: ref.Tenant, Cluster: project.Spec.Cluster, Platform: ofPlatform}, allowed, t.Scope.Tenant == "")
	switch {
	case refused != nil:
		return nil
	case on == "":
		return rules.Clusters
	}
	return []string{on}
}
