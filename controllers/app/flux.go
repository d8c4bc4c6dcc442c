package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// fluxStatus is the part that matters here of the status of any source of Flux.
type fluxStatus struct {
	Artifact   *fluxmeta.Artifact `json:"artifact"`
	Conditions []metav1.Condition `json:"conditions"`
}

// fromFlux takes the artifact of a Flux source of the app's namespace. The source is watched, so it is read when it changed and
// at no other time.
func (r *Reconciler) fromFlux(ctx context.Context, s *scope, ref *v1alpha1.FluxSourceReference) (fetched, error) {
	mapping, err := s.client.RESTMapper().RESTMapping(schema.GroupKind{Group: sourcev1.GroupVersion.Group, Kind: ref.Kind})
	if meta.IsNoMatchError(err) {
		r.unserved.Store(client.ObjectKeyFromObject(s.app), true)
		return fetched{}, notReady("the cluster does not serve %s of %s: install Flux's source-controller", ref.Kind, sourcev1.GroupVersion.Group)
	}
	if err != nil {
		return fetched{}, fmt.Errorf("looking for the kind %s: %w", ref.Kind, err)
	}
	version, err := r.Version(ctx, s.app.Namespace, ref.Kind, ref.Name)
	if err != nil {
		return fetched{}, err
	}
	if version == "" {
		return fetched{}, notReady("%s %s/%s does not exist: create it", ref.Kind, s.app.Namespace, ref.Name)
	}
	ask, err := r.ask(ctx, s, "")
	if err != nil {
		return fetched{}, err
	}
	ask.Request += " " + version
	ask.MaxAge = math.MaxInt64 // What changes it is an event.
	found := func() (artifact.Artifact, error) {
		return lastOf(r, s, r.FluxArtifacts, ask, func() (cache.Fetcher[artifact.Artifact], error) {
			return r.download(ctx, s, mapping.GroupVersionKind, ref.Name)
		})
	}
	return r.unpacked(found, func() { r.FluxArtifacts.Forget(string(s.app.UID)) })
}

// download reads the source's status, and returns what fetches the artifact that is there.
func (r *Reconciler) download(ctx context.Context, s *scope, kind schema.GroupVersionKind, name string) (cache.Fetcher[artifact.Artifact], error) {
	source := &unstructured.Unstructured{}
	source.SetGroupVersionKind(kind)
	what := fmt.Sprintf("%s %s/%s", kind.Kind, s.app.Namespace, name)
	err := s.client.Get(ctx, client.ObjectKey{Namespace: s.app.Namespace, Name: name}, source)
	if apierrors.IsNotFound(err) {
		return nil, notReady("%s does not exist: create it", what)
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
		Namespace: s.app.Namespace, Tenant: s.owner.Tenant,
	}
	return func(ctx context.Context) (artifact.Artifact, error) {
		got, err := r.Artifacts.Download(ctx, from)
		if err != nil {
			return got, fmt.Errorf("%s: %w", what, err)
		}
		return got, nil
	}, nil
}

// notReady says what a Flux source lacks; its events wake the app.
func notReady(format string, args ...any) error {
	return &absent{fmt.Sprintf(format, args...)}
}

type absent struct{ why string }

func (a *absent) Error() string { return a.why }

// Is makes it the kind of error that is waited for.
func (a *absent) Is(target error) bool { return target == failure.ErrNotReady }

// unpacked opens an artifact, and finds it anew where it was swept or the disk is another one.
func (r *Reconciler) unpacked(find func() (artifact.Artifact, error), forget func()) (fetched, error) {
	artifact, err := find()
	if err != nil {
		return fetched{}, err
	}
	files, err := r.Artifacts.Files(artifact)
	if errors.Is(err, failure.ErrNotFound) {
		forget()
		if artifact, err = find(); err == nil {
			files, err = r.Artifacts.Files(artifact)
		}
	}
	return fetched{files: files, revision: artifact.Revision, digest: artifact.Digest}, err
}

// wakeOnKinds wakes the apps whose source is of a kind that was not served, when the API server may serve others.
func (r *Reconciler) wakeOnKinds(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	r.OnServed(func() {
		r.unserved.Range(func(app, _ any) bool {
			r.unserved.Delete(app)
			queue.AddAfter(reconcile.Request{NamespacedName: app.(client.ObjectKey)}, time.Second)
			return true
		})
	})
}
