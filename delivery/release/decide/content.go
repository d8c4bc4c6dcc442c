package decide

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	helm "helm.sh/helm/v3/pkg/release"
)

// Content is the digest of what a revision holds: its release, when that was first installed, chart, values, manifest and hooks, but not
// the results of the hooks. It is the same before a revision is recorded and after it is read.
func Content(rel *helm.Release) (string, error) {
	held := struct {
		Name, Since, Chart, Manifest string
		Config                       map[string]any
		Hooks                        []string
	}{Name: rel.Name, Manifest: rel.Manifest, Config: rel.Config}
	if rel.Info != nil {
		held.Since = rel.Info.FirstDeployed.UTC().Format(time.RFC3339Nano)
	}
	if held.Config == nil {
		held.Config = map[string]any{}
	}
	if rel.Chart != nil && rel.Chart.Metadata != nil {
		held.Chart = chartName(rel.Chart.Metadata)
	}
	for _, h := range rel.Hooks {
		held.Hooks = append(held.Hooks, h.Path+"\n"+h.Manifest)
	}
	slices.Sort(held.Hooks)
	// Normalizes numbers and invalid UTF-8 as JSON does.
	for range 2 {
		text, err := json.Marshal(held)
		if err != nil {
			return "", fmt.Errorf("encoding the values: %w", err)
		}
		held.Config = nil
		if err := json.Unmarshal(text, &held); err != nil {
			return "", fmt.Errorf("decoding the values: %w", err)
		}
	}
	text, err := json.Marshal(held)
	return Digest(text), err
}

// ErrAltered is the error for a revision whose record someone changed after kubeop wrote it.
var ErrAltered = errors.New("its record does not hold what kubeop wrote into it: someone changed it")

// Genuine reports whether a revision still has the content that kubeop recorded. Anyone who can write Secrets of the namespace can write
// records, but not kubeop's labels on them: a record without these labels never passed the gate. Its objects are not created and its hooks
// not run, and of the objects that it names only those with the release's labels are deleted.
func Genuine(rel *helm.Release) bool {
	mark := rel.Labels[ContentLabel]
	if mark == "" || count(rel.Labels[RevisionLabel]) != rel.Version {
		return false
	}
	text, err := Content(rel)
	return err == nil && text == mark
}

// CheckGenuine returns ErrAltered for a revision that is not genuine.
func CheckGenuine(rel *helm.Release) error {
	if Genuine(rel) {
		return nil
	}
	return fmt.Errorf("revision %d: %w", rel.Version, ErrAltered)
}
