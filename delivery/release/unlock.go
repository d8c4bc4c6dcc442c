package release

import (
	"fmt"

	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
)

// interrupted marks the pending revision as failed, so that Helm lets the next action begin. It loses its digest: an
// action that was interrupted says nothing about its input, which is tried again at once.
func interrupted(store *storage.Storage, r *revision) error {
	holder := r.holder
	if holder == "" {
		holder = "its holder"
	}
	r.record.SetStatus(helm.StatusFailed, fmt.Sprintf("Interrupted: %s stopped while it was %s", holder, r.status))
	delete(r.record.Labels, digestLabel)
	if err := store.Update(r.record); err != nil {
		return fmt.Errorf("unlocking revision %d: %w", r.number, err)
	}
	*r = revisionOf(r.record)
	return nil
}
