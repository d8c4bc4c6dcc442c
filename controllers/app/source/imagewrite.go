package source

import (
	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/image"
)

// ImageWriter writes the images that policies choose to Git.
type ImageWriter interface {
	// Ask asks for the chosen image to be written to the App's file, and returns what was written of it; nil if it is not written yet.
	Ask(app *v1alpha1.App, chosen *v1alpha1.ImageStatus) *v1alpha1.ImageWritten
	// Note returns the condition ImageWriteFailed of an App.
	Note(app *v1alpha1.App) step.Note
	// Forget drops what an App asked for.
	Forget(app *v1alpha1.App)
}

// saysWhich reports whether the App's file says which image to run, and the policy only writes it there.
func saysWhich(spec *v1alpha1.ImageSource) bool {
	return spec.Policy.Write != "" && image.Name(spec.Reference) != spec.Reference
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
	case p.found.Image == nil || p.pin != "":
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
