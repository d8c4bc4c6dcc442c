// Package render renders Apps for a plan, by the steps of the App controller.
package render

import (
	"context"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/project"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/hostclaims"
	"github.com/kubeop/kubeop/controllers/plan"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/metadata"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/trials"
)

// renderer has what the steps of the App controller need.
type renderer struct {
	clients  *kube.Clients
	apps     *app.Reconciler
	releases *release.Engine
}

// New puts the operator's packages together. It is a plan.NewRenderer.
func New(e plan.Environment, folders plan.Folders) *plan.Renderer {
	r := newRenderer(e, folders)
	return &plan.Renderer{Clients: r.clients, Render: r.render}
}

func newRenderer(e plan.Environment, folders plan.Folders) *renderer {
	r := &renderer{
		clients:  kube.NewClients(e.Config, e.Client.Scheme(), e.Mapper, e.Deployers),
		releases: release.New(release.Options{Config: e.Config, Discovery: e.Discovery, Mapper: e.Mapper, Holder: "kubeop-preview", Apart: e.Apart}),
	}
	sources := &source.Fetcher{
		Folder: func(_ context.Context, a *v1alpha1.App) (*folder.Folder, error) { return folders(a) },
		Git:    e.Stores.Git, Charts: e.Stores.Charts, Artifacts: e.Stores.Artifacts, Tags: e.Tags, Signatures: source.Signatures{Cosign: e.Cosign},
		Answers: source.NewAnswers(e.Fetches, clock.RealClock{}),
	}
	r.apps = app.New(app.Options{
		Cluster: app.Cluster{Client: e.Client, Direct: e.Client, Clients: r.clients, Version: r.version, PodSecurity: e.PodSecurity},
		Engines: app.Engines{
			Applier: &apply.Applier{}, Releases: r.releases,
			Builder: &build.Builder{Apart: e.Apart, Services: e.KeyService, Now: clock.RealClock{}.Now, Trials: trials.New("", "these manifests"), Log: logr.Discard()},
		},
		Tenants: app.Tenants{Limits: e.Limits, Rendered: &usage.Rendered{}, Hosts: &hostclaims.Claims{}},
		Sources: sources, Steps: &step.Runner{Client: e.Client, Events: &events.FakeRecorder{}, Clock: clock.RealClock{}}, Clock: clock.RealClock{},
		Gateway: e.Gateway, IngressClass: e.IngressClass,
	})
	sources.Start()
	return r
}

// render is the function Render of a plan.Renderer.
func (r *renderer) render(ctx context.Context, a *v1alpha1.App, at project.Place) (*plan.Rendered, error) {
	ctx, cancel := context.WithTimeout(ctx, a.Spec.Within())
	defer cancel()
	found, err := r.apps.Preview(ctx, a, at)
	made := &plan.Rendered{Subject: found.Subject, Revision: found.Revision, Objects: found.Objects}
	if err == nil && found.Release != nil {
		made.Release, err = r.releases.Preview(ctx, *found.Release)
	}
	return made, err
}

// version returns the resourceVersion of a ConfigMap, Secret or Flux source; "" if there is none.
func (r *renderer) version(ctx context.Context, namespace, kind, name string) (string, error) {
	as, err := r.clients.As(namespace)
	if err != nil {
		return "", err
	}
	gvk := corev1.SchemeGroupVersion.WithKind(kind)
	if kind != inputs.ConfigMap && kind != inputs.Secret {
		mapping, err := as.RESTMapper().RESTMapping(schema.GroupKind{Group: sourcev1.GroupVersion.Group, Kind: kind})
		if err != nil {
			return "", err
		}
		gvk = mapping.GroupVersionKind
	}
	found, err := metadata.Read(ctx, as, gvk, client.ObjectKey{Namespace: namespace, Name: name})
	if found == nil || err != nil {
		return "", err
	}
	return found.GetResourceVersion(), nil
}
