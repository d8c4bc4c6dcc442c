package kustomize

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// above is the path at which kustomize sees the overlay of an App's spec: outside of the repository, so that no path in the repository can
// name it.
const above = "/overlay"

// overlay contains what an App's spec changes in a folder, as a kustomization above it.
type overlay struct {
	files  fs.FS
	folder string
	// resources are the folder or, if it holds no kustomization, its manifests.
	resources []string
	with      *v1alpha1.Build
}

// Changes reports whether the spec needs kustomize: see BuildWith.
func Changes(with *v1alpha1.Build) bool {
	return len(with.Patches)+len(with.Images)+len(with.Components) > 0
}

// BuildWith applies the components, patches and images of an App's spec to a folder, in kustomize's order, as if a kustomization named the
// resources: the folder, or, if it has no kustomization, its manifests. Components are folders relative to it, and must be in the
// repository. An error about a patch names it as "patches[i]".
func BuildWith(files fs.FS, folder string, resources []string, with *v1alpha1.Build) ([]*unstructured.Unstructured, error) {
	o := &overlay{files: files, folder: folder, resources: resources, with: with}
	return o.build()
}

func (o *overlay) build() ([]*unstructured.Unstructured, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	objects, err := o.upTo(len(o.with.Patches))
	if err == nil || errors.Is(err, render.ErrTooLarge) || errors.Is(err, yamlcheck.ErrTooLarge) {
		return objects, err
	}
	return nil, o.blame(err)
}

// check refuses paths that kustomize would not look up in the repository.
func (o *overlay) check() error {
	for _, resource := range o.resources {
		if isRemoteBase(inRepository(resource)) {
			return fmt.Errorf("%s: has a name that kustomize takes for an address; rename it", resource)
		}
	}
	for i, patch := range o.with.Patches {
		if err := (&inside{}).check([]byte(patch.Patch), deepest); err != nil {
			return fmt.Errorf("patches[%d]: %w", i, err)
		}
	}
	var problems []error
	for i, component := range o.with.Components {
		if err := o.checkComponent(component); err != nil {
			problems = append(problems, fmt.Errorf("components[%d]: %w", i, err))
		}
	}
	return errors.Join(problems...)
}

func (o *overlay) checkComponent(component string) error {
	if isRemoteBase(component) || isRemoteBase(inRepository(path.Join(o.folder, component))) {
		return fmt.Errorf("%q is remote; only what is in the repository can be used", component)
	}
	if err := checkBase(o.files, o.folder, component); err != nil {
		return err
	}
	name, err := FileIn(o.files, path.Join(o.folder, component))
	if err != nil {
		return err
	}
	if name == "" {
		return fmt.Errorf("%s: holds no kustomization.yaml", component)
	}
	return nil
}

// upTo builds with the first n patches.
func (o *overlay) upTo(n int) ([]*unstructured.Unstructured, error) {
	var k types.Kustomization
	for _, resource := range o.resources {
		k.Resources = append(k.Resources, inRepository(resource))
	}
	for _, component := range o.with.Components {
		k.Components = append(k.Components, inRepository(path.Join(o.folder, component)))
	}
	for _, patch := range o.with.Patches[:n] {
		k.Patches = append(k.Patches, types.Patch{Patch: patch.Patch, Target: selector(patch.Target)})
	}
	for _, image := range o.with.Images {
		k.Images = append(k.Images, types.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest})
	}
	data, err := yaml.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("writing the kustomization of the app's spec: %w", err)
	}
	t := &tree{files: o.files, over: data}
	t.spread.kustomization(data, &k, 0)
	return kustomized(t, above, o.folder)
}

// blame finds the patch that makes a build fail. Patches are applied in order, so every build that includes the patch fails.
func (o *overlay) blame(err error) error {
	var first error
	i := sort.Search(len(o.with.Patches), func(i int) bool {
		_, failed := o.upTo(i + 1)
		if failed != nil {
			first = failed
		}
		return failed != nil
	})
	if i == len(o.with.Patches) {
		return err
	}
	if i == 0 {
		if _, without := o.upTo(0); without != nil {
			return without
		}
	}
	return fmt.Errorf("patches[%d]%s: %w", i, aimOf(o.with.Patches[i]), first)
}

// aimOf names the target of a patch. A patch without a target names its object itself, and kustomize's message repeats that.
func aimOf(patch kustomize.Patch) string {
	if patch.Target == nil {
		return ""
	}
	return fmt.Sprintf(" of %s/%s", patch.Target.Kind, patch.Target.Name)
}

func selector(target *kustomize.Selector) *types.Selector {
	if target == nil {
		return nil
	}
	return &types.Selector{
		ResId: resid.ResId{
			Gvk:  resid.Gvk{Group: target.Group, Version: target.Version, Kind: target.Kind},
			Name: target.Name, Namespace: target.Namespace,
		},
		AnnotationSelector: target.AnnotationSelector, LabelSelector: target.LabelSelector,
	}
}

// inRepository returns a path of the repository as the overlay writes it.
func inRepository(name string) string { return path.Join("..", mount, name) }

var overlayFile = path.Join(above, konfig.DefaultKustomizationFileName())
