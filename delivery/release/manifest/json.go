package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// InJSON converts the objects that templates rendered to JSON, in the process that may parse the input of tenants. Helm, for which JSON is
// YAML, finds the same objects and hooks in the result, in the same order. The recorded manifest is written anew in any case.
func InJSON(templates map[string]string, note func(string)) (map[string]string, error) {
	out := maps.Clone(templates)
	nodesLeft := yamlcheck.MaxNodes
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		if notManifests(name) {
			continue
		}
		note("reading what template " + name + " renders to")
		text, err := objectsInJSON(name, templates[name])
		if err != nil {
			return nil, cmp.Or(unreadable(templates), err)
		}
		if nodesLeft -= yamlcheck.JSONNodes([]byte(text)); nodesLeft < 0 {
			return nil, fault.Render(fmt.Errorf("what template %s renders to: %w", name, yamlcheck.ErrNodes))
		}
		out[name] = text
	}
	return out, nil
}

// notManifests reports whether Helm does not parse the text of a template.
func notManifests(name string) bool {
	return NotesFile(name) || strings.HasPrefix(path.Base(name), "_")
}

// objectsInJSON converts the documents of one template, which it splits as Helm does.
func objectsInJSON(name, text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return text, nil
	}
	entries := releaseutil.SplitManifests(text)
	keys := slices.Collect(maps.Keys(entries))
	slices.SortFunc(keys, func(x, y string) int {
		if (releaseutil.BySplitManifestsOrder{x, y}).Less(0, 1) {
			return -1
		}
		return 1
	})
	var out strings.Builder
	for _, key := range keys {
		// Helm trims the text of a document, and both parsers add a line break at its end again.
		data, err := objectInJSON([]byte(entries[key] + "\n"))
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		out.WriteString("---\n")
		out.Write(data)
		out.WriteString("\n")
	}
	return out.String(), nil
}

// objectInJSON converts a document to the form that Written accepts, if document.read accepts it.
func objectInJSON(text []byte) ([]byte, error) {
	data, err := dataOf(text)
	if err != nil {
		return nil, err
	}
	var content any
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	if data, err = json.Marshal(content); err != nil {
		return nil, err
	}
	return data, (&Document{}).read(data)
}

// unreadable returns the error with which Helm, or the check of objects after it, fails on the unconverted templates.
func unreadable(templates map[string]string) error {
	manifests := maps.Clone(templates)
	maps.DeleteFunc(manifests, func(name, _ string) bool { return NotesFile(name) })
	hooks, sorted, err := releaseutil.SortManifests(manifests, nil, releaseutil.InstallOrder)
	if err != nil {
		return err
	}
	var all strings.Builder
	for _, m := range sorted {
		fmt.Fprintf(&all, "---\n%s%s\n%s\n", SourcePrefix, m.Name, m.Content)
	}
	if _, err := Parse(all.String()); err != nil {
		return err
	}
	for _, h := range hooks {
		if _, err := Parse(h.Manifest); err != nil {
			return fault.Render(fmt.Errorf("hook %s: %w", h.Path, err))
		}
	}
	return nil
}

// NotesFile reports whether Helm takes a template for notes, which are not YAML.
func NotesFile(name string) bool { return strings.HasSuffix(name, "NOTES.txt") }
