package release

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// gate stands where one action's rendered objects pass: manifests as Helm's post-renderer, hooks, which Helm does not
// post-render, when the release is about to be recorded. Helm writes nothing before that, and runs and records exactly
// what the gate lets through. It remembers how far the action came, because Helm's errors do not tell.
type gate struct {
	chart *chart.Chart
	admit func([]*unstructured.Unstructured) error
	// rendered: the templates made objects.
	rendered bool
	// refused is the admission's error, storage the error of reading or writing records.
	refused, storage error
	// failed is the error with which a manifest did not pass, before Helm wrapped it.
	failed error
}

// Run is called by Helm with all manifests that are no hooks.
func (g *gate) Run(in *bytes.Buffer) (*bytes.Buffer, error) {
	out := ""
	if g.failed = g.withoutCRDs(); g.failed == nil {
		out, g.failed = g.pass(in.String())
	}
	return bytes.NewBufferString(out), g.failed
}

// passHooks checks and stamps the hooks of every event, tests included.
func (g *gate) passHooks(hooks []*helm.Hook) error {
	docs := make([][]document, len(hooks))
	var objects []*unstructured.Unstructured
	for i, h := range hooks {
		parsed, err := parse(h.Manifest)
		if err != nil {
			return renderError(fmt.Errorf("hook %s: %w", h.Path, err))
		}
		docs[i] = parsed
		objects = append(objects, objectsOf(parsed)...)
	}
	if err := g.check(objects); err != nil {
		return err
	}
	for i, h := range hooks {
		out, err := write(docs[i])
		if err != nil {
			return err
		}
		h.Manifest = out
	}
	return nil
}

func (g *gate) pass(manifest string) (string, error) {
	docs, err := parse(manifest)
	if err != nil {
		return "", err
	}
	g.rendered = true
	if err := g.check(objectsOf(docs)); err != nil {
		return "", err
	}
	return write(docs)
}

func (g *gate) check(objects []*unstructured.Unstructured) error {
	if len(objects) == 0 {
		return nil
	}
	g.refused = g.admit(objects)
	return g.refused
}

// withoutCRDs refuses a chart with CustomResourceDefinitions in crds/: they are the whole cluster's. Helm has removed
// disabled subcharts by the time this is called.
func (g *gate) withoutCRDs() error {
	var names []string
	for _, crd := range g.chart.CRDObjects() {
		docs, err := parse(string(crd.File.Data))
		if err != nil {
			return fmt.Errorf("%s: %w", crd.Filename, err)
		}
		for _, o := range objectsOf(docs) {
			names = append(names, fmt.Sprintf("%s %s (%s)", o.GetKind(), o.GetName(), crd.Filename))
		}
	}
	if len(names) == 0 {
		return nil
	}
	g.rendered = true
	slices.Sort(names)
	g.refused = errors.New("an app may not bring what the whole cluster shares: " + strings.Join(names, ", "))
	return g.refused
}

// lookupFailed is in Helm's text when a template asked the API server in vain. Helm hands on no more than text.
const lookupFailed = "error calling lookup"

// errTooLargeToRecord is the one reason for which the API server finds a well-formed record invalid.
var errTooLargeToRecord = errors.New("chart, values and manifests do not fit into a Secret, 1 MiB compressed; leave files out with .helmignore")

// classify turns the error of a failed action into the caller's classes.
func (g *gate) classify(err error, sensitive []string) error {
	if err != nil && g.failed != nil {
		err = g.failed
	}
	switch text := plain(err, sensitive); {
	case err == nil:
		return nil
	case g.refused != nil:
		return &NotAllowed{Err: masked(g.refused, sensitive)}
	case apierrors.IsInvalid(g.storage) || apierrors.IsRequestEntityTooLargeError(g.storage):
		return renderError(errTooLargeToRecord)
	case errors.Is(text, ErrRender):
		return text
	case errors.Is(err, ErrRender), !g.rendered && g.storage == nil && !strings.Contains(err.Error(), lookupFailed):
		return renderError(text)
	default:
		return text
	}
}
