package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	helm "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Labels on the Secrets in which Helm keeps its revisions. Helm carries a release's labels on: a person's "helm upgrade"
// copies those of the last revision, "helm rollback" those of the one returned to. Only a revision whose number its
// own revisionLabel repeats was written by kubeop.
const (
	appLabel      = v1alpha1.AppLabel
	revisionLabel = v1alpha1.Group + "/release-revision"
	// holderLabel is the process that works or worked on the revision.
	holderLabel = v1alpha1.Group + "/holder"
	// digestLabel is of the input, trialLabel of the input and of how it was released. An action that was interrupted loses
	// both: it says nothing about them.
	digestLabel = v1alpha1.Group + "/digest"
	trialLabel  = v1alpha1.Group + "/trial"
	// attemptLabel counts the tries of this trial in a row, blameLabel those whose failure was the input's.
	attemptLabel = v1alpha1.Group + "/attempt"
	blameLabel   = v1alpha1.Group + "/blame"
	// faultLabel is whose fault a failure was: world or input.
	faultLabel = v1alpha1.Group + "/fault"
	// heldLabel is the trial that is not to be made again, on what became of it.
	heldLabel = v1alpha1.Group + "/held"
	// actionLabel is what was done other than to upgrade, toLabel the revision that a rollback returned to.
	actionLabel = v1alpha1.Group + "/action"
	toLabel     = v1alpha1.Group + "/to"
	// askedLabel is the newest request to force or to reset that was heeded.
	askedLabel = v1alpha1.Group + "/asked"
	// provenLabel is whether the revision was seen healthy before it was superseded.
	provenLabel = v1alpha1.Group + "/proven"
	// contentLabel is the digest of what the revision holds.
	contentLabel = v1alpha1.Group + "/content"
	// testLabel is how the chart's tests ended.
	testLabel = v1alpha1.Group + "/test"
)

// Values of the labels.
const (
	faultWorld, faultInput          = "world", "input"
	actionInstall                   = "install"
	actionRollback, actionUninstall = "rollback", "uninstall"
	yes, no                         = "true", "false"
	testSucceeded, testFailed       = "Succeeded", "Failed"
)

// renderVersion is part of every digest. Raise it when the same input makes other objects than before.
const renderVersion = 2

// digestLength keeps the digest within a label value (63); 160 bits are plenty against accidents.
const digestLength = 40

// digests name the input of a release, of which equal ones need no action, and the trial: the input and how it is to be
// installed, upgraded and tested, and what is let through, of which one that failed is worth no second look.
func (r *Request) digests() (digest, trial string, err error) {
	if r.Chart.Digest == "" {
		return "", "", errors.New("the chart has no digest")
	}
	values := r.Values
	if values == nil {
		values = map[string]any{}
	}
	input, err := json.Marshal(struct {
		Render      int
		Chart, Name string
		Values      map[string]any
		Files       []string                 `json:",omitempty"`
		Renderers   []v1alpha1.PostRenderer  `json:",omitempty"`
		Common      *v1alpha1.CommonMetadata `json:",omitempty"`
	}{renderVersion, r.Chart.Digest, r.Name, values, r.ChartValuesFiles, r.PostRenderers, r.CommonMetadata})
	if err != nil {
		return "", "", renderError(fmt.Errorf("reading the values: %w", err))
	}
	digest = sum(input)
	how, err := json.Marshal(v1alpha1.HelmActions{
		Wait: r.Actions.Wait, Install: r.Actions.Install, Upgrade: r.Actions.Upgrade, Test: r.Actions.Test,
	})
	if err != nil {
		return "", "", fmt.Errorf("reading the actions: %w", err)
	}
	return digest, sum(append([]byte(digest+r.Allowance), how...)), nil
}

// content is the digest of what a revision holds: whose it is, when that was first installed, chart, values, manifest and
// hooks, but not how those ran. It is the same before a revision is recorded and after it is read.
func content(rel *helm.Release) (string, error) {
	held := struct {
		Name, Since, Chart, Manifest string
		Config                       map[string]any
		Hooks                        []string
	}{Name: rel.Name, Manifest: rel.Manifest, Config: rel.Config}
	if rel.Info != nil {
		held.Since = rel.Info.FirstDeployed.UTC().Format(time.RFC3339Nano)
	}
	if held.Config == nil {
		held.Config = map[string]any{}
	}
	if rel.Chart != nil && rel.Chart.Metadata != nil {
		held.Chart = chartName(rel.Chart.Metadata)
	}
	for _, h := range rel.Hooks {
		held.Hooks = append(held.Hooks, h.Path+"\n"+h.Manifest)
	}
	slices.Sort(held.Hooks)
	// Numbers and broken UTF-8 are what JSON makes of them.
	for range 2 {
		text, err := json.Marshal(held)
		if err != nil {
			return "", renderError(fmt.Errorf("reading the values: %w", err))
		}
		held.Config = nil
		if err := json.Unmarshal(text, &held); err != nil {
			return "", renderError(fmt.Errorf("reading the values: %w", err))
		}
	}
	text, err := json.Marshal(held)
	return sum(text), err
}

func sum(text []byte) string {
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:])[:digestLength]
}

// labelValue returns the name as a label value; one that is too long or has other signs is hashed.
func labelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	return sum([]byte(name))
}
