package release

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// renderVersion is part of every digest. Raise it when the same input makes other objects than before.
const renderVersion = 2

// digests name the input of a release, of which equal ones need no action, and the trial: the input and how it is to be
// installed, upgraded and tested, and what is let through, of which one that failed is worth no second look.
func (r *Request) digests() (digest, trial string, err error) {
	if r.Chart.Digest == "" {
		return "", "", errors.New("the chart has no digest")
	}
	values := r.Values
	if values == nil {
		values = map[string]any{}
	}
	input, err := json.Marshal(struct {
		Render      int
		Chart, Name string
		Values      map[string]any
		Files       []string                 `json:",omitempty"`
		Renderers   []v1alpha1.PostRenderer  `json:",omitempty"`
		Common      *v1alpha1.CommonMetadata `json:",omitempty"`
	}{renderVersion, r.Chart.Digest, r.Name, values, r.ChartValuesFiles, r.PostRenderers, r.CommonMetadata})
	if err != nil {
		return "", "", fault.Render(fmt.Errorf("reading the values: %w", err))
	}
	digest = decide.Digest(input)
	how, err := json.Marshal(v1alpha1.HelmActions{
		Wait: r.Actions.Wait, Install: r.Actions.Install, Upgrade: r.Actions.Upgrade, Test: r.Actions.Test,
	})
	if err != nil {
		return "", "", fmt.Errorf("reading the actions: %w", err)
	}
	return digest, decide.Digest(append([]byte(digest+r.Allowance), how...)), nil
}
