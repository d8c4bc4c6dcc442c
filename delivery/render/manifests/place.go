package manifests

import (
	"bytes"
	"io/fs"
	"path"
	"strings"

	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// Limits of what Place reads: it only makes messages better.
const (
	placeBytes    = 4 << 20
	documentBytes = 64 << 10
)

// Place returns the file and the line at which the manifest of an object begins, whose name is "<kind>/<name>"; false unless exactly one document of the
// folder declares it, or of all files: a kustomization has bases beside its own folder. It may also give an object another name than the manifest has,
// and several documents may have one name.
func Place(files fs.FS, folder, object string) (file string, line int, found bool) {
	if file, line, found = placeIn(files, path.Join(".", folder), object); !found {
		file, line, found = placeIn(files, ".", object)
	}
	return file, line, found
}

func placeIn(files fs.FS, folder, object string) (file string, line int, found bool) {
	kind, name, _ := strings.Cut(object, "/")
	left, times := int64(placeBytes), 0
	err := render.Walk(files, folder, func(at string, entry fs.DirEntry) error {
		if entry.IsDir() || !entry.Type().IsRegular() || !IsFile(at) {
			return nil
		}
		data, err := render.ReadFile(files, at)
		if err != nil {
			return err
		}
		if left -= int64(len(data)); left < 0 {
			return render.ErrTooLarge
		}
		for _, doc := range yamlcheck.Split(data) {
			if len(doc.Data) <= documentBytes && bytes.Contains(doc.Data, []byte(kind)) && bytes.Contains(doc.Data, []byte(name)) && declares(doc, kind, name) {
				times++
				file, line = at, doc.Line
			}
		}
		return nil
	})
	return file, line, err == nil && times == 1
}

// declares reports whether a document is an object of that kind and name, or a List with one.
func declares(doc yamlcheck.Text, kind, name string) bool {
	value, err := doc.Decode()
	return err == nil && isOrHas(value, kind, name)
}

func isOrHas(value any, kind, name string) bool {
	object, _ := value.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	if object["kind"] == kind && metadata["name"] == name {
		return true
	}
	items, _ := object["items"].([]any)
	for _, item := range items {
		if isOrHas(item, kind, name) {
			return true
		}
	}
	return false
}
