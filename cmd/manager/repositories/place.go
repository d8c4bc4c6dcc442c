package repositories

import (
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/commit"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/manager/writes"
)

// place is where an object is declared.
type place struct {
	ref        identity.Ref
	repository *v1alpha1.Repository
	// file is relative to the folder with kubeop.yaml.
	file   string
	remote commit.Remote
	// limits are those that the Tenant of the repository sets, and placement has its clusters.
	limits    v1alpha1.TenantLimits
	placement tree.Placement
}

// ofPlatform reports whether the object is declared in the platform repository.
func (p *place) ofPlatform() bool { return p.repository.Spec.Tenant == "" }

// name is the object in messages: app acme/shop/web.
func (p *place) name() string { return kinds[p.ref.Kind()] + " " + p.ref.Path() }

var kinds = map[string]string{v1alpha1.AppKind: "app", v1alpha1.ProjectKind: "project", v1alpha1.TenantKind: "tenant"}

// folder is the one with kubeop.yaml, "" for the root of the repository. People write it as ./team/, too.
func (p *place) folder() string {
	if folder := path.Clean(p.repository.Spec.Path); folder != "." {
		return folder
	}
	return ""
}

// path is the file from the root of the repository.
func (p *place) path() string { return path.Join(p.folder(), p.file) }

// edits returns how the files change.
func (p *place) edits(c writes.Change) ([]commit.Edit, error) {
	var edit commit.Edit
	switch c.How {
	case writes.Create:
		text, err := document.Write(p.ref.Kind(), p.ref.Key().Name, c.Spec)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", p.file, err)
		}
		edit = commit.Create{File: p.file, Content: text}
	case writes.Replace:
		edit = commit.Become{File: p.file, Wanted: withSpec(c.Spec)}
	case writes.Patch:
		edit = commit.Become{File: p.file, Wanted: commit.Merge(map[string]any{"spec": c.Spec})}
	case writes.Delete:
		edit = commit.Delete{Path: path.Dir(p.file)}
	}
	if c.Match != nil {
		of, part := p.file, 0
		if c.How == writes.Delete {
			of, part = path.Dir(p.file), 1
		}
		edit = commit.Matching{Edit: edit, File: of, Digests: digestsOf(c.Match, part)}
	}
	return []commit.Edit{edit}, nil
}

// withSpec replaces the spec of an object.
func withSpec(spec map[string]any) func(map[string]any) map[string]any {
	return func(seen map[string]any) map[string]any {
		wanted := maps.Clone(seen)
		if wanted == nil {
			wanted = map[string]any{}
		}
		wanted["spec"] = spec
		return wanted
	}
}

// etagOf returns the ETag of a file: its digest, and that of the folder, which a deletion deletes.
func etagOf(file, folder string) string { return `"` + file + "-" + folder + `"` }

// digestsOf returns the digests in ETags of File: of the file, part 0, or of its folder, part 1. What is no ETag of File has none.
func digestsOf(etags []string, part int) (all []string) {
	for _, etag := range etags {
		if parts := strings.Split(etag, "-"); len(parts) == 2 && parts[part] != "" {
			all = append(all, parts[part])
		}
	}
	return all
}
