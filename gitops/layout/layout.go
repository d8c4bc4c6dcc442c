// Package layout says which path of a repository means what.
package layout

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Version is the only layout version.
const Version = "v1"

// The fixed names of the layout. Everything else in a path is the name of an object.
const (
	VersionFile = "kubeop.yaml"
	TenantFile  = "tenant.yaml"
	ProjectFile = "project.yaml"
	AppFile     = "app.yaml"
	// policyFile, registryFile, priceListFile and clusterFile are names that people give an object in a wrong folder. In PoliciesFolder, RegistriesFolder,
	// PricesFolder and ClustersFolder, the files have the names of their objects.
	policyFile    = "policy.yaml"
	registryFile  = "registry.yaml"
	priceListFile = "pricelist.yaml"
	clusterFile   = "cluster.yaml"

	TenantsFolder = "tenants"
	// PoliciesFolder holds the policies, each in a file of its own, in the platform repository only.
	PoliciesFolder = "policies"
	// RegistriesFolder holds the registries, PricesFolder the price lists, and ClustersFolder the clusters, in the same way.
	RegistriesFolder = "registries"
	PricesFolder     = "prices"
	ClustersFolder   = "clusters"
	ProjectsFolder   = "projects"
	// PlatformFolder holds the projects of the platform itself, in the platform repository only.
	PlatformFolder = "platform"
	AppsFolder     = "apps"
)

// IgnoredAtRoot reports whether an entry of the root folder is not for kubeop, but for people or the Git host.
func IgnoredAtRoot(name string) bool {
	upper := strings.ToUpper(name)
	return strings.HasPrefix(name, ".") || strings.HasPrefix(upper, "README") || strings.HasPrefix(upper, "LICENSE") ||
		upper == "DOCS"
}

// Unusable returns why an entry is neither a file nor a folder with content in this commit; "" if it is one.
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

// SkipUnusable returns what a WalkDir function returns for an unusable entry. A folder named "." or ".." would make the walk endless.
func SkipUnusable(e fs.DirEntry) error {
	if e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// Nearly reports whether a file has the wanted name but for upper case and the spelling of the YAML extension.
func Nearly(name, want string) bool {
	return IsYAML(name) && strings.EqualFold(stem(name), stem(want))
}

// IsYAML reports whether a file has the extension of a YAML file.
func IsYAML(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".yaml" || ext == ".yml"
}

func stem(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// Join appends an entry's name without cleaning the path, so that a name such as ".." cannot leave its folder.
func Join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// Declares reports whether a file has the name of a file that declares an object, in whatever folder it lies.
func Declares(file string) bool {
	return slices.ContainsFunc([]string{TenantFile, ProjectFile, AppFile}, func(name string) bool { return Nearly(path.Base(file), name) })
}

// DeclaresByName reports whether a file looks like one that declares a Policy, a Registry, a PriceList or a Cluster: by its name, or by the name of its folder.
func DeclaresByName(file string) bool {
	return slices.ContainsFunc(byName, func(k kindByName) bool { return k.looksLike(file) })
}

// kindByName is a kind whose objects are files of one folder of the platform repository.
type kindByName struct{ kind, plural, folder, file string }

var byName = []kindByName{
	{"Policy", "Policies", PoliciesFolder, policyFile},
	{"Registry", "Registries", RegistriesFolder, registryFile},
	{"PriceList", "PriceLists", PricesFolder, priceListFile},
	{clusterKind, "Clusters", ClustersFolder, clusterFile},
}

// clusterKind is the kind of ClustersFolder. Repositories of Flux have a folder of this name, too, with a folder for each cluster.
const clusterKind = "Cluster"

func (k kindByName) looksLike(file string) bool {
	if k.kind == clusterKind {
		return Nearly(path.Base(file), k.file) || IsYAML(file) && strings.ToLower(path.Base(path.Dir(file))) == k.folder
	}
	return Nearly(path.Base(file), k.file) || IsYAML(file) && slices.Contains(strings.Split(strings.ToLower(path.Dir(file)), "/"), k.folder)
}

// place is where the kind's files belong: "policies/<policy>.yaml".
func (k kindByName) place() string { return Join(k.folder, "<"+stem(k.file)+">.yaml") }

// PolicyFile is the path of the file that declares a Policy.
func PolicyFile(name string) string { return Join(PoliciesFolder, name+".yaml") }

// RegistryFile is the path of the file that declares a Registry.
func RegistryFile(name string) string { return Join(RegistriesFolder, name+".yaml") }

// PriceListFile is the path of the file that declares a PriceList.
func PriceListFile(name string) string { return Join(PricesFolder, name+".yaml") }

// ClusterFile is the path of the file that declares a Cluster.
func ClusterFile(name string) string { return Join(ClustersFolder, name+".yaml") }

// NameOf returns the name of the object that a file of PoliciesFolder, RegistriesFolder, PricesFolder or ClustersFolder is about, whether the spelling of its extension is
// right or not.
func NameOf(file string) string { return stem(path.Base(file)) }

// Belongs returns why nothing is read from a file and where the file belongs. platform: it lies in the platform repository, not in one of a
// tenant.
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
	if place := belongsByName(file, platform); place != "" {
		return nothing + place
	}
	projects := prefix + ProjectsFolder
	if tool := toolOf(file); tool != "" {
		return nothing + "what " + tool + " reads from such a folder is written as an App in " + projects + "/<project>/apps/<app>/app.yaml"
	}
	return belongs(name, projects)
}

// belongsByName says where a file belongs that looks like one of a Policy, a Registry, a PriceList or a Cluster; "" for any other.
func belongsByName(file string, platform bool) string {
	for _, k := range byName {
		folder := strings.HasPrefix(strings.ToLower(file), k.folder+"/") && (k.kind != clusterKind || k.looksLike(file))
		switch {
		case !platform && (folder || Nearly(path.Base(file), k.file)):
			return k.plural + " are declared in " + k.place() + " of the platform repository only"
		case platform && k.looksLike(file):
			return "a " + k.kind + " belongs in " + k.place() + ", a file of its own directly in that folder of the root"
		}
	}
	return ""
}

// toolOf names the tool for which a file is usually meant, by its path; "" if none is known.
func toolOf(file string) string {
	for _, segment := range strings.Split(strings.ToLower(file), "/") {
		switch {
		case segment == "flux-system", segment == "clusters", strings.HasPrefix(segment, "gotk-"):
			return "Flux"
		case segment == "argocd", segment == "argo-cd", segment == "applicationsets":
			return "Argo CD"
		}
	}
	return ""
}

// OfPlatform reports whether a file lies in the folder of the platform's own projects, or in a folder of that name in tenants/.
func OfPlatform(file string) bool {
	return strings.HasPrefix(file, PlatformFolder+"/") || strings.HasPrefix(file, TenantsFolder+"/"+PlatformFolder+"/")
}

// BelongsToPlatform is Belongs for a file of the platform itself. delivered: the operator delivers apps of the platform.
func BelongsToPlatform(file string, delivered bool) string {
	name := path.Base(file)
	if !delivered && strings.HasPrefix(file, PlatformFolder+"/") {
		return nothing + "this operator delivers no apps of the platform itself: ask an administrator of the cluster to set Namespaced or ClusterAdmin as platformApps of the values of kubeop's chart"
	}
	if Nearly(name, TenantFile) {
		return nothing + "the platform itself is no tenant: its projects belong in platform/<project>/project.yaml, without a tenant.yaml"
	}
	return belongs(name, PlatformFolder)
}

const nothing = "nothing is read from here; "

// belongs is the part of Belongs for files other than tenant.yaml; projects is the folder of the projects.
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
