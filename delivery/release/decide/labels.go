package decide

import (
	"fmt"
	"strconv"
	"strings"

	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Labels on the Secrets in which Helm keeps its revisions. Helm copies the labels of a release: a person's "helm upgrade" copies those of
// the last revision, "helm rollback" those of the restored one. Only a revision whose revisionLabel repeats its own number was written by
// kubeop.
const (
	AppLabel      = v1alpha1.AppLabel
	RevisionLabel = v1alpha1.Group + "/release-revision"
	// HolderLabel is the process that works or worked on the revision.
	HolderLabel = v1alpha1.Group + "/holder"
	// DigestLabel is the digest of the input, trialLabel of the input and of how it was released. An interrupted action loses both, because
	// it proves nothing about them.
	DigestLabel = v1alpha1.Group + "/digest"
	TrialLabel  = v1alpha1.Group + "/trial"
	// AttemptLabel counts the failures of this trial in a row, InputFailuresLabel those caused by the input.
	AttemptLabel       = v1alpha1.Group + "/attempt"
	InputFailuresLabel = v1alpha1.Group + "/blame"
	// FaultLabel says what caused a failure: the environment ("world") or the input.
	FaultLabel = v1alpha1.Group + "/fault"
	// HeldLabel is the trial that is not repeated. It is on the revision that the remediation of the trial made.
	HeldLabel = v1alpha1.Group + "/held"
	// ActionLabel is the action if it was not an upgrade, toLabel the revision that a rollback restored.
	ActionLabel = v1alpha1.Group + "/action"
	ToLabel     = v1alpha1.Group + "/to"
	// RequestLabel is the newest request to force or to reset that was carried out.
	RequestLabel = v1alpha1.Group + "/asked"
	// ProvenLabel says whether the revision was seen healthy before it was superseded.
	ProvenLabel = v1alpha1.Group + "/proven"
	// ContentLabel is the digest of what the revision holds.
	ContentLabel = v1alpha1.Group + "/content"
	// TestLabel is the result of the chart's tests.
	TestLabel = v1alpha1.Group + "/test"
)

// Values of FaultLabel.
const (
	// FaultEnvironment: the environment caused the failure, not the input.
	FaultEnvironment = "world"
	// FaultInput: only another input helps.
	FaultInput = "input"
)

// Values of ActionLabel. An upgrade has none.
const (
	// ActionInstall made the first revision.
	ActionInstall = "install"
	// ActionRollback restored an earlier revision.
	ActionRollback = "rollback"
	// ActionUninstall uninstalled the release, or is about to.
	ActionUninstall = "uninstall"
)

// Values of ProvenLabel.
const (
	// Yes: the revision was seen healthy.
	Yes = "true"
	// No: it was not.
	No = "false"
)

// Values of TestLabel.
const (
	// TestSucceeded: all tests succeeded.
	TestSucceeded = "Succeeded"
	// TestFailed: a test failed.
	TestFailed = "Failed"
)

// LabelValue returns the name as a label value; a name that is too long or has other characters is hashed.
func LabelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	return Digest([]byte(name))
}

// KeyOf returns the name of a revision's record, as Helm names it.
func KeyOf(release string, number int) string {
	return fmt.Sprintf("%s.%s.v%d", storage.HelmStorageType, release, number)
}

// NewLabels returns the labels of a new revision with this content: those of the release that are not kubeop's, and those that record the
// decision.
func NewLabels(rel *helm.Release, content string, w *Want, d *Decision) map[string]string {
	labels := ForeignLabels(rel.Labels)
	labels[AppLabel], labels[HolderLabel] = w.App, w.Holder
	labels[RevisionLabel], labels[ContentLabel] = strconv.Itoa(rel.Version), content
	labels[AttemptLabel] = strconv.Itoa(d.Attempts + 1)
	labels[DigestLabel], labels[TrialLabel] = w.Digest, w.Trial
	if d.InputFailures > 0 {
		labels[InputFailuresLabel] = strconv.Itoa(d.InputFailures)
	}
	switch d.Act {
	case Install:
		labels[ActionLabel] = ActionInstall
	case Rollback:
		target := rel.Labels
		labels[DigestLabel], labels[TrialLabel] = target[DigestLabel], target[TrialLabel]
		labels[ActionLabel], labels[ToLabel], labels[HeldLabel] = ActionRollback, strconv.Itoa(d.To), w.Trial
	}
	return labels
}

// ForeignLabels returns the labels that are not kubeop's.
func ForeignLabels(labels map[string]string) map[string]string {
	foreign := map[string]string{}
	for k, v := range labels {
		if !strings.HasPrefix(k, v1alpha1.Group+"/") {
			foreign[k] = v
		}
	}
	return foreign
}

// SetFault records in the labels of a failed revision whether the environment or the input caused the failure. inputFailures is how many
// failures in a row the input caused before.
func SetFault(rel *helm.Release, environment bool, inputFailures int) {
	rel.Labels[FaultLabel] = FaultEnvironment
	if !environment {
		inputFailures++
		rel.Labels[FaultLabel] = FaultInput
	}
	rel.Labels[InputFailuresLabel] = strconv.Itoa(inputFailures)
}
