package target

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
)

// Held is what an object holds until a person confirms it: deletions, a commit, or promotions.
type Held struct {
	// What waits: "Deletions", "Commits" or "Promotions". Lines list it.
	What  string
	Lines []string
	// Does says what kubeop does once it is confirmed, Stays what happens without, and Next why to confirm: parts of sentences.
	Does, Stays, Next string
	// Annotation confirms it, with what Confirm returns as its value. Tokens are those that a person may type.
	Annotation string
	Tokens     []string
	// confirm returns the value of the annotation for what a person typed; "" if that confirms nothing.
	confirm func(typed string) string
}

// Confirm returns the value of the annotation for what a person typed, and false if that confirms nothing of it.
func (h Held) Confirm(typed string) (value string, ok bool) {
	value = h.confirm(typed)
	return value, value != ""
}

// AllHeld returns what an object holds.
func AllHeld(of Object, object client.Object) []Held {
	var all []Held
	if lines, token := deletions(object); token != "" {
		all = append(all, Held{
			What: "Deletions", Lines: lines, Does: fmt.Sprintf("deletes what the %s holds", of),
			Stays: "nothing is deleted", Next: "delete what waits for a confirmation", Annotation: v1alpha1.ConfirmAnnotation, Tokens: []string{token}, confirm: func(typed string) string {
				if typed != token {
					return ""
				}
				return token
			},
		})
	}
	switch o := object.(type) {
	case *v1alpha1.Repository:
		if waits, commit, annotation := commit(o); commit != "" {
			all = append(all, heldCommit(of, waits, commit, annotation))
		}
	case *v1alpha1.Project:
		if held := o.Status.HeldPromotions; len(held) > 0 {
			all = append(all, heldPromotions(of, o, held))
		}
	}
	return all
}

// deletions returns the deletions that an object holds, and the token that confirms them; "" if it holds none.
func deletions(object client.Object) (lines []string, token string) {
	switch o := object.(type) {
	case *v1alpha1.App:
		return o.Status.Held, o.Status.HeldToken
	case *v1alpha1.Repository:
		return o.Status.Held, o.Status.HeldToken
	}
	return nil, ""
}

// commit returns the commit that a repository holds: why it waits, its hash, and the annotation that confirms it. A commit without a valid signature
// cannot be confirmed.
func commit(o *v1alpha1.Repository) (waits, hash, annotation string) {
	hash = v1alpha1.CommitOf(o.Status.HeldRevision)
	switch {
	case o.Status.HeldUntil != nil:
		return "waits until " + o.Status.HeldUntil.UTC().Format(time.RFC3339) + ", the end of a freeze", hash, v1alpha1.ConfirmFreezeAnnotation
	case conditions.GetReason(o, v1alpha1.AcceptedCondition) == v1alpha1.HistoryRewrittenReason:
		return "does not descend from the last accepted one: " + few.ShortRevision(o.Status.LastAttemptedRevision), hash, v1alpha1.ConfirmHistoryAnnotation
	}
	return "", "", ""
}

// leastDigits is how many digits of a commit name it.
const leastDigits = 8

func heldCommit(of Object, waits, hash, annotation string) Held {
	return Held{
		What: "Commits", Lines: []string{hash + " " + waits},
		Does: fmt.Sprintf("applies commit %s of the %s", hash, of), Stays: "the commit waits on", Next: "apply the commit that is held",
		Annotation: annotation, Tokens: []string{hash[:min(len(hash), leastDigits)]}, confirm: func(typed string) string {
			if len(typed) < leastDigits || !strings.HasPrefix(hash, typed) {
				return ""
			}
			return hash
		},
	}
}

// heldPromotions are confirmed all or one by one. What is confirmed already, and may not be written yet, stays so.
func heldPromotions(of Object, project *v1alpha1.Project, held []v1alpha1.HeldPromotion) Held {
	h := Held{
		What: "Promotions", Does: fmt.Sprintf("promotes them to the %s", of),
		Stays: "nothing is promoted", Next: "promote what waits for approval", Annotation: v1alpha1.ConfirmPromotionAnnotation,
	}
	for _, p := range held {
		h.Lines = append(h.Lines, fmt.Sprintf("%s %s: %s", p.Token, p.App, p.Changes))
		h.Tokens = append(h.Tokens, p.Token)
	}
	before := project.ConfirmedPromotions()
	h.confirm = func(typed string) string {
		confirmed := v1alpha1.PromotionTokens(typed)
		if len(confirmed) == 0 || slices.ContainsFunc(confirmed, func(token string) bool { return !slices.Contains(h.Tokens, token) }) {
			return ""
		}
		for _, token := range before {
			if !slices.Contains(confirmed, token) {
				confirmed = append(confirmed, token)
			}
		}
		return strings.Join(confirmed[:min(len(confirmed), v1alpha1.MaxHeldPromotions)], ",")
	}
	return h
}
