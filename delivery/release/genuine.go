package release

import (
	"errors"
	"fmt"

	helm "helm.sh/helm/v3/pkg/release"
)

// errAltered is about a revision whose record is not what kubeop wrote.
var errAltered = errors.New("its record does not hold what kubeop wrote into it: somebody changed it; set forceAt to release it anew")

// genuine reports whether a revision holds what kubeop recorded it with. Who may write Secrets of the namespace can write
// records, but not our marks on them: what a record without them holds never passed the gate. None of it is created or run,
// and of what it names only what carries the release's marks is deleted.
func genuine(rel *helm.Release) bool {
	mark := rel.Labels[contentLabel]
	if mark == "" || count(rel.Labels[revisionLabel]) != rel.Version {
		return false
	}
	text, err := content(rel)
	return err == nil && text == mark
}

// mustBeGenuine is errAltered for a revision that is not.
func mustBeGenuine(rel *helm.Release) error {
	if genuine(rel) {
		return nil
	}
	return fmt.Errorf("revision %d: %w", rel.Version, errAltered)
}
