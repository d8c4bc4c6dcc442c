package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/kustomize"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/filters/imagetag"
	"sigs.k8s.io/kustomize/api/filters/patchstrategicmerge"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/kio"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// postRenderers are the app's own changes to the rendered objects. Each object is changed separately, with kustomize's filters in memory:
// without files, network and programs, and without a conflict between two hooks of the same name.
type postRenderers struct {
	steps  []*postRender
	common *v1alpha1.CommonMetadata
	// grown is the number of bytes by which the steps have enlarged objects so far.
	grown int
}

// postRender is one patch or image.
type postRender struct {
	// where is the position in the app's spec.
	where string
	// target selects objects. A patch without a target changes only the object that it names, aim, which must exist.
	target  differ.Selector
	aim     *unstructured.Unstructured
	matched bool
	// run changes an object, given as JSON. The result is empty if it deletes the object.
	run func(u *unstructured.Unstructured, text []byte) ([]byte, error)
}

// newPostRenderers parses the renderers. Invalid ones are an ErrRender.
func newPostRenderers(renderers []v1alpha1.PostRenderer, common *v1alpha1.CommonMetadata) (*postRenderers, error) {
	p := &postRenderers{common: common}
	for i, r := range renderers {
		for j, patch := range r.Kustomize.Patches {
			where := fmt.Sprintf("postRenderers[%d].kustomize.patches[%d]", i, j)
			if err := p.patch(where, patch); err != nil {
				return nil, fault.Render(fmt.Errorf("%s: %w", where, err))
			}
		}
		for j, image := range r.Kustomize.Images {
			where := fmt.Sprintf("postRenderers[%d].kustomize.images[%d]", i, j)
			if err := p.add(where, imageStep(image)); err != nil {
				return nil, fault.Render(fmt.Errorf("%s: %w", where, err))
			}
		}
	}
	return p, nil
}

// maxSteps limits the patches and images of an app. Each document of a patch counts, because each may run on every object.
const maxSteps = 256

func (p *postRenderers) add(where string, step *postRender) error {
	if len(p.steps) == maxSteps {
		return fault.TooLarge(fmt.Sprintf("the app has more than %d patches and images, the documents of a patch counted one by one", maxSteps))
	}
	step.where = where
	p.steps = append(p.steps, step)
	return nil
}

// patch parses a patch, which may have several documents. Each is passed to kustomize as JSON, after YAML with too large aliases is
// refused.
func (p *postRenderers) patch(where string, patch kustomize.Patch) error {
	before := len(p.steps)
	in := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(patch.Patch)))
	for {
		text, err := in.Read()
		if errors.Is(err, io.EOF) {
			if len(p.steps) == before {
				return errors.New("the patch is empty")
			}
			return nil
		}
		if err != nil {
			return err
		}
		step, err := patchStep(text, patch.Target)
		if err != nil {
			return err
		}
		if step == nil {
			continue
		}
		if err := p.add(where, step); err != nil {
			return err
		}
	}
}

// patchStep parses one document of a patch; nil if it has no content.
func patchStep(text []byte, target *kustomize.Selector) (*postRender, error) {
	if err := yamlcheck.Aliases(text); err != nil {
		return nil, fault.OverLimit(err, yamlcheck.ErrTooLarge)
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil || string(data) == "null" {
		return nil, err
	}
	step := &postRender{}
	if step.target, err = differ.ReadSelector(target); err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	if bytes.HasPrefix(data, []byte("[")) {
		if target == nil {
			return nil, errors.New("a JSON 6902 patch needs a target")
		}
		patch, err := jsonpatch.DecodePatch(data)
		if err != nil {
			return nil, errors.New("it is no JSON 6902 patch")
		}
		step.run = func(_ *unstructured.Unstructured, text []byte) ([]byte, error) { return patch.Apply(text) }
		return step, nil
	}
	patch := &unstructured.Unstructured{}
	if json.Unmarshal(data, &patch.Object) != nil {
		return nil, errors.New("it is neither a strategic merge patch nor a JSON 6902 patch")
	}
	if target == nil {
		step.aim = patch
		if patch.GetAPIVersion() == "" || patch.GetKind() == "" || patch.GetName() == "" {
			return nil, errors.New("a patch without a target needs the apiVersion, kind and metadata.name of the object it is for")
		}
	}
	step.run = func(u *unstructured.Unstructured, text []byte) ([]byte, error) {
		filter, err := strategic(patch, u)
		if err != nil {
			return nil, err
		}
		return filtered(text, filter)
	}
	return step, nil
}

// Limits of patches: each copy operation of a JSON 6902 patch can double an object, and so can each patch.
const (
	// maxCopied limits the sum of the copy operations of one patch.
	maxCopied = 4 << 20
	// maxPatched limits the size of an object after a patch, as JSON: twice what the API server accepts by default.
	maxPatched = 3 << 20
	// maxGrown limits how much all patches may add to all objects.
	maxGrown = 16 << 20
)

var errGrown = fault.TooLarge(fmt.Sprintf("patches make it larger than %d MiB, or all objects larger by more than %d MiB", maxPatched>>20, maxGrown>>20))

// The library has this limit only for the whole process.
func init() { jsonpatch.AccumulatedCopySizeLimit = maxCopied }

// strategic returns the patch for one object. It cannot change the object's identity.
func strategic(patch, u *unstructured.Unstructured) (kio.Filter, error) {
	own := patch.DeepCopy()
	own.SetAPIVersion(u.GetAPIVersion())
	own.SetKind(u.GetKind())
	own.SetName(u.GetName())
	own.SetNamespace(u.GetNamespace())
	text, err := json.Marshal(own.Object)
	if err != nil {
		return nil, err
	}
	node, err := kyaml.Parse(string(text))
	return patchstrategicmerge.Filter{Patch: node}, err
}

// filtered runs kustomize's filters on an object. JSON is YAML, and parsed as YAML it keeps its numbers.
func filtered(text []byte, filters ...kio.Filter) ([]byte, error) {
	node, err := kyaml.Parse(string(text))
	if err != nil {
		return nil, err
	}
	nodes := []*kyaml.RNode{node}
	for _, f := range filters {
		if nodes, err = f.Filter(nodes); err != nil || len(nodes) == 0 || nodes[0] == nil {
			return nil, err
		}
	}
	return nodes[0].MarshalJSON()
}

// imageVolumes are the fields with images outside of containers; kustomize itself finds those of containers.
var imageVolumes = []types.FieldSpec{
	{Path: "spec/volumes[]/image/reference"},
	{Path: "spec/template/spec/volumes[]/image/reference"},
	{Path: "spec/jobTemplate/spec/template/spec/volumes[]/image/reference"},
}

func imageStep(image kustomize.Image) *postRender {
	tag := types.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest}
	return &postRender{run: func(_ *unstructured.Unstructured, text []byte) ([]byte, error) {
		return filtered(text, imagetag.LegacyFilter{ImageTag: tag}, imagetag.Filter{ImageTag: tag, FsSlice: imageVolumes})
	}}
}

// change changes the objects of the documents. A patch may delete an object.
func (p *postRenderers) change(docs []Document) error {
	if p == nil {
		return nil
	}
	for i := range docs {
		var left []*unstructured.Unstructured
		for _, u := range docs[i].Objects {
			changed, err := p.changed(u)
			if err != nil {
				return fault.Render(err)
			}
			if changed != nil {
				p.mark(changed)
				left = append(left, changed)
			}
		}
		docs[i].Objects = left
	}
	return nil
}

// changed returns the object after all steps; nil if a step deleted it.
func (p *postRenderers) changed(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, step := range p.steps {
		if step.aim == nil && !step.target.Selects(u) || step.aim != nil && !step.aimsAt(u) {
			continue
		}
		step.matched = true
		out, err := p.apply(step, u)
		if err != nil {
			return nil, fmt.Errorf("%s: %s/%s: %w", step.where, u.GetKind(), u.GetName(), err)
		}
		if u = out; u == nil {
			return nil, nil
		}
	}
	return u, nil
}

// apply recovers from a panic of kustomize, which unusual objects have caused before.
func (p *postRenderers) apply(step *postRender, u *unstructured.Unstructured) (out *unstructured.Unstructured, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("kustomize cannot handle it: %v", cause)
		}
	}()
	before, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	text, err := step.run(u, before)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	if p.grown += max(0, len(text)-len(before)); len(text) > maxPatched || p.grown > maxGrown {
		return nil, errGrown
	}
	out = &unstructured.Unstructured{}
	return out, utiljson.Unmarshal(text, &out.Object)
}

func (s *postRender) aimsAt(u *unstructured.Unstructured) bool {
	return s.aim.GroupVersionKind() == u.GroupVersionKind() && s.aim.GetName() == u.GetName()
}

// missed returns an ErrRender if a patch for one object found it neither among the manifests nor among the hooks.
func (p *postRenderers) missed() error {
	if p == nil {
		return nil
	}
	for _, s := range p.steps {
		if s.aim != nil && !s.matched {
			return fault.Render(fmt.Errorf("%s: the chart has no %s/%s", s.where, s.aim.GetKind(), s.aim.GetName()))
		}
	}
	return nil
}

// mark adds the common metadata.
func (p *postRenderers) mark(u *unstructured.Unstructured) {
	if p.common == nil {
		return
	}
	if len(p.common.Labels) > 0 {
		u.SetLabels(over(u.GetLabels(), p.common.Labels))
	}
	if len(p.common.Annotations) > 0 {
		u.SetAnnotations(over(u.GetAnnotations(), p.common.Annotations))
	}
}

func over(base, with map[string]string) map[string]string {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, with)
	return out
}

// reserved returns an error if the common metadata contains labels or annotations that only kubeop may set.
func reserved(common *v1alpha1.CommonMetadata) error {
	if common == nil {
		return nil
	}
	for _, set := range []map[string]string{common.Labels, common.Annotations} {
		for _, key := range slices.Sorted(maps.Keys(set)) {
			group, _, _ := strings.Cut(key, "/")
			if group == v1alpha1.Group || strings.HasSuffix(group, "."+v1alpha1.Group) {
				return fmt.Errorf("commonMetadata may not set %s: %s is kubeop's own", key, v1alpha1.Group)
			}
		}
	}
	return nil
}
