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

// These bound what one kustomize build may contain and read. Its time grows with the square of the number of objects: a thousand take two
// seconds. A base counts each time it is used, so that overlays which double their base at each level reach the bound early.
const (
	maxBuildObjects = 1000
	maxBuildReads   = 1000
	maxBuildBytes   = 32 << 20
	maxBuildValues  = 150_000
)

// Build builds a folder of a repository that has a kustomization. It may use any file of the repository, at any relative path, and nothing
// else: no remote bases or files, no plugins, no programs, no charts (use an app of type Helm), no custom schemas. See checkKustomization.
// Errors name the file. An exceeded limit is an ErrTooLarge.
func Build(files fs.FS, folder string) ([]*unstructured.Unstructured, error) {
	return kustomized(&tree{files: files}, path.Join(mount, folder), folder)
}

// kustomized runs kustomize at a path of the repository; errors call the path folder.
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

// run turns a panic of kustomize, which unusual manifests have caused before, into an error.
func run(repository *tree, folder string) (built resmap.ResMap, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("kustomize cannot handle these manifests: %v", cause)
		}
	}()
	options := krusty.MakeDefaultOptions()
	// The bound is the repository, not the folder of each kustomization: tree enforces it for every path.
	options.LoadRestrictions = types.LoadRestrictionsNone
	return krusty.MakeKustomizer(options).Run(repository, folder)
}
