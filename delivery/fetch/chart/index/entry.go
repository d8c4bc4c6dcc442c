package index

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// An index.yaml lists every version of every chart: tens of megabytes, of which one chart is needed at a time. So it is split line by line
// while it is received, and the lines of each chart are stored separately (see writer). Only the needed keys of these are parsed, version
// by version.

// indexEntry is one version in an index.yaml.
type indexEntry struct {
	Version string   `json:"version"          yaml:"version"`
	URLs    []string `json:"urls"             yaml:"urls"`
	Digest  string   `json:"digest,omitempty" yaml:"digest"`
}

const (
	// maxIndexLine bounds a line of an index.yaml, in bytes; the longest are descriptions and icons as data URLs.
	maxIndexLine = 4 * limit.MiB
	// maxIndexCharts bounds how many charts an index can list, maxIndexVersions the versions of one chart.
	maxIndexCharts   = 20_000
	maxIndexVersions = 20_000
)

// unreadable leaves the parser's text out of the message, because it may quote the document.
func unreadable() error {
	return failure.New(failure.ErrInvalid, "the repository's index.yaml cannot be read: is this the URL of a Helm repository?")
}

// readIndexed parses a part of an index.yaml.
func readIndexed(text []byte, into any) error {
	err := yamlcheck.Aliases(text)
	if errors.Is(err, yamlcheck.ErrTooLarge) {
		return failure.AliasesTooLarge("the repository's index.yaml")
	}
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		return unreadable()
	}
	return nil
}

// first returns the first URL of a version, the only one that is used, without keeping the list in memory.
func first(urls []string) []string {
	if len(urls) == 0 {
		return nil
	}
	return []string{urls[0]}
}

// errOtherLayout means that the lines do not have the layout that Helm writes.
var errOtherLayout = errors.New("another layout")

// cutKey splits a line of YAML at the end of its key.
func cutKey(line string) (key, value string, ok bool) {
	if line == "" {
		return "", "", false
	}
	end := ":"
	if line[0] == '"' || line[0] == '\'' {
		end, line = line[:1]+":", line[1:]
	}
	key, value, ok = strings.Cut(line, end)
	if !ok || (value != "" && value[0] != ' ') {
		return "", "", false
	}
	return key, strings.TrimSpace(value), true
}
