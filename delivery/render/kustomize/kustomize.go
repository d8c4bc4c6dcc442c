// Package kustomize builds a folder with kustomize, and puts the components, patches and images of an App's spec on top.
package kustomize

import (
	"fmt"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/kubeop/kubeop/delivery/render/objectset"
)

// What one kustomize build may hold and read. Its time grows with the square of the objects: a thousand take two
// seconds. A base counts each time it is used, so overlays that double their base level by level end early too.
const (
	maxBuildObjects = 1000
	maxBuildReads   = 1000
	maxBuildBytes   = 32 << 20
	maxBuildValues  = 150_000
)

// Build builds a folder of a repository that has a kustomization. Everything the repository holds may be used, at any relative path;
// nothing outside of it: no remote bases or files, no plugins, no programs, no charts (an app of type Helm delivers those), no
// schemas of one's own. See checkKustomization. Errors name the file, and a limit that is passed is an ErrTooLarge.
func Build(files fs.FS, folder string) ([]*unstructured.Unstructured, error) {
	return kustomized(&tree{files: files}, path.Join(mount, folder), folder)
}

// kustomized runs kustomize in a place of the repository; folder is what errors call it.
func kustomized(repository *tree, place, folder string) ([]*unstructured.Unstructured, error) {
	built, err := run(repository, place)
	if repository.refused != nil {
		return nil, repository.refused
	}
	if err != nil {
		return nil, fmt.Errorf("building %s with kustomize: %w", folder, err)
	}
	var found objectset.Set
	for _, resource := range built.Resources() {
		data, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("building %s with kustomize: %w", folder, err)
		}
		object := map[string]any{}
		if err := utiljson.Unmarshal(data, &object); err != nil {
			return nil, fmt.Errorf("building %s with kustomize: %w", folder, err)
		}
		found.Add(folder, object)
	}
	return found.Result()
}

// run keeps a panic of kustomize, which unusual manifests have caused before, from ending the operator.
func run(repository *tree, folder string) (built resmap.ResMap, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("kustomize cannot handle these manifests: %v", cause)
		}
	}()
	options := krusty.MakeDefaultOptions()
	// The repository is the bound, not the folder of each kustomization: tree holds it for every path.
	options.LoadRestrictions = types.LoadRestrictionsNone
	return krusty.MakeKustomizer(options).Run(repository, folder)
}
