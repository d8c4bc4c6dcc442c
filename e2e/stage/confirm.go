package stage

import (
	"context"
	"fmt"
	"maps"
	"regexp"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// historyCommand matches the command in a Repository's message that accepts a rewritten history.
var historyCommand = regexp.MustCompile(`(paas\.kubeop\.io/confirm-history)="?([0-9a-f:@a-z/-]+)`)

// NeedsConfirmation reports whether a Repository holds something that can be confirmed.
func NeedsConfirmation(r *v1alpha1.Repository) bool { return len(confirmations(r)) > 0 }

// Confirm confirms the held deletions or the rewritten history, as the Repository's status says. It is an error if nothing is held.
func (s *Stage) Confirm(ctx context.Context, repository string) error {
	r := &v1alpha1.Repository{}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: repository}, r); err != nil {
		return err
	}
	return s.ConfirmAs(ctx, r)
}

// ConfirmAs confirms what the status of a Repository that was read earlier lists.
func (s *Stage) ConfirmAs(ctx context.Context, r *v1alpha1.Repository) error {
	wanted := confirmations(r)
	if len(wanted) == 0 {
		return fmt.Errorf("repository %s holds nothing to confirm: %s", r.Name, describe(r.Status.Conditions))
	}
	annotated := r.DeepCopy()
	if annotated.Annotations == nil {
		annotated.Annotations = map[string]string{}
	}
	maps.Copy(annotated.Annotations, wanted)
	return s.Client.Patch(ctx, annotated, client.MergeFrom(r))
}

// confirmations are the annotations that a Repository's status requests.
func confirmations(r *v1alpha1.Repository) map[string]string {
	all := map[string]string{}
	if r.Status.HeldToken != "" {
		all[v1alpha1.ConfirmAnnotation] = r.Status.HeldToken
	}
	for _, message := range messages(r) {
		if found := historyCommand.FindStringSubmatch(message); found != nil {
			all[found[1]] = found[2]
		}
	}
	return all
}

func messages(r *v1alpha1.Repository) []string {
	var all []string
	for _, c := range r.Status.Conditions {
		all = append(all, c.Message)
	}
	return all
}
