package prune

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// maxHeld is how many objects the status names.
const maxHeld = 20

// Held are the objects that left an App's source and wait for a person to confirm their deletion.
type Held struct {
	// Objects say for each object why it is not deleted. Retained is how many of them stay even after a confirmation.
	Objects  []string
	Retained int
	// Token confirms the deletions; "" if nothing is held.
	Token string
	// known: this process found the objects. Otherwise they come from the status, which may name only some of them.
	known bool
}

// Held returns the held objects of an App. After a restart they come from the status.
func (p *Pruner) Held(app *v1alpha1.App) Held {
	if found := p.held.Get(app); found.known {
		return *found
	}
	return Held{Objects: app.Status.Held, Token: app.Status.HeldToken}
}

// HoldNothing records that no object of an App is held.
func (p *Pruner) HoldNothing(app *v1alpha1.App) Held { return p.hold(app, "", nil, false) }

// hold records the held objects of an App at a revision, and the token that confirms their deletion. retain: claims among the entries stay
// even after a confirmation.
func (p *Pruner) hold(app *v1alpha1.App, revision string, entries []v1alpha1.InventoryEntry, retain bool) Held {
	held := Held{Token: token(revision, entries, retain), known: true}
	for _, e := range entries {
		if why, retained := whyHeld(e, retain); why != "" {
			held.Objects = append(held.Objects, why)
			if retained {
				held.Retained++
			}
		}
	}
	*p.held.Get(app) = held
	return held
}

// Record writes the held objects into the status.
func (h Held) Record(status *v1alpha1.AppStatus) {
	status.Held, status.HeldToken = h.Objects[:min(len(h.Objects), maxHeld)], h.Token
}

// Summary is the part of Ready's message about objects that left the source or the chart and are not deleted; "" for none.
func (h Held) Summary(app *v1alpha1.App, left string) string {
	switch n := len(h.Objects); n {
	case 0:
		return ""
	case h.Retained:
		return fmt.Sprintf("; %d more left %s and stay, as status.held says", n, left)
	default:
		return fmt.Sprintf("; %d more left %s and wait, as status.held says. To delete them, %s",
			n, left, command.Annotate(command.Admin.In(v1alpha1.TenantOf(app.Namespace)), "app", app, v1alpha1.ConfirmAnnotation, h.Token))
	}
}

// whyHeld says why an object is not deleted, and whether it stays even after a confirmation.
func whyHeld(e v1alpha1.InventoryEntry, retain bool) (why string, retained bool) {
	id, err := inventory.ParseObjectID(e.ID)
	if err != nil {
		return "", false
	}
	ending := ""
	if retain {
		ending = ", and claimDeletionPolicy is Retain: nothing deletes it before that is Delete"
	}
	switch {
	case id.Kind == "PersistentVolumeClaim":
		why, retained = "holds data"+ending, retain
	case id.Kind == "Namespace":
		why = "its deletion deletes everything in it"
	case id.Kind == "CustomResourceDefinition":
		why = "its deletion deletes all objects of its kind"
	case e.Policy == v1alpha1.PolicyClaims:
		why, retained = "owns claims that hold data and would go with it"+ending, retain
	default:
		why = "is annotated " + v1alpha1.PruneAnnotation + ": " + v1alpha1.PruneConfirm
	}
	return fmt.Sprintf("%s %s: %s", id.Kind, id.Name, why), retained
}

// token identifies a revision, a list of held objects, and whether claims among them stay even after a confirmation; "" for an empty list
// or an unknown revision.
func token(revision string, held []v1alpha1.InventoryEntry, retain bool) string {
	if revision == "" || len(held) == 0 {
		return ""
	}
	ids := make([]string, len(held))
	for i, e := range held {
		ids[i] = e.ID
	}
	slices.Sort(ids)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%t\n%s", revision, retain, strings.Join(ids, "\n")))
	return hex.EncodeToString(sum[:8])
}
