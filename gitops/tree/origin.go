package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/identity"
)

// Preview is a project that no commit declares: it has the apps that a branch has in the folder of another project.
type Preview struct {
	// Project is the preview as it is applied.
	Project *v1alpha1.Project
	Origin
	// Adapt changes an app of the branch for the preview.
	Adapt func(*v1alpha1.App)
	// Settings identify what Adapt does.
	Settings string
}

// Origin is where the objects of a preview come from: the project whose folder is read, the branch, and its commit as "branch@sha1:<commit>"
// with its author.
type Origin struct{ Of, Branch, Revision, Author string }

// Prefix is the beginning of messages about a file of the branch.
func (o *Origin) Prefix() string { return "in branch " + few.Printable(o.Branch) + ": " }

// suffix distinguishes the digests of a preview from those of the same folder in the project itself. An app with other settings is another
// one, even if its folder is the same.
func (v *Preview) suffix() string {
	sum := sha256.Sum256([]byte(v.Of + "\n" + v.Branch + "\n" + v.Settings))
	return DigestSeparator + hex.EncodeToString(sum[:6])
}

// DigestSeparator ends the Git hash in the digest of a preview's app, as TreeAnnotation has it.
const DigestSeparator = "+"

// With returns the tree of a tenant's own repository with these previews instead of those it has. A declared project of the same name wins.
// It returns t itself if it has exactly these previews.
func (t *Tree) With(previews []*Project) *Tree {
	if len(t.Tenants) != 1 || !t.Tenants[0].implicit || t.Scope.Tenant == "" {
		return t
	}
	tenant := *t.Tenants[0]
	tenant.Projects = slices.DeleteFunc(slices.Clone(tenant.Projects), func(p *Project) bool { return p.origin != nil })
	for _, preview := range previews {
		if find(t.Tenants[0].Projects, preview.ref.Project) == nil || t.OriginOf(preview.ref) != nil {
			tenant.Projects = append(tenant.Projects, preview)
		}
	}
	sortByName(tenant.Projects)
	if slices.Equal(tenant.Projects, t.Tenants[0].Projects) {
		return t
	}
	tenant.count()
	now := *t
	now.Tenants = []*Tenant{&tenant}
	now.count()
	return &now
}

// OriginOf returns where an object of a preview comes from; nil for an object that the commit declares.
func (t *Tree) OriginOf(ref identity.Ref) *Origin {
	project, ok := t.Find(identity.Ref{Tenant: ref.Tenant, Project: ref.Project})
	if !ok || ref.Project == "" {
		return nil
	}
	return project.self().origin
}

// Previews returns the previews in the tree.
func (t *Tree) Previews() (all []*Project) {
	for _, tenant := range t.Tenants {
		for _, project := range tenant.Projects {
			if project.origin != nil {
				all = append(all, project)
			}
		}
	}
	return all
}
