package decide

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestAFaultOfTheEnvironmentDoesNotCount(t *testing.T) {
	for environment, want := range map[bool]map[string]string{
		true:  {"team": "shop", FaultLabel: FaultEnvironment, InputFailuresLabel: "2"},
		false: {"team": "shop", FaultLabel: FaultInput, InputFailuresLabel: "3"},
	} {
		rel := &helm.Release{Labels: map[string]string{"team": "shop", FaultLabel: "before"}}
		SetFault(rel, environment, 2)
		if diff := cmp.Diff(want, rel.Labels); diff != "" {
			t.Errorf("environment %t (-want +got):\n%s", environment, diff)
		}
	}
}

// TestTheDigestDependsOnTheInputAloneAndTheTrialAlsoOnTheLimits: also on the actions.
func TestTheDigestDependsOnTheInputAloneAndTheTrialAlsoOnTheLimits(t *testing.T) {
	digest, trial, err := Digests(map[string]any{"a": 1}, "", v1alpha1.HelmActions{})
	if err != nil || digest != Digest([]byte(`{"a":1}`)) {
		t.Fatalf("got %s, %v", digest, err)
	}
	for name, c := range map[string]struct {
		input     any
		allowance string
		how       v1alpha1.HelmActions
		same      bool
	}{
		"other values":      {map[string]any{"a": 2}, "", v1alpha1.HelmActions{}, false},
		"another allowance": {map[string]any{"a": 1}, "more", v1alpha1.HelmActions{}, true},
		"other actions":     {map[string]any{"a": 1}, "", v1alpha1.HelmActions{Wait: true}, true},
	} {
		got, tried, err := Digests(c.input, c.allowance, c.how)
		if err != nil || (got == digest) != c.same || tried == trial || tried == got {
			t.Errorf("%s: got %s and %s, %v", name, got, tried, err)
		}
	}
	if got, _, err := Digests(math.Inf(1), "", v1alpha1.HelmActions{}); err == nil || got != "" {
		t.Errorf("an input that is no JSON: %q, %v", got, err)
	}
}

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

// TestTheLabelsOfRecordsKeepTheirNames: the records in clusters have them, and an operator that looked for others would release everything again.
func TestTheLabelsOfRecordsKeepTheirNames(t *testing.T) {
	for label, want := range map[string]string{
		AppLabel: "app", RevisionLabel: "release-revision", HolderLabel: "holder", DigestLabel: "digest", TrialLabel: "trial", AttemptLabel: "attempt", InputFailuresLabel: "blame",
		FaultLabel: "fault", HeldLabel: "held", ActionLabel: "action", ToLabel: "to", RequestLabel: "asked", ProvenLabel: "proven", ContentLabel: "content", TestLabel: "test",
	} {
		if label != "paas.kubeop.io/"+want {
			t.Errorf("%s was paas.kubeop.io/%s", label, want)
		}
	}
	values := []string{FaultEnvironment, FaultInput, ActionInstall, ActionRollback, ActionUninstall, Yes, No, TestSucceeded, TestFailed}
	if diff := cmp.Diff([]string{"world", "input", "install", "rollback", "uninstall", "true", "false", "Succeeded", "Failed"}, values); diff != "" {
		t.Errorf("values of labels (-want +got):\n%s", diff)
	}
}
