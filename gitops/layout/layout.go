// Package layout says which path of a repository means what.
package layout

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Version is the only layout there is.
const Version = "v1"

// The fixed names of the layout. Everything else in a path is the name of an object.
const (
	VersionFile = "kubeop.yaml"
	TenantFile  = "tenant.yaml"
	ProjectFile = "project.yaml"
	AppFile     = "app.yaml"

	TenantsFolder  = "tenants"
	ProjectsFolder = "projects"
	// PlatformFolder holds the projects of the platform itself, in the platform repository only.
	PlatformFolder = "platform"
	AppsFolder     = "apps"
)

// IgnoredAtRoot reports whether an entry of the root is for people and for the Git host.
func IgnoredAtRoot(name string) bool {
	upper := strings.ToUpper(name)
	return strings.HasPrefix(name, ".") || strings.HasPrefix(upper, "README") || strings.HasPrefix(upper, "LICENSE") ||
		upper == "DOCS"
}

// Unusable says why an entry is neither a file nor a folder with content in this commit; "" if it is one.
func Unusable(e fs.DirEntry) string {
	switch {
	case e.Name() == "." || !fs.ValidPath(e.Name()) || strings.Contains(e.Name(), "/"):
		return "this is not a usable file name"
	case e.Type()&fs.ModeSymlink != 0:
		return "symlinks are not followed; commit the file itself"
	case e.Type()&fs.ModeIrregular != 0:
		return "submodules are not fetched; commit the files themselves"
	case !e.IsDir() && !e.Type().IsRegular():
		return "only regular files and folders are read"
	}
	return ""
}

// SkipUnusable ends a walk below an entry that cannot be used: a folder named "." or ".." would never end.
func SkipUnusable(e fs.DirEntry) error {
	if e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// Nearly reports whether a file is named as wanted up to case and the spelling of the YAML extension.
func Nearly(name, want string) bool {
	return IsYAML(name) && strings.EqualFold(stem(name), stem(want))
}

// IsYAML reports whether a file is named as YAML files are.
func IsYAML(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".yaml" || ext == ".yml"
}

func stem(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// Join appends an entry's name without cleaning, so that no name can climb out of its folder.
func Join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// Declares reports whether a file is named like one that declares an object, wherever it lies.
func Declares(file string) bool {
	return slices.ContainsFunc([]string{TenantFile, ProjectFile, AppFile}, func(name string) bool { return Nearly(path.Base(file), name) })
}

// Belongs says of a file of which nothing is read where it should be: in the platform repository, or in one of a tenant's own.
func Belongs(file string, platform bool) string {
	prefix := ""
	if platform {
		prefix = TenantsFolder + "/<tenant>/"
	}
	name := path.Base(file)
	switch {
	case Nearly(name, TenantFile) && !platform:
		return nothing + "Tenants are declared in the platform repository only"
	case Nearly(name, TenantFile):
		return nothing + "a Tenant belongs in " + prefix + "tenant.yaml"
	}
	return belongs(name, prefix+ProjectsFolder)
}

// OfPlatform reports whether a file lies where those of the platform itself do, or in a folder of its name among the tenants.
func OfPlatform(file string) bool {
	return strings.HasPrefix(file, PlatformFolder+"/") || strings.HasPrefix(file, TenantsFolder+"/"+PlatformFolder+"/")
}

// BelongsToPlatform is Belongs for a file of the platform itself, in the platform repository. On: the operator delivers apps of the platform.
func BelongsToPlatform(file string, on bool) string {
	name := path.Base(file)
	if !on && strings.HasPrefix(file, PlatformFolder+"/") {
		return nothing + "this operator delivers no apps of the platform itself: set platformApps of kubeop's chart to Namespaced or ClusterAdmin"
	}
	if Nearly(name, TenantFile) {
		return nothing + "the platform itself is no tenant: its projects belong in platform/<project>/project.yaml, without a tenant.yaml"
	}
	return belongs(name, PlatformFolder)
}

const nothing = "nothing is read from here; "

// belongs says where a file belongs that is no Tenant's, below the folder with the projects.
func belongs(name, projects string) string {
	switch {
	case Nearly(name, VersionFile):
		return nothing + "the layout version belongs in kubeop.yaml at the root"
	case Nearly(name, ProjectFile):
		return nothing + "a Project belongs in " + projects + "/<project>/project.yaml"
	case Nearly(name, AppFile):
		return nothing + "an App belongs in " + projects + "/<project>/apps/<app>/app.yaml"
	}
	return nothing + "files an app uses belong in its folder, " + projects + "/<project>/apps/<app>/"
}
