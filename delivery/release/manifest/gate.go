// Package manifest parses, changes, checks and writes what a chart rendered. Its Gate checks manifests and hooks before anything is written
// to the cluster.
package manifest

import (
	"bytes"
	"errors"
	"fmt"

	helm "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/denial"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// Gate checks one action's rendered objects: manifests as Helm's post-renderer; hooks, which Helm does not post-render, when the release is
// about to be recorded. Helm writes nothing before that, and runs and records exactly what the gate passes on. The gate records how far the
// action came, because Helm's errors do not contain that.
type Gate struct {
	// renderers and common are the app's own changes. They are made before admission sees the objects.
	renderers []v1alpha1.PostRenderer
	common    *v1alpha1.CommonMetadata
	admit     func([]*unstructured.Unstructured) error
	refuses   func(error) bool

	post *postRenderers
	// Rendered: the templates rendered to objects.
	Rendered bool
	// Refused is a refusal by admission. Unjudged is the error because of which admission could not decide. Storage is the error of reading
	// or writing records.
	Refused, Unjudged, Storage error
	// failed is the error because of which a manifest was refused, before Helm wrapped it.
	failed error
}

// NewGate returns the gate of an action. refuses reports whether an error of admit is a refusal, for which only another input helps.
func NewGate(admit func([]*unstructured.Unstructured) error, refuses func(error) bool, renderers []v1alpha1.PostRenderer, common *v1alpha1.CommonMetadata) *Gate {
	return &Gate{admit: admit, refuses: refuses, renderers: renderers, common: common}
}

// AsChanged turns off the app's own changes, because the objects to check already have them.
func (g *Gate) AsChanged() { g.renderers, g.common = nil, nil }

// Run implements Helm's post-renderer. Helm calls it with all manifests except hooks.
func (g *Gate) Run(in *bytes.Buffer) (*bytes.Buffer, error) {
	var out string
	out, g.failed = g.Pass(in.String())
	return bytes.NewBufferString(out), g.failed
}

// PassHooks checks and stamps the hooks of all events, including tests.
func (g *Gate) PassHooks(hooks []*helm.Hook) error {
	docs := make([][]Document, len(hooks))
	var objects []*unstructured.Unstructured
	if err := g.prepared(); err != nil {
		return err
	}
	for i, h := range hooks {
		parsed, err := Parse(h.Manifest)
		if err != nil {
			return fault.Render(fmt.Errorf("hook %s: %w", h.Path, err))
		}
		if docs[i], err = g.changed(parsed, true); err != nil {
			return err
		}
		objects = append(objects, Objects(docs[i])...)
	}
	if err := fault.Join(g.post.missed(), g.check(objects)); err != nil {
		return err
	}
	for i, h := range hooks {
		if len(Objects(docs[i])) == 0 {
			// A patch deleted the hook. Helm's list of hooks must not be shortened, but a hook without events never runs.
			h.Events = nil
		}
		out, err := Sealed(docs[i])
		if err != nil {
			return err
		}
		h.Manifest = out
	}
	return nil
}

// Pass checks and stamps a manifest, and returns the manifest to be recorded and written.
func (g *Gate) Pass(manifest string) (string, error) {
	if err := g.prepared(); err != nil {
		return "", err
	}
	docs, err := Parse(manifest)
	if err != nil {
		return "", err
	}
	if docs, err = g.changed(docs, false); err != nil {
		return "", err
	}
	g.Rendered = true
	if err := g.check(Objects(docs)); err != nil {
		return "", err
	}
	return Sealed(docs)
}

// changed makes the app's own changes. The result is parsed again from its text, because the text is what is checked and sent. If generated
// is set, objects may lack a name.
func (g *Gate) changed(docs []Document, generated bool) ([]Document, error) {
	if err := g.post.change(docs); err != nil {
		return nil, err
	}
	docs, err := reread(docs)
	if err != nil {
		return nil, fault.Render(err)
	}
	return docs, nameless(docs, generated)
}

// nameless refuses objects without a name. The API server may generate the names of hooks, because nothing refers to hooks later.
func nameless(docs []Document, generated bool) error {
	for _, d := range docs {
		for _, u := range d.Objects {
			if u.GetName() == "" && (!generated || u.GetGenerateName() == "") {
				return fault.Render(fmt.Errorf("%s: a %s has no name", d.name(), u.GetKind()))
			}
		}
	}
	return nil
}

// prepared parses the app's own changes, once for manifests and hooks.
func (g *Gate) prepared() (err error) {
	if g.post != nil {
		return nil
	}
	if g.Refused = reserved(g.common); g.Refused != nil {
		return g.Refused
	}
	g.post, err = newPostRenderers(g.renderers, g.common)
	return err
}

func (g *Gate) check(objects []*unstructured.Unstructured) error {
	if len(objects) == 0 {
		return nil
	}
	err := g.admit(objects)
	if err != nil && !g.refuses(err) {
		g.Unjudged = fmt.Errorf("checking whether the objects are allowed: %w", err)
		return g.Unjudged
	}
	g.Refused = err
	return err
}

// ErrTooLargeToRecord is the only reason for which the API server refuses a well-formed record as invalid, if its admission policies can judge it.
var ErrTooLargeToRecord = fault.TooLarge("chart, values and manifests do not fit into a Secret, 1 MiB compressed; leave files out with .helmignore")

// Classify turns the error of a failed action into an error of a class of package fault. hide masks secrets in its text.
func (g *Gate) Classify(err error, hide func(string) string) error {
	if err != nil && g.failed != nil {
		err = g.failed
	}
	refused := &fault.NotAllowed{Err: g.Refused}
	switch text := fault.Plain(err, hide); {
	case err == nil:
		return nil
	case g.Unjudged != nil:
		return fault.Plain(g.Unjudged, hide)
	case g.Refused != nil, errors.As(err, &refused):
		return &fault.NotAllowed{Err: fault.Mask(refused.Err, hide)}
	case apierrors.IsInvalid(g.Storage) && !denial.Unjudged(g.Storage) || apierrors.IsRequestEntityTooLargeError(g.Storage):
		return fault.Render(ErrTooLargeToRecord)
	case errors.Is(text, fault.ErrRender):
		return text
	case errors.Is(err, fault.ErrRender), !g.Rendered && g.Storage == nil && !errors.Is(err, fault.ErrLookup):
		_, cause := fault.RenderCause(err)
		return fault.Render(fault.Readable(fault.Plain(cause, hide)))
	default:
		return text
	}
}
