package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// removeConfirmed deletes what left its source. What is protected is held, and goes only when somebody confirmed the very list of what
// is held, at this revision. The confirmation is taken off before it is acted on: it never lets anything else go, nor the same again.
func (r *Reconciler) removeConfirmed(ctx context.Context, s *scope, removal apply.Removal) (apply.Removed, error) {
	removed, err := r.Applier.Remove(ctx, removal)
	s.hold(removed.Held, removal.Retain)
	if err != nil || s.heldToken == "" || s.app.Annotations[v1alpha1.ConfirmAnnotation] != s.heldToken {
		return removed, err
	}
	if err := step.Withdraw(ctx, r.Client, s.app, v1alpha1.ConfirmAnnotation); err != nil {
		return removed, err
	}
	removal.Entries, removal.Confirmed = removed.Held, true
	listed, err := r.Applier.Remove(ctx, removal)
	s.hold(listed.Held, removal.Retain)
	removed.Left = append(inventory.Without(removed.Left, removed.Held), listed.Left...)
	removed.Held = listed.Held
	removed.Leaving = append(removed.Leaving, listed.Leaving...)
	removed.Wanted = append(removed.Wanted, listed.Wanted...)
	removed.Kept = append(removed.Kept, listed.Kept...)
	return removed, err
}

// hold notes what is held, and what confirms it.
func (s *scope) hold(entries []v1alpha1.InventoryEntry, retain bool) {
	s.held, s.heldToken = inHold(entries, retain), token(s.revision, entries, retain)
}

// token stands for a revision, a list of objects, and whether claims among them stay all the same; "" for nothing.
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
