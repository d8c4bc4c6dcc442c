package repository

import (
	"fmt"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/fetch"
)

// maxTold bounds the lists of problems and held deletions in the status.
const maxTold = 20

// scope holds the facts of one Reconcile.
type scope struct {
	repository *v1alpha1.Repository
	// commit is set by fetch.
	commit fetch.Commit
	// source and unaccepted are set by accept: where the commit was read from, and why a newer one is not taken.
	source     string
	unaccepted error
	// problems, held and inventory are set by sync.
	problems  []string
	held      []string
	inventory v1alpha1.Inventory
	// valid is set by judge: the commit is in the cluster as a whole.
	valid bool
}

func newScope(repository *v1alpha1.Repository) *scope {
	return &scope{repository: repository, inventory: repository.Status.Inventory}
}

// Record writes the facts into the status.
func (s *scope) Record() {
	status := &s.repository.Status
	status.Inventory = s.inventory
	if s.commit.Revision == "" {
		return
	}
	status.LastAttemptedRevision = s.commit.Revision
	if s.unaccepted == nil {
		status.Source = s.source
	}
	status.Problems = told(s.problems)
	status.Held = told(s.held)
	if s.valid {
		status.LastAppliedRevision = s.commit.Revision
	}
}

// Summary is Ready's message.
func (s *scope) Summary() string {
	kinds := map[string]int{}
	for _, e := range s.inventory.Entries {
		if id, err := apply.ParseObjectID(e.ID); err == nil {
			kinds[id.Kind]++
		}
	}
	if s.repository.Spec.Tenant != "" {
		return fmt.Sprintf("Synced %s: %d projects, %d apps", s.commit.Revision, kinds[v1alpha1.ProjectKind], kinds[v1alpha1.AppKind])
	}
	return fmt.Sprintf("Synced %s: %d tenants, %d projects, %d apps", s.commit.Revision,
		kinds[v1alpha1.TenantKind], kinds[v1alpha1.ProjectKind], kinds[v1alpha1.AppKind])
}

// told shortens a list for the status.
func told(lines []string) []string {
	if len(lines) <= maxTold {
		return lines
	}
	return append(lines[:maxTold-1:maxTold-1], fmt.Sprintf("and %d more", len(lines)-maxTold+1))
}
