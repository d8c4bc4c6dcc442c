package document

import "github.com/kubeop/kubeop/delivery/yamlcheck"

// broken reports text that is not YAML.
func (d *Document) broken(err error, data []byte) {
	at, why, ok := yamlcheck.Locate(data, err)
	if !ok {
		why = err.Error()
	}
	d.Add(at, "broken YAML: %s", why)
}
