package manifests

import (
	"bytes"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// Limits of what Places reads in one call: it only makes messages better.
const (
	placeBytes    = 1 << 20
	placeEntries  = 2000
	documentBytes = 64 << 10
)

// Place is a line of a file, such as that at which the manifest of an object begins.
type Place struct {
	File string
	Line int
}

// Places returns the places of objects, whose names are "<kind>/<name>". It knows those that exactly one document of the folder declares, or of all files:
// a kustomization has bases beside its own folder. A kustomization may also give an object another name than the manifest has, and several documents may
// have one name. It finds kind and name by their lines, without a parser: tenants write the files, and it runs in the operator. So it does not know objects
// in Lists, in JSON and in documents written in braces.
func Places(files fs.FS, folder string, objects []string) map[string]Place {
	s := &search{files: files, bytes: placeBytes, entries: placeEntries, found: map[string][]Place{}}
	for _, object := range objects {
		s.found[object] = nil
	}
	places := map[string]Place{}
	for _, within := range slices.Compact([]string{path.Join(".", folder), "."}) {
		if render.Walk(files, within, s.look) != nil {
			break // What was found may be there twice.
		}
		for object, all := range s.found {
			if len(all) == 1 {
				places[object] = all[0]
			}
			if len(all) > 0 {
				delete(s.found, object)
			}
		}
		if len(s.found) == 0 {
			break
		}
	}
	return places
}

// search is a search for the documents that declare objects, within limits.
type search struct {
	files   fs.FS
	bytes   int64
	entries int
	// found are the places of the objects that are looked for.
	found map[string][]Place
}

func (s *search) look(at string, entry fs.DirEntry) error {
	if s.entries--; s.entries < 0 {
		return render.ErrTooLarge
	}
	if entry.IsDir() || !entry.Type().IsRegular() || !IsFile(at) {
		return nil
	}
	about, err := entry.Info()
	if err != nil {
		return err
	}
	if s.bytes -= about.Size(); s.bytes < 0 {
		return render.ErrTooLarge
	}
	data, err := render.ReadFile(s.files, at)
	if err != nil {
		return err
	}
	for _, doc := range yamlcheck.Split(data) {
		if len(doc.Data) > documentBytes {
			continue
		}
		object := declared(doc.Data)
		if all, wanted := s.found[object]; wanted {
			s.found[object] = append(all, Place{at, doc.Line})
		}
	}
	return nil
}

// inBraces finds the name in metadata that are written in braces, before any others in these.
var inBraces = regexp.MustCompile(`^\{(?:[^{}]*,)?\s*name:\s*([^,}]+)`)

// declared returns "<kind>/<name>" of the object that a document declares, as far as it has them on lines of their own.
func declared(document []byte) string {
	kind, name, indent := "", "", 0 // indent is that of the fields of metadata: 0 outside of them, and -1 before the first.
	for line := range bytes.Lines(document) {
		text := string(bytes.TrimRight(line, " \r\n"))
		content := strings.TrimLeft(text, " ")
		at := len(text) - len(content)
		key, value, _ := strings.Cut(content, ":")
		switch {
		case content == "" || content[0] == '#':
		case at == 0:
			indent = 0
			switch key {
			case "kind":
				kind = scalar(value)
			case "metadata":
				name, indent = inLine(strings.TrimLeft(value, " "))
			}
		case indent == -1 || at == indent:
			indent = at
			if key == "name" {
				name = scalar(value)
			}
		}
	}
	return kind + "/" + name
}

// inLine returns the name in metadata that are written in braces. Otherwise they follow, and indent is -1.
func inLine(value string) (name string, indent int) {
	if value == "" || value[0] == '#' {
		return "", -1
	}
	if match := inBraces.FindStringSubmatch(value); match != nil {
		return scalar(match[1]), 0
	}
	return "", 0
}

// scalar returns a value without its comment and quotes.
func scalar(text string) string {
	text, _, _ = strings.Cut(text, " #")
	return strings.Trim(strings.TrimSpace(text), `"'`)
}
