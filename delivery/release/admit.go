package release

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// gate stands where one action's rendered objects pass: manifests as Helm's post-renderer, hooks, which Helm does not
// post-render, when the release is about to be recorded. Helm writes nothing before that, and runs and records exactly
// what the gate lets through. It remembers how far the action came, because Helm's errors do not tell.
type gate struct {
	chart *chart.Chart
	// renderers and common are the app's own changes, made before admission sees the objects.
	renderers []v1alpha1.PostRenderer
	common    *v1alpha1.CommonMetadata
	admit     func([]*unstructured.Unstructured) error
	refuses   func(error) bool

	post *postRenderers
	// rendered: the templates made objects.
	rendered bool
	// refused is the admission's refusal, unjudged the error for which it could not judge, storage the error of reading or
	// writing records.
	refused, unjudged, storage error
	// failed is the error with which a manifest did not pass, before Helm wrapped it.
	failed error
}

// Run is called by Helm with all manifests that are no hooks.
func (g *gate) Run(in *bytes.Buffer) (*bytes.Buffer, error) {
	var out string
	out, g.failed = g.pass(in.String())
	return bytes.NewBufferString(out), g.failed
}

// passHooks checks and stamps the hooks of every event, tests included.
func (g *gate) passHooks(hooks []*helm.Hook) error {
	docs := make([][]document, len(hooks))
	var objects []*unstructured.Unstructured
	if err := g.prepared(); err != nil {
		return err
	}
	for i, h := range hooks {
		parsed, err := parse(h.Manifest)
		if err != nil {
			return fault.Render(fmt.Errorf("hook %s: %w", h.Path, err))
		}
		if docs[i], err = g.changed(parsed, true); err != nil {
			return err
		}
		objects = append(objects, objectsOf(docs[i])...)
	}
	if err := fault.Join(g.post.missed(), g.check(objects)); err != nil {
		return err
	}
	for i, h := range hooks {
		if len(objectsOf(docs[i])) == 0 {
			// A patch deleted it. Helm's list of hooks is not ours to shorten; a hook of no event never runs.
			h.Events = nil
		}
		out, err := sealed(docs[i])
		if err != nil {
			return err
		}
		h.Manifest = out
	}
	return nil
}

func (g *gate) pass(manifest string) (string, error) {
	if err := g.prepared(); err != nil {
		return "", err
	}
	docs, err := parse(manifest)
	if err != nil {
		return "", err
	}
	if docs, err = g.changed(docs, false); err != nil {
		return "", err
	}
	g.rendered = true
	if err := g.check(objectsOf(docs)); err != nil {
		return "", err
	}
	return sealed(docs)
}

// changed makes the app's own changes. What is checked next is what the text says, not what the changes left in memory.
// Where names may be generated, objects need none.
func (g *gate) changed(docs []document, generated bool) ([]document, error) {
	if err := g.post.change(docs); err != nil {
		return nil, err
	}
	docs, err := reread(docs)
	if err != nil {
		return nil, fault.Render(err)
	}
	return docs, nameless(docs, generated)
}

// nameless finds objects without a name. Of hooks the API server may choose it: nobody looks for them again.
func nameless(docs []document, generated bool) error {
	for _, d := range docs {
		for _, u := range d.objects {
			if u.GetName() == "" && (!generated || u.GetGenerateName() == "") {
				return fault.Render(fmt.Errorf("%s: a %s has no name", d.name(), u.GetKind()))
			}
		}
	}
	return nil
}

// prepared reads the app's own changes, once for manifests and hooks.
func (g *gate) prepared() (err error) {
	if g.post != nil {
		return nil
	}
	if g.refused = reserved(g.common); g.refused != nil {
		return g.refused
	}
	g.post, err = newPostRenderers(g.renderers, g.common)
	return err
}

func (g *gate) check(objects []*unstructured.Unstructured) error {
	if len(objects) == 0 {
		return nil
	}
	err := g.admit(objects)
	if err != nil && g.refuses != nil && !g.refuses(err) {
		g.unjudged = fmt.Errorf("checking whether the objects are allowed: %w", err)
		return g.unjudged
	}
	g.refused = err
	return err
}

// lookupFailed is in Helm's text when a template asked the API server in vain. Helm hands on no more than text.
const lookupFailed = "error calling lookup"

// errTooLargeToRecord is the one reason for which the API server finds a well-formed record invalid.
var errTooLargeToRecord = fault.TooLarge("chart, values and manifests do not fit into a Secret, 1 MiB compressed; leave files out with .helmignore")

// classify turns the error of a failed action into the caller's classes.
func (g *gate) classify(err error, sensitive []string) error {
	if err != nil && g.failed != nil {
		err = g.failed
	}
	refused := &fault.NotAllowed{Err: g.refused}
	switch text := fault.Plain(err, sensitive); {
	case err == nil:
		return nil
	case g.unjudged != nil:
		return fault.Plain(g.unjudged, sensitive)
	case g.refused != nil, errors.As(err, &refused):
		return &fault.NotAllowed{Err: fault.Mask(refused.Err, sensitive)}
	case apierrors.IsInvalid(g.storage) || apierrors.IsRequestEntityTooLargeError(g.storage):
		return fault.Render(errTooLargeToRecord)
	case errors.Is(text, fault.ErrRender):
		return text
	case errors.Is(err, fault.ErrRender), !g.rendered && g.storage == nil && !strings.Contains(err.Error(), lookupFailed):
		return fault.Render(fault.Readable(text))
	default:
		return text
	}
}
