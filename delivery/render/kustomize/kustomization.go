package kustomize

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/kubeop/kubeop/delivery/render"
)

// checkKustomization refuses a kustomization that would make kustomize leave the repository, or that names a base or resource that does not
// exist. It decodes the file with kustomize's own decoder, so that both see the same fields.
func checkKustomization(files fs.FS, name string, data []byte) (*types.Kustomization, error) {
	k := &types.Kustomization{}
	if err := k.Unmarshal(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	k.FixKustomization()
	if field := refusedField(k); field != "" {
		return nil, fmt.Errorf("%s: %s is refused: %s", name, field, refusedFields[field])
	}
	for _, use := range uses(k) {
		if isRemoteFile(use.path) {
			return nil, remote(name, use)
		}
	}
	return k, checkBases(files, name, k)
}

func remote(name string, use use) error {
	return fmt.Errorf("%s: %s: %q is remote; only what is in the repository can be used", name, use.field, use.path)
}

const pluginsRefused = "plugins can load from anywhere; use the fields of the kustomization instead"

var refusedFields = map[string]string{
	"helmCharts": "charts are delivered by apps of type Helm",
	// A schema stays set in the process, for the builds of all tenants.
	"openapi":    "the schemas of Kubernetes are built in",
	"generators": pluginsRefused,
	"validators": pluginsRefused,
}

// refusedField returns the first refused field that is set. The configuration of a plugin is made of resources, which kustomizations can
// compose, so its paths cannot be checked before it runs. checkTransformers checks transformers.
func refusedField(k *types.Kustomization) string {
	switch {
	case len(k.HelmCharts) > 0 || k.HelmGlobals != nil:
		return "helmCharts"
	case len(k.OpenAPI) > 0:
		return "openapi"
	case len(k.Generators) > 0:
		return "generators"
	case len(k.Validators) > 0:
		return "validators"
	}
	return ""
}

// use is a path that a kustomization loads, and the field that has it.
type use struct{ field, path string }

// uses lists every path that kustomize would load for a kustomization.
func uses(k *types.Kustomization) []use {
	var all []use
	list := func(field string, paths ...string) {
		for _, p := range paths {
			all = append(all, use{field, p})
		}
	}
	list("resources", k.Resources...)
	list("components", k.Components...)
	list("crds", k.Crds...)
	list("configurations", k.Configurations...)
	for _, patch := range k.PatchesStrategicMerge {
		list("patchesStrategicMerge", string(patch))
	}
	for _, patch := range append(k.Patches, k.PatchesJson6902...) {
		list("patches", patch.Path)
	}
	for _, replacement := range k.Replacements {
		list("replacements", replacement.Path)
	}
	for _, generator := range k.ConfigMapGenerator {
		list("configMapGenerator", sources(generator.KvPairSources)...)
	}
	for _, generator := range k.SecretGenerator {
		list("secretGenerator", sources(generator.KvPairSources)...)
	}
	return all
}

// sources lists the files of a generator. A file may be written as "key=path".
func sources(from types.KvPairSources) []string {
	paths := append([]string{from.EnvSource}, from.EnvSources...)
	for _, source := range from.FileSources {
		_, file, _ := strings.Cut(source, "=")
		paths = append(paths, source, file)
	}
	return paths
}

// isRemoteFile reports whether kustomize would load a file over HTTP. The test is kustomize's own; for some fields, kustomize trims spaces
// before the test. A patch that is written inline is no URL, whatever its text.
func isRemoteFile(name string) bool {
	address, err := url.Parse(strings.TrimSpace(name))
	return err == nil && (address.Scheme == "http" || address.Scheme == "https")
}

// login matches "user@host:repository" at the beginning, which kustomize takes for a Git repository.
var login = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@`)

// isRemoteBase reports whether kustomize might clone a base: a URL, user@host or github.com, with or without the prefix "git::". It matches
// more than kustomize's test. It comes before the lookup in the repository, because kustomize clones a base of such a name even if a folder
// of that name exists.
func isRemoteBase(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, prefix := range []string{"git::", "github.com/", "github.com:"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.Contains(name, "://") || login.MatchString(name) || isRemoteFile(name)
}

// checkBases makes sure that resources and components are in the repository. Kustomize tries to clone a path that it cannot find, and its
// error messages do not make clear which name is wrong.
func checkBases(files fs.FS, name string, k *types.Kustomization) error {
	var problems []error
	for _, base := range uses(&types.Kustomization{Resources: k.Resources, Components: k.Components}) {
		if isRemoteBase(base.path) {
			problems = append(problems, remote(name, base))
		} else if err := checkBase(files, path.Dir(name), base.path); err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", name, base.field, err))
		}
	}
	return errors.Join(problems...)
}

func checkBase(files fs.FS, folder, base string) error {
	target := path.Join(folder, base)
	if path.IsAbs(base) || !fs.ValidPath(target) {
		return fmt.Errorf("%s: outside the repository", base)
	}
	_, err := render.Stat(files, target)
	return err
}

// FileIn returns the name of the kustomization file in a folder, "" where there is none.
func FileIn(files fs.FS, folder string) (string, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", folder, err)
	}
	for _, entry := range entries {
		if IsFile(entry.Name()) {
			return entry.Name(), nil
		}
	}
	return "", nil
}

// IsFile reports whether a file of that name is a kustomization.
func IsFile(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), name)
}
