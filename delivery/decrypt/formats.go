package decrypt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// format is how a file is read into documents and written again, as SOPS does it.
type format struct {
	load func([]byte) ([]mapping, error)
	emit func([]mapping) ([]byte, error)
	// metadata takes what SOPS wrote out of the documents; nil when there is nothing.
	metadata func([]mapping) ([]mapping, *metadata)
}

var (
	yamlFormat   = format{loadYAML, emitYAML, underKey}
	jsonFormat   = format{loadJSON, emitJSON, underKey}
	envFormat    = format{loadEnv, emitEnv, behindPrefix}
	iniFormat    = format{loadINI, emitINI, inSection}
	binaryFormat = format{loadJSON, emitBinary, underKey}
)

// read returns the documents of a file and what SOPS wrote about them; nothing of the latter when it wrote nothing.
func (f format) read(data []byte) ([]mapping, *metadata, error) {
	documents, err := f.load(data)
	if err != nil {
		return nil, nil, err
	}
	documents, about := f.metadata(documents)
	return documents, about, nil
}

// errForm says that a file is not what SOPS writes.
var errForm = errors.New("not of the form that SOPS writes")

// metadataKey is the key of the metadata; in a format with texts alone its fields begin with it.
const metadataKey, metadataPrefix = "sops", "sops_"

// underKey takes the metadata from the first document; SOPS repeats it in all.
func underKey(documents []mapping) ([]mapping, *metadata) {
	var about *metadata
	for i, document := range documents {
		kept := make(mapping, 0, len(document))
		for _, f := range document {
			if f.name != metadataKey {
				kept = append(kept, f)
			} else if i == 0 && about == nil {
				about = readMetadata(f.value)
			}
		}
		documents[i] = kept
	}
	return documents, about
}

func behindPrefix(documents []mapping) ([]mapping, *metadata) {
	var kept, fields mapping
	for _, f := range documents[0] {
		if name, ok := strings.CutPrefix(f.name, metadataPrefix); ok {
			fields = append(fields, field{name, f.value})
		} else {
			kept = append(kept, f)
		}
	}
	return []mapping{kept}, readMetadata(unflatten(fields))
}

func loadJSON(data []byte) ([]mapping, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	value, err := readJSON(decoder, 0)
	if err != nil {
		return nil, err
	}
	document, ok := value.(mapping)
	if !ok {
		return nil, errForm
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errForm
	}
	return []mapping{document}, nil
}

func readJSON(decoder *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errForm
	}
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return readJSONObject(decoder, depth)
		}
		list := []any{}
		for decoder.More() {
			item, err := readJSON(decoder, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err := decoder.Token()
		return list, err
	case json.Number:
		if whole, err := t.Int64(); err == nil {
			return int(whole), nil
		}
		return t.Float64()
	}
	return token, nil
}

func readJSONObject(decoder *json.Decoder, depth int) (any, error) {
	object := mapping{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		value, err := readJSON(decoder, depth+1)
		if err != nil {
			return nil, err
		}
		object = append(object, field{name.(string), value})
	}
	_, err := decoder.Token()
	return object, err
}

// MarshalJSON writes the mapping in its order.
func (m mapping) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, f := range m {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := json.Marshal(f.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		out.Write(append(append(name, ':'), value...))
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

func emitJSON(documents []mapping) ([]byte, error) {
	text, err := json.MarshalIndent(documents[0], "", "\t")
	return append(text, '\n'), err
}

// emitBinary returns the one value that SOPS makes of a file it does not understand.
func emitBinary(documents []mapping) ([]byte, error) {
	for _, f := range documents[0] {
		if text, ok := f.value.(string); ok && f.name == "data" {
			return []byte(text), nil
		}
	}
	return nil, fmt.Errorf("it has no value data: %w", ErrDamaged)
}

func loadEnv(data []byte) ([]mapping, error) {
	var document mapping
	for line := range bytes.Lines(data) {
		text := strings.TrimSuffix(string(line), "\n")
		if text == "" || text[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, errForm
		}
		document = append(document, field{name, strings.ReplaceAll(value, `\n`, "\n")})
	}
	return []mapping{document}, nil
}

func emitEnv(documents []mapping) ([]byte, error) {
	var out bytes.Buffer
	for _, f := range documents[0] {
		text := string(bytesOf(f.value))
		fmt.Fprintf(&out, "%s=%s\n", f.name, strings.ReplaceAll(text, "\n", `\n`))
	}
	return out.Bytes(), nil
}
