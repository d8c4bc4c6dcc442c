package decrypt

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/ini.v1"
)

// iniOptions are those of SOPS, with the same library: the MAC is over what it reads.
var iniOptions = ini.LoadOptions{AllowNonUniqueSections: true}

func loadINI(data []byte) ([]mapping, error) {
	if bytes.Count(data, []byte("\n")) > maxINILines {
		return nil, fmt.Errorf("is an INI file of more than %d lines: %w", maxINILines, ErrDamaged)
	}
	file, err := ini.LoadSources(iniOptions, data)
	if err != nil {
		return nil, errForm // The parser quotes the line.
	}
	if sections, err := file.SectionsByName(metadataKey); err == nil && len(sections) > 1 {
		return nil, errForm // One would be taken for content.
	}
	var document mapping
	for _, section := range file.Sections() {
		values := mapping{}
		for _, key := range section.Keys() {
			values = append(values, field{key.Name(), key.Value()})
		}
		document = append(document, field{section.Name(), values})
	}
	return []mapping{document}, nil
}

// inSection takes the metadata from the section that SOPS made, whose fields are flat and have their line breaks escaped.
func inSection(documents []mapping) ([]mapping, *metadata) {
	at := slices.IndexFunc(documents[0], func(f field) bool { return f.name == metadataKey })
	if at < 0 {
		return documents, nil
	}
	var fields mapping
	for _, f := range documents[0][at].value.(mapping) {
		fields = append(fields, field{f.name, strings.ReplaceAll(f.value.(string), `\n`, "\n")})
	}
	return []mapping{slices.Delete(documents[0], at, at+1)}, readMetadata(unflatten(fields))
}

func emitINI(documents []mapping) ([]byte, error) {
	file := ini.Empty(iniOptions)
	file.DeleteSection(ini.DefaultSection)
	for _, f := range documents[0] {
		section, err := file.NewSection(f.name)
		if err != nil {
			return nil, errForm
		}
		for _, value := range f.value.(mapping) {
			if _, err := section.NewKey(value.name, string(bytesOf(value.value))); err != nil {
				return nil, fmt.Errorf("section %.100q: %w", f.name, errForm) // The library may quote the value.
			}
		}
	}
	var out bytes.Buffer
	_, err := file.WriteTo(&out)
	return out.Bytes(), err
}
