package app

import (
	"context"

	"k8s.io/pod-security-admission/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/controllers/app/dependency"
	"github.com/kubeop/kubeop/controllers/app/drift"
	"github.com/kubeop/kubeop/controllers/app/handover"
	"github.com/kubeop/kubeop/controllers/app/hook"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/project"
	"github.com/kubeop/kubeop/controllers/app/prune"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/app/wake"
	"github.com/kubeop/kubeop/controllers/hostclaims"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/delivery/journal"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/render/workload"
	"github.com/kubeop/kubeop/internal/sopskey"
)

// Options configure a Reconciler.
type Options struct {
	Cluster Cluster
	Engines Engines
	Tenants Tenants
	// Sources fetches the sources of Apps. New sets its fields Client, Inputs and Queue.
	Sources *source.Fetcher
	// Gateway is the Gateway that serves the hosts of Image Apps; with the zero value, an Ingress serves them.
	Gateway workload.Gateway
	// IngressClass is the class of Ingresses of Image Apps that name none; "" leaves the class to the cluster.
	IngressClass string
	Steps        *step.Runner
	// Clock is the clock for all waiting times.
	Clock clock.PassiveClock
	// Seal replaces the digests in the status, so that a reader cannot guess the content and compare its digest. The engines use the same
	// Seal.
	Seal digest.Seal
}

// Cluster is the access to the API server.
type Cluster struct {
	Client client.Client
	// Direct reads without the cache.
	Direct  client.Reader
	Clients *kube.Clients
	Watch   *kube.Watch
	// Version returns the resourceVersion of a ConfigMap, Secret or Flux source that the watch of its namespace's deployer last showed; ""
	// if there is no such object. OnChange registers a function to call when such an object or a Helm release record changes.
	Version  func(ctx context.Context, namespace, kind, name string) (string, error)
	OnChange func(func(namespace, kind, name string, labels map[string]string))
	// OnServed registers a function to call when the API server may serve other kinds than before.
	OnServed func(func())
	// Explainer returns, for a namespace, what explains with its deployer's rights why objects are unhealthy. The mask hides secrets.
	Explainer func(namespace string, mask func(string) string) (health.Explainer, error)
	// PodSecurity is the Kubernetes version of the Pod Security checks that the API server enforces.
	PodSecurity api.Version
}

// Engines apply, build and release.
type Engines struct {
	Applier  *apply.Applier
	Journal  *journal.Journal
	Releases *release.Engine
	// Builder makes the objects of Git and Raw Apps.
	Builder *build.Builder
}

// Tenants are the limits of tenants and what they use.
type Tenants struct {
	// Limits are for tenants without limits of their own.
	Limits budget.Limits
	// Weight returns how many builds of a tenant run for one build of another tenant, when both have builds waiting; nil means one for
	// each.
	Weight func(tenant string) int
	// Store knows which quotas are lower than their projects' own, because all projects of a tenant share a limit.
	Store *usage.Store
	// Keys are the tenants' keys for encrypted files.
	Keys *sopskey.Keys
	// Rendered counts the size of what all Apps of a tenant deliver.
	Rendered *usage.Rendered
	// Hosts has the host names of projects.
	Hosts *hostclaims.Claims
	// Refusals knows which Apps have a newer version that was refused.
	Refusals *refusal.Index
}

// New returns a Reconciler.
func New(o Options) *Reconciler {
	c, queue := o.Cluster, &wake.Queue{Clock: o.Clock}
	reader := &inputs.Reader{Version: c.Version, Tenants: c.Client, TenantKeys: o.Tenants.Keys}
	o.Sources.Client, o.Sources.Inputs, o.Sources.Queue = c.Client, reader, queue
	recorder := &record.Recorder{Journal: o.Engines.Journal, Seal: o.Seal}
	transfers := &handover.Transfers{Client: c.Client, Direct: c.Direct, Inventory: recorder, Queue: queue}
	pruner := &prune.Pruner{Client: c.Client, Direct: c.Direct, Live: o.Engines.Applier.Live, Events: o.Steps.Events}
	differences := &drift.Applied{Applier: o.Engines.Applier}
	admit := &admitter{clients: c.Clients, tenants: o.Tenants, sources: o.Sources, podSecurity: c.PodSecurity}
	objects := &applier{
		engine: o.Engines.Applier, inventory: recorder, transfers: transfers, pruner: pruner, drift: differences, admitter: admit,
		volumes: &handover.Volumes{Client: c.Client, Watch: c.Watch, Transfers: transfers},
	}
	releases := &releaser{engine: o.Engines.Releases, applier: o.Engines.Applier, transfers: transfers, pruner: pruner, drift: differences, admitter: admit, seal: o.Seal}
	r := &Reconciler{
		steps: o.Steps, subjects: &subject.Subjects{Clock: o.Clock},
		recorder:     recorder,
		dependencies: &dependency.Checker{Client: c.Client, Clients: c.Clients, Watch: c.Watch},
		sources:      o.Sources,
		hooks:        &hook.Runner{Watch: c.Watch, Inputs: reader, Explainer: c.Explainer},
		projects:     &project.Finder{Client: c.Client, Deployer: c.Clients.As, Watch: c.Watch, Limits: o.Tenants.Limits},
		renderer:     &renderer{inputs: reader, sources: o.Sources, builder: o.Engines.Builder, hosting: workload.Settings{Gateway: o.Gateway, IngressClass: o.IngressClass}, queue: queue},
		admitter:     admit,
		applier:      objects,
		releaser:     releases,
		assessor:     &assessor{watch: c.Watch, explainer: c.Explainer, releaser: releases},
		remover: &remover{
			watch: c.Watch, direct: c.Direct, deployer: c.Clients.As, engine: o.Engines.Applier, events: o.Steps.Events,
			recorder: recorder, transfers: transfers, pruner: pruner, releaser: releases, applier: objects,
		},
	}
	r.renderer.builds.Weight = o.Tenants.Weight
	r.wakes = &wakes{cluster: c, queue: queue, refusals: o.Tenants.Refusals, sources: r.sources, dependencies: r.dependencies, hosts: o.Tenants.Hosts}
	return r
}
