package source

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/writeback/update"
	"github.com/kubeop/kubeop/delivery/reference"
	"github.com/kubeop/kubeop/gitops/identity"
)

// saysWhich reports whether the App's file says which image to run, and the policy only writes it there.
func saysWhich(spec *v1alpha1.ImageSource) bool {
	return spec.Policy.Write != "" && reference.Name(spec.Reference) != spec.Reference
}

// write asks for the chosen image to be written to Git, if the policy says so. During a freeze, nothing is written.
func (f *Fetcher) write(p *pass) {
	switch {
	case f.Images == nil:
		return
	case p.App.Spec.Image.Policy.Write == "":
		f.Images.Forget(p.App)
		p.found.written.Condition = v1alpha1.ImageWriteFailedCondition // It has ended.
		return
	case p.found.Image == nil || p.pin != "" || p.Frozen.ByAdministrators():
		return
	}
	if written := f.Images.Ask(p.App, p.found.Image); written != nil {
		p.found.Image = p.found.Image.DeepCopy()
		p.found.Image.Written = written
	}
	p.found.written = f.Images.Note(p.App)
}

// stays names the image that stays while the registry cannot be reached.
func (f *Found) stays() string {
	if f.Image != nil && f.Image.Reference == f.Reference {
		return f.Image.Tag
	}
	return f.Reference
}

// ImageWriter has the images that policies chose written to the files of their Apps in Git.
type ImageWriter struct {
	Writes update.Writer
	// Wake reconciles an App, whose status records what was written.
	Wake func(types.NamespacedName)
}

// Ask asks for the image that an App's policy chose to be written to Git, if it is not there, and returns what was written of it; nil if it is
// not written yet. It never waits: the App is reconciled again when it is written, or cannot be.
//
// What the file had once is not written again: if the file has another reference afterwards, a person wrote that, such as by a rollback. The next
// image that the policy chooses is written.
func (w *ImageWriter) Ask(app *v1alpha1.App, chosen *v1alpha1.ImageStatus) *v1alpha1.ImageWritten {
	how, was, last := app.Spec.Image.Policy.Write, app.Spec.Image.Reference, chosen.Written
	if was == chosen.Reference && (last == nil || last.Reference != was) {
		last = w.found(app)
	}
	if was == chosen.Reference || last != nil && last.Reference == chosen.Reference && (last.PullRequest != "") == (how == v1alpha1.WritePullRequest) {
		w.Forget(app)
		return last
	}
	ref, _ := identity.Of(app)
	_, digest, _ := strings.Cut(chosen.Reference, "@sha256:")
	written := w.Writes.Ask(update.Update{
		Key: imageKey(app), Version: was + " " + chosen.Reference, App: app, Mode: how, What: chosen.Tag, Title: fmt.Sprintf("Update %s/%s to %s", ref.Project, ref.App, chosen.Tag),
		Body:    fmt.Sprintf("The policy of the app chose %s. Before it was %s.", chosen.Reference, was),
		Changes: []update.Change{{Field: "spec.image.reference", Was: was, Value: chosen.Reference}},
		Branch:  strings.Join([]string{ref.Project, ref.App, chosen.Tag, digest[:min(len(digest), 8)]}, "-"), // A tag may move.
		Done:    func() { w.Wake(client.ObjectKeyFromObject(app)) },
	})
	if written == nil {
		return nil
	}
	return &v1alpha1.ImageWritten{Reference: chosen.Reference, Commit: written.Commit, PullRequest: written.PullRequest}
}

// found returns what the App's file has, if the status does not know yet that it was written: the commit can arrive before the App is reconciled
// because of it, and somebody else can have written it.
func (w *ImageWriter) found(app *v1alpha1.App) *v1alpha1.ImageWritten {
	reference := app.Spec.Image.Reference
	if u, written := w.Writes.Last(imageKey(app)); written != nil && strings.HasSuffix(u.Version, " "+reference) {
		return &v1alpha1.ImageWritten{Reference: reference, Commit: written.Commit, PullRequest: written.PullRequest}
	}
	return &v1alpha1.ImageWritten{Reference: reference, Commit: v1alpha1.CommitOf(app.Annotations[v1alpha1.RevisionAnnotation])}
}

// Note returns the condition ImageWriteFailed of an App.
func (w *ImageWriter) Note(app *v1alpha1.App) step.Note {
	note := w.Writes.Note(imageKey(app), v1alpha1.ImageWriteFailedCondition)
	if note.Event != "" {
		note.Message += "; the app runs what the file says"
	}
	return note
}

// Forget drops what an App asked for.
func (w *ImageWriter) Forget(app *v1alpha1.App) { w.Writes.Drop(imageKey(app)) }

func imageKey(app *v1alpha1.App) string { return "image " + string(app.UID) }
