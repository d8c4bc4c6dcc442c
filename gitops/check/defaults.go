package check

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Default sets the defaults of the object's kind, as the API server does. It returns the typed object.
func (k Kinds) Default(o client.Object) (client.Object, error) {
	name := o.GetObjectKind().GroupVersionKind().Kind
	kind := k[name]
	if kind == nil {
		return nil, fmt.Errorf("no file declares a %s", name)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", o.GetName(), err)
	}
	defaulting.Default(content, kind.schema)
	out := kind.empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, out); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", o.GetName(), err)
	}
	return out, nil
}
