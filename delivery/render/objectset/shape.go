package objectset

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serverFields of the metadata are written by the API server alone. Manifests saved with kubectl get carry them, and
// server-side apply refuses some of them, so they are dropped.
var serverFields = []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// checkShape says why a mapping is not an object that can be applied.
func checkShape(object map[string]any) error {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	_, kustomization := object["resources"].([]any)
	switch {
	case version == "" && kind == "" && kustomization:
		return errors.New("apiVersion and kind are missing; a kustomization must be at the path of an app of type Git, which builds it")
	case version == "" && kind == "":
		return errors.New("apiVersion and kind are missing: not a Kubernetes object")
	case version == "":
		return fmt.Errorf("%s has no apiVersion", kind)
	case kind == "":
		return errors.New("kind is missing")
	}
	group, err := schema.ParseGroupVersion(version)
	if err != nil {
		return fmt.Errorf("%s: apiVersion %q must be <group>/<version> or v1", kind, version)
	}
	if group.Group == "kustomize.config.k8s.io" {
		return fmt.Errorf("%s is built with kustomize; it must be at the path of an app of type Git", kind)
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("%s has no metadata", kind)
	}
	if err := checkMetadata(metadata); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	for _, field := range serverFields {
		delete(metadata, field)
	}
	return nil
}

func checkMetadata(metadata map[string]any) error {
	name, isText := metadata["name"].(string)
	switch {
	case name == "" && metadata["generateName"] != nil:
		return errors.New("metadata.generateName is refused: every pass would make another object; set metadata.name")
	case metadata["name"] != nil && !isText:
		return errors.New("metadata.name must be a text; put it in quotes")
	case name == "":
		return errors.New("metadata.name is missing")
	}
	if metadata["namespace"] == nil {
		delete(metadata, "namespace")
	} else if _, ok := metadata["namespace"].(string); !ok {
		return errors.New("metadata.namespace must be a text; put it in quotes")
	}
	if err := checkTexts(metadata, "labels"); err != nil {
		return err
	}
	return checkTexts(metadata, "annotations")
}

// checkTexts makes sure that labels and annotations are texts: the accessors of unstructured objects treat a mapping with a single number
// in it as empty, and would hide the other entries.
func checkTexts(metadata map[string]any, field string) error {
	if metadata[field] == nil {
		delete(metadata, field)
		return nil
	}
	values, ok := metadata[field].(map[string]any)
	if !ok {
		return fmt.Errorf("metadata.%s must be a mapping", field)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, ok := values[key].(string); !ok {
			return fmt.Errorf("metadata.%s: the value of %q must be a text; put it in quotes", field, key)
		}
	}
	return nil
}
