// Package values merges the values of a chart: from files, from ConfigMaps and Secrets, and from the App itself.
package values

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/chartvalues"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// defaultValuesKey is the key of a ConfigMap or Secret that holds values when the reference names none.
const defaultValuesKey = "values.yaml"

// Merge returns the values for a chart. Each source is merged over the earlier ones: valuesFiles in their order, then valuesFrom in theirs,
// then the inline values. files is the app's folder; it may be nil without valuesFiles.
//
// Merging works as in Helm; see chartvalues.Merge. Numbers are parsed as by `helm install -f`.
//
// Errors name the file, or the kind, name and key, and never contain values of a ConfigMap or Secret. A missing source is a
// render.ErrMissing (valuesFrom) or an fs.ErrNotExist (valuesFiles); any other error of lookup is returned as it is.
func Merge(helm *v1alpha1.HelmSource, files fs.FS, lookup render.Lookup) (map[string]any, error) {
	values := map[string]any{}
	for _, name := range helm.ValuesFiles {
		layer, err := valuesFile(files, name)
		if err != nil {
			return nil, err
		}
		values = chartvalues.Merge(values, layer)
	}
	for _, ref := range helm.ValuesFrom {
		if err := mergeReference(&values, ref, lookup); err != nil {
			return nil, fmt.Errorf("valuesFrom: %w", err)
		}
	}
	if helm.Values == nil {
		return values, nil
	}
	var layer map[string]any
	if err := json.Unmarshal(helm.Values.Raw, &layer); err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	return chartvalues.Merge(values, layer), nil
}

func valuesFile(files fs.FS, name string) (map[string]any, error) {
	if files == nil {
		return nil, render.Missing(fs.ErrNotExist, "valuesFiles: %s: the app has no folder", name)
	}
	clean := path.Clean(name)
	if !fs.ValidPath(clean) {
		return nil, fmt.Errorf("valuesFiles: path %q must be relative and stay inside the app's folder", name)
	}
	data, err := render.ReadFile(files, clean)
	if err != nil {
		return nil, fmt.Errorf("valuesFiles: %w", err)
	}
	layer, err := readValues(data)
	if err != nil {
		return nil, brokenFile(clean, data, err)
	}
	return layer, nil
}

func readValues(data []byte) (map[string]any, error) {
	if err := yamlcheck.Entries(data); err != nil {
		return nil, err
	}
	if err := yamlcheck.Aliases(data); err != nil {
		return nil, err
	}
	var layer map[string]any
	err := yaml.Unmarshal(data, &layer)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return nil, errNoMapping
	}
	return layer, err
}

func mergeReference(values *map[string]any, ref v1alpha1.ValuesReference, lookup render.Lookup) error {
	content, err := referred(ref, lookup)
	if errors.Is(err, render.ErrMissing) && ref.Optional {
		return nil
	}
	if err != nil {
		return err
	}
	if err := mergeContent(values, ref, content); err != nil {
		return fmt.Errorf("%s/%s key %s: %w", ref.Kind, ref.Name, valuesKey(ref), err)
	}
	return nil
}

// referred returns the value that a reference names; a missing key is a render.ErrMissing, like a missing object.
func referred(ref v1alpha1.ValuesReference, lookup render.Lookup) ([]byte, error) {
	data, err := lookup(ref.Kind, ref.Name)
	if errors.Is(err, render.ErrMissing) {
		return nil, render.Missing(render.ErrMissing, "%s %s %v", ref.Kind, ref.Name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	content, ok := data[valuesKey(ref)]
	if !ok {
		return nil, render.Missing(render.ErrMissing, "%s %s has no key %s", ref.Kind, ref.Name, valuesKey(ref))
	}
	return content, nil
}

func mergeContent(values *map[string]any, ref v1alpha1.ValuesReference, content []byte) error {
	if ref.TargetPath != "" {
		return setPath(*values, ref.TargetPath, scalar(string(content)))
	}
	layer, err := readValues(content)
	if errors.Is(err, yamlcheck.ErrTooLarge) {
		return err
	}
	if err != nil {
		// YAML parsers quote the text that they report.
		return errors.New("the content is not a YAML mapping")
	}
	*values = chartvalues.Merge(*values, layer)
	return nil
}

func valuesKey(ref v1alpha1.ValuesReference) string {
	if ref.ValuesKey == "" {
		return defaultValuesKey
	}
	return ref.ValuesKey
}
