package source

import (
	"context"
	"fmt"
	"math"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// fluxStatus is the part of a Flux source's status that is used here.
type fluxStatus struct {
	Artifact   *fluxmeta.Artifact `json:"artifact"`
	Conditions []metav1.Condition `json:"conditions"`
}

// fromFlux returns the files of the artifact of a Flux source in the App's namespace. The source is watched, so it is read only after it
// changed.
func (f *Fetcher) fromFlux(ctx context.Context, p *pass, ref *v1alpha1.FluxSourceReference) (Files, error) {
	mapping, err := p.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: sourcev1.GroupVersion.Group, Kind: ref.Kind})
	if meta.IsNoMatchError(err) {
		f.Queue.AwaitKinds(p.Key())
		return Files{}, notReady("the cluster does not serve %s of %s: install Flux's source-controller; %s may run: flux install --components=source-controller", ref.Kind,
			sourcev1.GroupVersion.Group, command.Administrator)
	}
	if err != nil {
		return Files{}, fmt.Errorf("looking for the kind %s: %w", ref.Kind, err)
	}
	version, err := f.Inputs.Version(ctx, p.App.Namespace, ref.Kind, ref.Name)
	if err != nil {
		return Files{}, err
	}
	if version == "" {
		return Files{}, notReady("%s %s/%s does not exist: %s", ref.Kind, p.App.Namespace, ref.Name, createSource(ref.Kind, p.App.Namespace, ref.Name))
	}
	if err := f.allowFlux(ctx, p, mapping.GroupVersionKind, ref.Name); err != nil {
		return Files{}, err
	}
	query, err := f.query(ctx, p, "")
	if err != nil {
		return Files{}, err
	}
	query.Request += " " + version
	query.MaxAge = math.MaxInt64 // A new artifact is reported by an event.
	found := func() (artifact.Artifact, error) {
		return lastOf(p, f.Answers.FluxArtifacts, query, func() (cache.Fetcher[artifact.Artifact], error) {
			return f.download(ctx, p, mapping.GroupVersionKind, ref.Name)
		})
	}
	return f.unpacked(found, func() { f.Answers.FluxArtifacts.Forget(string(p.App.UID)) })
}

// download reads the status of the Flux source, and returns a function that fetches the artifact that the status names.
func (f *Fetcher) download(ctx context.Context, p *pass, kind schema.GroupVersionKind, name string) (cache.Fetcher[artifact.Artifact], error) {
	source := &unstructured.Unstructured{}
	source.SetGroupVersionKind(kind)
	what := fmt.Sprintf("%s %s/%s", kind.Kind, p.App.Namespace, name)
	err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.App.Namespace, Name: name}, source)
	if apierrors.IsNotFound(err) {
		return nil, notReady("%s does not exist: %s", what, createSource(kind.Kind, p.App.Namespace, name))
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}
	var status struct {
		Status fluxStatus `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(source.Object, &status); err != nil {
		return nil, fmt.Errorf("reading the status of %s: %w", what, err)
	}
	ready := meta.FindStatusCondition(status.Status.Conditions, fluxmeta.ReadyCondition)
	if ready != nil && ready.Status == metav1.ConditionFalse {
		return nil, notReady("%s is not ready: %.500q", what, ready.Message)
	}
	made := status.Status.Artifact
	if made == nil {
		return nil, notReady("%s has no artifact yet", what)
	}
	from := artifact.Flux{
		URL: made.URL, Revision: made.Revision, Digest: made.Digest,
		Namespace: p.App.Namespace, Tenant: p.Owner.Tenant,
	}
	return func(ctx context.Context) (artifact.Artifact, error) {
		got, err := f.Artifacts.Download(ctx, from)
		if err != nil {
			return got, fmt.Errorf("%s: %w", what, err)
		}
		return got, nil
	}, nil
}

// notReady returns an error that says why a Flux source cannot be used yet. Events of the source wake the App.
func notReady(format string, args ...any) error {
	return &absent{fmt.Sprintf(format, args...)}
}

type absent struct{ why string }

func (a *absent) Error() string { return a.why }

// Is makes the error match failure.ErrNotReady, for which the App waits.
func (a *absent) Is(target error) bool { return target == failure.ErrNotReady }

// createSource returns the sentence that administrators may create a source of Flux.
func createSource(kind, namespace, name string) string {
	of := strings.ToLower(strings.TrimSuffix(kind, "Repository")) // As the command line of Flux calls them: git, oci, bucket.
	if kind == sourcev1.ExternalArtifactKind {
		return "it is made by the controller of another kind, so create the object from which that makes it"
	}
	return fmt.Sprintf("create it; %s may run: flux create source %s %s -n %s --url=...", command.Administrator, of, name, namespace)
}
