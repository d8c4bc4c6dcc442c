package document

import (
	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/gitops/code"
)

// broken reports text that is not YAML.
func (d *Document) broken(err error, data []byte) {
	at, why, ok := yamlcheck.Locate(data, err)
	if !ok {
		why = err.Error()
	}
	d.Add(code.BrokenYAML, at, "broken YAML: %s", why)
}
