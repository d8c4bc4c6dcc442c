package source

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/policy"
)

// allow judges a source by the tenant's policies before anything is fetched from it. It records what the source breaks, and returns a *policy.Violation if
// a policy denies it.
func (p *pass) allow(object string, source guardrails.Source) error {
	return p.breaks(policy.JudgeSource(object, source, p.Guardrails))
}

// allowDeclared judges the source that the App's spec names.
func (p *pass) allowDeclared() error {
	source, _ := guardrails.SourceOf(&p.App.Spec) // No rule is about the empty source.
	return p.allow("App/"+p.App.Name, source)
}

// allowChart judges the repository of a dependency of the App's chart.
func (p *pass) allowChart(repository, name string) error {
	source := guardrails.ChartSource(repository, name)
	return errors.Join(p.allow("Chart/"+name, source), p.allowUnverified("Chart/"+name, source, "put the chart into charts/ of the chart that depends on it, in Git"))
}

// fluxSources are the kinds of Flux sources that are fetched by a URL which policies can judge.
var fluxSources = map[string]guardrails.SourceType{"GitRepository": guardrails.GitRepository, "OCIRepository": guardrails.OCIRepository}

// allowFlux judges the URL of a Flux source. It reads the source only if a policy has rules about sources or signatures.
func (f *Fetcher) allowFlux(ctx context.Context, p *pass, kind schema.GroupVersionKind, name string) error {
	of, judged := fluxSources[kind.Kind]
	if !judged || !guardrails.LimitsSources(p.Guardrails) && !guardrails.Verifies(p.Guardrails) {
		return nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.App.Namespace, Name: name}, object); err != nil {
		return fmt.Errorf("reading %s %s/%s: %w", kind.Kind, p.App.Namespace, name, err)
	}
	url, _, err := unstructured.NestedString(object.Object, "spec", "url")
	if err != nil {
		return fmt.Errorf("reading the URL of %s %s/%s: %w", kind.Kind, p.App.Namespace, name, err)
	}
	source := guardrails.Source{Type: of, URL: url}
	return errors.Join(p.allow(kind.Kind+"/"+name, source), p.allowUnverified(kind.Kind+"/"+name, source, "name the artifact in spec.git.oci of the App, in Git"))
}
