package offline

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/gitops/commit"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/layout"
)

// fields are the fields of a spec, as in a file.
type fields = map[string]any

// set sets a field, unless the value is empty.
func set(of fields, name string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case fields:
		if len(v) == 0 {
			return
		}
	}
	of[name] = value
}

// named returns a reference to a Secret; empty for "".
func named(secret string) fields { return keyed("name", secret) }

// keyed returns an object with one field; empty if its value is.
func keyed(key, value string) fields {
	of := fields{}
	set(of, key, value)
	return of
}

// listed returns an object with one list; empty if the list is.
func listed(key string, values []string) fields {
	of := fields{}
	if len(values) > 0 {
		of[key] = values
	}
	return of
}

// writeObject writes the file of an object at its path, and checks the repository with it.
func writeObject(ctx context.Context, d *destination, kind target.Kind, name string, spec fields) error {
	root, err := topFolder(".")
	if err != nil {
		return err
	}
	v := &validate{Call: d.Call}
	place, err := placeOf(kind, name, v.ofPlatform(root) || ofNewPlatform(root, kind, name))
	if err != nil {
		return err
	}
	text, err := document.Write(kind.Name, path.Base(name), spec)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", place, err)
	}
	return d.write(ctx, change{
		root: root, place: place, title: "Create " + kind.Singular() + " " + name, edits: []commit.Edit{commit.Create{File: place, Content: text}},
	})
}

// ofNewPlatform reports whether an object can only be one of the platform repository, in a repository that declares nothing yet.
func ofNewPlatform(root string, kind target.Kind, name string) bool {
	if hasFolder(os.DirFS(root), layout.ProjectsFolder) {
		return false
	}
	return kind.Name == v1alpha1.TenantKind || fileOf[kind.Name] != nil || strings.HasPrefix(name, v1alpha1.PlatformTenant+"/") && strings.Count(name, "/") == len(kind.Path)-1
}
