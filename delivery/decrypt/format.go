package decrypt

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Format is the format in which SOPS wrote a file.
type Format int

// The formats of SOPS. A Binary file was encrypted as one value and is written as JSON.
const (
	Binary Format = iota
	YAML
	JSON
	Env
	INI
)

// formatOf returns the format of a file by its extension. An .ini file may also have been encrypted as one value.
func formatOf(name string, data []byte) Format {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml":
		return YAML
	case ".json":
		return JSON
	case ".env":
		return Env
	case ".ini":
		if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
			return INI
		}
	}
	return Binary
}

// opening is the beginning of every encrypted value, and so of the MAC in every encrypted file.
const opening = "ENC[AES256_GCM,"

var (
	// claimed matches the metadata of SOPS in a file of any format.
	claimed = regexp.MustCompile(`(?m)^(sops:|sops_mac=|\[sops\]|[\s{]*"sops"\s*:)`)
	inEnv   = regexp.MustCompile(`(?m)^sops_mac=.`)
	inINI   = regexp.MustCompile(`(?m)^\s*\[sops\]`)
)

// encrypted reports whether SOPS encrypted the file. A file that cannot be parsed counts as encrypted if it looks like one.
func encrypted(in Format, data []byte) bool {
	if !bytes.Contains(data, []byte(`sops`)) || !bytes.Contains(data, []byte(opening)) {
		return false
	}
	var err error
	var about struct {
		MAC any `json:"mac" yaml:"mac"`
	}
	switch in {
	case Env:
		return inEnv.Match(data)
	case INI:
		return inINI.Match(data)
	case YAML:
		// The first document of a file contains the metadata about all documents.
		var document struct {
			SOPS yamlv3.Node `yaml:"sops"`
		}
		if err = yamlv3.Unmarshal(data, &document); err == nil && document.SOPS.Kind&(yamlv3.MappingNode|yamlv3.AliasNode) != 0 {
			err = document.SOPS.Decode(&about)
		}
	default:
		var document map[string]json.RawMessage
		if err = json.Unmarshal(data, &document); err == nil {
			_ = json.Unmarshal(document["sops"], &about) // If it is no object, or missing, SOPS did not write the file.
		}
	}
	if err != nil {
		return claimed.Match(data)
	}
	return about.MAC != nil && about.MAC != ""
}
