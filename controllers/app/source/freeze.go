package source

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/freeze"
)

// freezing is what keeps an App at a revision: until says how long, and at names the revision; "" without a freeze.
type freezing struct{ until, at string }

// hold keeps the App at the last revision of its source while a freeze of its tenant is in force. An App that was not delivered with its present
// spec yet is not held: the commit that changed it was accepted. Nor is a source that has only one revision.
func (p *pass) hold() {
	status := &p.App.Status
	if p.Frozen.ByAdministrators() {
		p.found.freeze.until = p.Frozen.String()
	}
	if len(p.Freeze) == 0 && p.found.freeze.until == "" || !moves(&p.App.Spec) || status.ObservedGeneration != p.App.Generation || status.LastAttemptedRevision == "" {
		return
	}
	now := p.Now() // Read once: the hold ends after this time, and maybe before the next one.
	hold, err := freeze.InForce(p.Freeze, now)
	switch {
	case p.found.freeze.until != "":
	case err != nil:
		p.found.freeze.until = "because " + err.Error()
	case hold == nil:
		return
	default:
		p.found.freeze.until = hold.String()
		p.LookAgain(hold.Until.Sub(now))
	}
	p.pin = status.LastAttemptedRevision
	if status.Image != nil {
		p.found.freeze.at = status.Image.Tag
	}
	p.found.freeze.at = cmp.Or(p.found.freeze.at, few.ShortRevision(p.pin))
}

// moves reports whether a source can have a new revision without a change of the App.
func moves(spec *v1alpha1.AppSpec) bool {
	fixed := func(ref *sourcev1.GitRepositoryRef) bool { return ref != nil && ref.Commit != "" }
	switch {
	case spec.Image != nil:
		return spec.Image.Policy != nil
	case spec.Git != nil && spec.Git.OCI != nil:
		return spec.Git.OCI.Digest == ""
	case spec.Git != nil:
		return !fixed(spec.Git.Ref)
	case spec.Helm != nil && spec.Helm.Git != nil:
		return !fixed(spec.Helm.Git.Ref)
	}
	if spec.Helm == nil || spec.Helm.Path != "" || spec.Helm.Digest != "" {
		return false
	}
	_, ranged := semver.StrictNewVersion(strings.TrimPrefix(spec.Helm.Version, "v"))
	return ranged != nil
}

// pinned returns the ref of the commit at which a freeze keeps the App; the given ref without one. A tag that is verified has to be fetched by its
// name, see keep.
func (p *pass) pinned(ref *sourcev1.GitRepositoryRef, withTag bool) *sourcev1.GitRepositoryRef {
	commit := v1alpha1.CommitOf(p.pin)
	if commit == "" || withTag {
		return ref
	}
	to := &sourcev1.GitRepositoryRef{Commit: commit}
	if ref != nil {
		to.Branch = ref.Branch
	}
	return to
}

// pinnedDigest returns the digest of the artifact at which a freeze keeps the App; "" without one.
func (p *pass) pinnedDigest() string {
	if i := strings.LastIndex(p.pin, "sha256:"); i >= 0 {
		return p.pin[i:]
	}
	return ""
}

// keep keeps the App at its revision if its source has another one, and only the newest can be fetched. Then only its health is checked.
func (p *pass) keep() {
	is := &p.found.Files
	if p.pin == "" || is.FS == nil || is.Revision == p.pin || p.found.Revision == p.pin {
		return
	}
	p.found.Files, p.found.Revision, p.found.Kept = Files{}, "", true
}

// freezeNote is the condition that says at which revision a freeze keeps the App.
func (f *Found) freezeNote() step.Note {
	note := step.Note{Condition: v1alpha1.FrozenCondition}
	if f.freeze.until != "" {
		note.Status, note.Reason = metav1.ConditionTrue, v1alpha1.FrozenReason
		note.Message = fmt.Sprintf("its source stays at %s %s", f.freeze.at, f.freeze.until)
		if f.freeze.at == "" {
			note.Message = "nobody else changes anything of it " + f.freeze.until
		}
	}
	return note
}
