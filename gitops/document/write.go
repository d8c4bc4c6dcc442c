package document

import (
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Write returns the text of a new file that declares an object.
func Write(kind, name string, spec map[string]any) ([]byte, error) {
	object := map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": name}}
	if len(spec) > 0 {
		object["spec"] = spec
	}
	return yaml.Marshal(object)
}
