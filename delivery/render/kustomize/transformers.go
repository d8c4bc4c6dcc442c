package kustomize

import (
	"fmt"
	"io/fs"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// allowedTransformers are the built-in transformers that only write labels and annotations. They load nothing.
var allowedTransformers = []string{"LabelTransformer", "AnnotationsTransformer"}

// maxFieldSpecs is how many fields a transformer may write its texts into.
const maxFieldSpecs = 100

// checkTransformers refuses transformers that are not built-in ones for labels and annotations, each in a file of the repository. A folder or
// an inline text is refused, too. It returns an upper bound of the bytes that they add to an object, a field of list entries counted once.
func checkTransformers(files fs.FS, name string, k *types.Kustomization) (bytes int, err error) {
	for _, entry := range k.Transformers {
		added, why := checkTransformer(files, path.Join(path.Dir(name), entry), entry)
		if why != "" {
			return 0, fmt.Errorf("%s: transformers is refused: %s; of transformers, files with %s and %s of apiVersion builtin can be used, but %s: %s",
				name, pluginsRefused, allowedTransformers[0], allowedTransformers[1], entry, why)
		}
		bytes += added
	}
	return bytes, nil
}

// checkTransformer returns why a transformer is refused. It parses the file as kustomize does. An annotation could name a program to run.
func checkTransformer(files fs.FS, file, entry string) (bytes int, why string) {
	if isRemoteBase(entry) || path.IsAbs(entry) || !fs.ValidPath(file) {
		return 0, "it is not in the repository"
	}
	data, err := render.ReadFile(files, file)
	if err != nil {
		return 0, err.Error()
	}
	if yamlcheck.Aliases(data) != nil || yamlcheck.AliasBytes(data) > 0 {
		return 0, "it has YAML aliases"
	}
	objects, err := resources.SliceFromBytes(data)
	if err != nil || len(objects) == 0 {
		return 0, "it holds no objects"
	}
	for _, o := range objects {
		fields := fieldSpecs(o)
		switch {
		case o.GetApiVersion() != "builtin" || !slices.Contains(allowedTransformers, o.GetKind()):
			return 0, fmt.Sprintf("it holds a %s of apiVersion %s", o.GetKind(), o.GetApiVersion())
		case len(o.GetAnnotations()) > 0:
			return 0, "it has annotations itself"
		case fields > maxFieldSpecs:
			return 0, fmt.Sprintf("it has more than %d fieldSpecs", maxFieldSpecs)
		}
		bytes += len(data) * (1 + fields)
	}
	return bytes, ""
}

func fieldSpecs(o *resource.Resource) int {
	specs := o.Field("fieldSpecs")
	if specs == nil || specs.Value == nil {
		return 0
	}
	return len(specs.Value.Content())
}
