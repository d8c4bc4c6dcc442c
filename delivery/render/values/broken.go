package values

import (
	"errors"
	"fmt"

	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// errNoMapping says that the values of a chart are not a mapping.
var errNoMapping = errors.New("values must be a mapping, such as \"replicas: 2\"")

// brokenFile formats an error about the text of a file as "file:line:column: why".
func brokenFile(name string, data []byte, err error) error {
	at, why, ok := yamlcheck.Locate(data, err)
	if !ok {
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("%s: broken YAML: %s", at.In(name), why)
}
