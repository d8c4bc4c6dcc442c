package offline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/gitops/identity"
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
	if !platform {
		parts = append([]string{""}, parts...)
	}
	parts = append(parts, "", "")
	return identity.Ref{Tenant: parts[0], Project: parts[1], App: parts[2]}.File(platform), nil
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
