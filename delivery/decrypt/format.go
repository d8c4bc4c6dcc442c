package decrypt

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Format is how SOPS wrote a file.
type Format int

// The formats of SOPS. Binary is a file that it encrypted as one value, written as JSON.
const (
	Binary Format = iota
	YAML
	JSON
	Env
	INI
)

// formatOf is the format of a file by its extension. An .ini file may also have been encrypted as one value.
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

// opening begins every encrypted value, and so the MAC of every encrypted file.
const opening = "ENC[AES256_GCM,"

var (
	// claimed finds the metadata of SOPS in a file of any format.
	claimed = regexp.MustCompile(`(?m)^(sops:|sops_mac=|\[sops\]|[\s{]*"sops"\s*:)`)
	inEnv   = regexp.MustCompile(`(?m)^sops_mac=.`)
	inINI   = regexp.MustCompile(`(?m)^\s*\[sops\]`)
)

// encrypted reports whether SOPS encrypted the file. One that cannot be read is taken to be if it looks like that.
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
		// Of the documents of a file the first has what SOPS wrote about all.
		var document struct {
			SOPS yamlv3.Node `yaml:"sops"`
		}
		if err = yamlv3.Unmarshal(data, &document); err == nil && document.SOPS.Kind&(yamlv3.MappingNode|yamlv3.AliasNode) != 0 {
			err = document.SOPS.Decode(&about)
		}
	default:
		var document map[string]json.RawMessage
		if err = json.Unmarshal(data, &document); err == nil && document["sops"] != nil {
			_ = json.Unmarshal(document["sops"], &about) // What is no object is not SOPS'.
		}
	}
	if err != nil {
		return claimed.Match(data)
	}
	return about.MAC != nil && about.MAC != ""
}
