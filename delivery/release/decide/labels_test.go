package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/release"
)

// TestNewLabelsRecordTheDecision: a rollback restores the input of the revision to which it returns, and holds the one that failed.
func TestNewLabelsRecordTheDecision(t *testing.T) {
	want := &Want{App: "web", Holder: "me", Digest: "new", Trial: "new-trial"}
	rel := &helm.Release{Version: 3, Labels: map[string]string{
		"team": "shop", DigestLabel: "old", TrialLabel: "old-trial", ProvenLabel: Yes, AttemptLabel: "9", HeldLabel: "older",
	}}
	common := func(more map[string]string) map[string]string {
		labels := map[string]string{
			"team": "shop", AppLabel: "web", HolderLabel: "me", RevisionLabel: "3", ContentLabel: "content", AttemptLabel: "1", DigestLabel: "new", TrialLabel: "new-trial",
		}
		for k, v := range more {
			labels[k] = v
		}
		return labels
	}
	for name, c := range map[string]struct {
		decision Decision
		want     map[string]string
	}{
		"an install":              {Decision{Act: Install}, common(map[string]string{ActionLabel: ActionInstall})},
		"an upgrade":              {Decision{Act: Upgrade}, common(nil)},
		"the third try of an app": {Decision{Act: Upgrade, Attempts: 2, InputFailures: 1}, common(map[string]string{AttemptLabel: "3", InputFailuresLabel: "1"})},
		"a rollback": {Decision{Act: Rollback, To: 1}, common(map[string]string{
			DigestLabel: "old", TrialLabel: "old-trial", ActionLabel: ActionRollback, ToLabel: "1", HeldLabel: "new-trial",
		})},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, NewLabels(rel, "content", want, &c.decision)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
