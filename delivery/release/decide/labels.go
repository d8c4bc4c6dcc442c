package decide

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Labels on the Secrets in which Helm keeps its revisions. Helm carries a release's labels on: a person's "helm upgrade"
// copies those of the last revision, "helm rollback" those of the one returned to. Only a revision whose number its
// own revisionLabel repeats was written by kubeop.
const (
	AppLabel      = v1alpha1.AppLabel
	RevisionLabel = v1alpha1.Group + "/release-revision"
	// HolderLabel is the process that works or worked on the revision.
	HolderLabel = v1alpha1.Group + "/holder"
	// DigestLabel is of the input, trialLabel of the input and of how it was released. An action that was interrupted loses
	// both: it says nothing about them.
	DigestLabel = v1alpha1.Group + "/digest"
	TrialLabel  = v1alpha1.Group + "/trial"
	// AttemptLabel counts the tries of this trial in a row, blameLabel those whose failure was the input's.
	AttemptLabel = v1alpha1.Group + "/attempt"
	BlameLabel   = v1alpha1.Group + "/blame"
	// FaultLabel is whose fault a failure was: world or input.
	FaultLabel = v1alpha1.Group + "/fault"
	// HeldLabel is the trial that is not to be made again, on what became of it.
	HeldLabel = v1alpha1.Group + "/held"
	// ActionLabel is what was done other than to upgrade, toLabel the revision that a rollback returned to.
	ActionLabel = v1alpha1.Group + "/action"
	ToLabel     = v1alpha1.Group + "/to"
	// AskedLabel is the newest request to force or to reset that was heeded.
	AskedLabel = v1alpha1.Group + "/asked"
	// ProvenLabel is whether the revision was seen healthy before it was superseded.
	ProvenLabel = v1alpha1.Group + "/proven"
	// ContentLabel is the digest of what the revision holds.
	ContentLabel = v1alpha1.Group + "/content"
	// TestLabel is how the chart's tests ended.
	TestLabel = v1alpha1.Group + "/test"
)

// Values of FaultLabel.
const (
	// FaultWorld: the failure says nothing about the input.
	FaultWorld = "world"
	// FaultInput: only another input helps.
	FaultInput = "input"
)

// Values of ActionLabel. An upgrade has none.
const (
	// ActionInstall made the first revision.
	ActionInstall = "install"
	// ActionRollback returned to an earlier revision.
	ActionRollback = "rollback"
	// ActionUninstall took the release away, or is about to.
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
	// TestSucceeded: all tests did.
	TestSucceeded = "Succeeded"
	// TestFailed: some test did not.
	TestFailed = "Failed"
)

// digestLength keeps the digest within a label value (63); 160 bits are plenty against accidents.
const digestLength = 40

// Digest is the digest of a text, as a label value.
func Digest(text []byte) string {
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:])[:digestLength]
}

// LabelValue returns the name as a label value; one that is too long or has other signs is hashed.
func LabelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	return Digest([]byte(name))
}

// count is a number that kubeop wrote, in the one way in which it writes numbers: admission compares them as text. Anything
// else is none.
func count(label string) int {
	n, err := strconv.Atoi(label)
	if err != nil || strconv.Itoa(n) != label {
		return 0
	}
	return max(n, 0)
}

// KeyOf names the record of a revision as Helm does.
func KeyOf(release string, number int) string {
	return fmt.Sprintf("%s.%s.v%d", storage.HelmStorageType, release, number)
}

// numberOf is keyOf backwards.
func numberOf(release, key string) (int, bool) {
	prefix := storage.HelmStorageType + "." + release + ".v"
	if len(key) <= len(prefix) || key[:len(prefix)] != prefix {
		return 0, false
	}
	n := count(key[len(prefix):])
	return n, n > 0
}

// NewLabels returns the labels of a new revision with a content that a decision makes: those of the release that are not kubeop's, and kubeop's.
func NewLabels(rel *helm.Release, content string, w *Want, d *Decision) map[string]string {
	labels := ForeignLabels(rel.Labels)
	labels[AppLabel], labels[HolderLabel] = w.App, w.Holder
	labels[RevisionLabel], labels[ContentLabel] = strconv.Itoa(rel.Version), content
	labels[AttemptLabel] = strconv.Itoa(d.Attempts + 1)
	labels[DigestLabel], labels[TrialLabel] = w.Digest, w.Trial
	if d.Blame > 0 {
		labels[BlameLabel] = strconv.Itoa(d.Blame)
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
