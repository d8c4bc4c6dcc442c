package offline

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/gitops/layout"
)

// placeOf returns the path of the file that declares an object. platform: the repository is the platform's.
func placeOf(kind target.Kind, name string, platform bool) (string, error) {
	parts := strings.Split(name, "/")
	for _, part := range parts {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, `\:`) {
			return "", fmt.Errorf("%q does not name one %s", name, kind.Singular())
		}
	}
	wanted := kind.Path
	if file := fileOf[kind.Name]; file != nil {
		return placeByName(kind, file, name, platform)
	}
	if !platform {
		wanted = wanted[1:]
	}
	switch {
	case kind.Name == v1alpha1.TenantKind && !platform:
		return "", errors.New("tenants are declared in the platform repository, and this is one of a tenant: it has a folder projects")
	case len(parts) != len(wanted):
		return "", fmt.Errorf("%q does not name one %s of this repository: write %s", name, kind.Singular(), strings.Join(wanted, "/"))
	}
	folders := []string{layout.ProjectsFolder, layout.AppsFolder}
	switch {
	case platform && parts[0] == v1alpha1.PlatformTenant:
		folders = []string{layout.PlatformFolder, layout.AppsFolder}
		parts = parts[1:]
	case platform:
		folders = append([]string{layout.TenantsFolder}, folders...)
	}
	place := ""
	for i, part := range parts {
		place = path.Join(place, folders[i], part)
	}
	return path.Join(place, map[string]string{v1alpha1.AppKind: layout.AppFile, v1alpha1.ProjectKind: layout.ProjectFile, v1alpha1.TenantKind: layout.TenantFile}[kind.Name]), nil
}

// fileOf returns the file of an object of a kind that is declared by a file of its own.
var fileOf = map[string]func(name string) string{v1alpha1.PolicyKind: layout.PolicyFile, v1alpha1.RegistryKind: layout.RegistryFile}

func placeByName(kind target.Kind, file func(string) string, name string, platform bool) (string, error) {
	switch {
	case !platform:
		return "", fmt.Errorf("%s are declared in the platform repository, and this is one of a tenant: it has a folder projects", kind.Plural)
	case strings.Contains(name, "/"):
		return "", fmt.Errorf("%q does not name one %s: write %s", name, kind.Singular(), kind.Path[0])
	}
	return file(name), nil
}
