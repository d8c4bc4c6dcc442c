package writes

import "github.com/kubeop/kubeop/internal/manager/filediff"

// Plan is the effect of a commit, as far as the files show it.
type Plan struct {
	filediff.Diff
	Objects      []PlannedObject `json:"objects" nullable:"false" doc:"The objects that the commit creates, changes or deletes: policies first, then the others, parents before what is in them."`
	Confirmation Confirmation    `json:"confirmation" doc:"Whether a person would have to confirm the deletions."`
	Unknown      []string        `json:"unknown" nullable:"false" doc:"What this plan does not say, because it is known only to the operator."`
}

// PlannedObject is an object that a commit changes.
type PlannedObject struct {
	Kind   string `json:"kind" enum:"Policy,Registry,Tenant,Project,App"`
	Name   string `json:"name" doc:"With those of its tenant and project." example:"acme/shop/web"`
	Action string `json:"action" enum:"create,change,delete"`
}

// Confirmation says whether deletions wait until a person confirms them.
type Confirmation struct {
	Needed string `json:"needed" enum:"yes,perhaps,no" doc:"perhaps: if volumes with data would go, which only the operator knows."`
	Why    string `json:"why,omitempty"`
}

// The values of Confirmation.Needed.
const (
	Yes     = "yes"
	Perhaps = "perhaps"
	No      = "no"
)
