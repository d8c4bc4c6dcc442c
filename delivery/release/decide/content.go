package decide

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	helm "helm.sh/helm/v3/pkg/release"
)

// Content is the digest of what a revision holds: whose it is, when that was first installed, chart, values, manifest and
// hooks, but not how those ran. It is the same before a revision is recorded and after it is read.
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
	// Numbers and broken UTF-8 are what JSON makes of them.
	for range 2 {
		text, err := json.Marshal(held)
		if err != nil {
			return "", fmt.Errorf("reading the values: %w", err)
		}
		held.Config = nil
		if err := json.Unmarshal(text, &held); err != nil {
			return "", fmt.Errorf("reading the values: %w", err)
		}
	}
	text, err := json.Marshal(held)
	return Digest(text), err
}

// ErrAltered is about a revision whose record is not what kubeop wrote.
var ErrAltered = errors.New("its record does not hold what kubeop wrote into it: somebody changed it; set forceAt to release it anew")

// Genuine reports whether a revision holds what kubeop recorded it with. Who may write Secrets of the namespace can write
// records, but not our marks on them: what a record without them holds never passed the gate. None of it is created or run,
// and of what it names only what carries the release's marks is deleted.
func Genuine(rel *helm.Release) bool {
	mark := rel.Labels[ContentLabel]
	if mark == "" || count(rel.Labels[RevisionLabel]) != rel.Version {
		return false
	}
	text, err := Content(rel)
	return err == nil && text == mark
}

// CheckGenuine returns an ErrAltered for a revision that is not.
func CheckGenuine(rel *helm.Release) error {
	if Genuine(rel) {
		return nil
	}
	return fmt.Errorf("revision %d: %w", rel.Version, ErrAltered)
}
