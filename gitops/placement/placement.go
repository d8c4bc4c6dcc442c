// Package placement decides which cluster a project is on, by the clusters that the platform repository declares, the clusters of its tenant, and the one
// that it names. Pure.
package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Rules are the clusters that a platform repository declares. The zero value has none: then every operator takes all projects.
type Rules struct {
	// Clusters are their names, sorted.
	Clusters []string
	// Default is the name of the one with spec.default; "" if that is not known, because none has it, or several do.
	Default string
}

// Undecided returns why it is not known which projects an operator takes, nil if it is known. own is the name of the operator's cluster in its
// configuration; nil leaves out what is wrong with it. unread: the folder of the clusters could not be read. Nothing may be applied or deleted then: the projects of all tenants could belong elsewhere.
func (r Rules) Undecided(own *string, unread bool) error {
	switch {
	case unread:
		return errors.New("the folder cannot be read, so nobody knows where the projects are")
	case len(r.Clusters) > 0 && r.Default == "":
		return fmt.Errorf("spec.default: no cluster is the default one, so nobody knows where the projects are that name none; set it in one of the files of clusters/, such as %s",
			file(r.Clusters[0]))
	case own == nil:
		return nil
	case len(r.Clusters) > 0 && *own == "":
		return fmt.Errorf("the operator of this cluster has no name, so it does not know which projects it has; ask an administrator of the cluster to set clusterName of its chart to one of: %s", strings.Join(r.Clusters, ", "))
	case *own != "" && !slices.Contains(r.Clusters, *own):
		return fmt.Errorf("the operator of this cluster has the name %q, and there is no %s, so it does not know which projects it has; add the file, or ask an administrator of the cluster to correct clusterName of its chart",
			*own, file(*own))
	}
	return nil
}

// Allowed returns the clusters that a tenant may use, by its spec.clusters. The first one has its projects that name none.
func (r Rules) Allowed(named []string) []string {
	if len(named) > 0 || r.Default == "" {
		return named
	}
	return []string{r.Default}
}

// file is the path of the file that declares a cluster.
func file(name string) string { return "clusters/" + name + ".yaml" }

// Project is what decides about the cluster of a project.
type Project struct {
	// Tenant is the name of its tenant, and Cluster its spec.cluster.
	Tenant, Cluster string
	// Platform: it is one of the platform itself.
	Platform bool
}

// Refusal is why a project may not have the cluster that it names.
type Refusal struct {
	// Unknown: there is no such cluster.
	Unknown bool
	Why     string
}

// Place returns the cluster of a project, by those that its tenant may use: the first one if it names none. "" is every cluster: of a project of the platform
// itself that names none, and of all projects while no clusters are declared. administrators: the message is for them; others learn only which clusters
// their tenant may use.
func (r Rules) Place(p Project, allowed []string, administrators bool) (cluster string, refused *Refusal) {
	known := slices.Contains(r.Clusters, p.Cluster)
	switch {
	case p.Cluster == "" && (p.Platform || len(allowed) == 0):
		return "", nil
	case p.Cluster == "":
		return allowed[0], nil
	case slices.Contains(allowed, p.Cluster), p.Platform && known:
		return p.Cluster, nil
	case p.Platform, administrators && !known:
		return "", &Refusal{Unknown: true, Why: fmt.Sprintf("spec.cluster: there is no cluster %q; add %s, or remove the name", p.Cluster, file(p.Cluster))}
	}
	return "", &Refusal{Why: fmt.Sprintf("spec.cluster: %q is none of the clusters that tenant %s may use (%s); name one of these, or ask an administrator of the cluster to add it to spec.clusters of the tenant",
		p.Cluster, p.Tenant, cmp.Or(strings.Join(allowed, ", "), "none"))}
}
