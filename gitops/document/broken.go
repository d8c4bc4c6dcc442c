package document

import "github.com/kubeop/kubeop/delivery/yamlcheck"

// broken reports text that is not YAML.
func (d *Document) broken(err error, data []byte) {
	line, why, ok := yamlcheck.Position(data, err)
	if !ok {
		why = err.Error()
	}
	d.Add(line, "broken YAML: %s", why)
}
