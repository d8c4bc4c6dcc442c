package controllers

import (
	"context"
	"net"
	"net/netip"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/repository"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/internal/digestkey"
	"github.com/kubeop/kubeop/internal/sandbox"
)

// Options are the settings of the controllers.
type Options struct {
	Process
	Evaluation
	Network
	Hook Hook
	// Concurrency is how many objects of each kind are reconciled at once for one tenant, and half of how many are for all; HelmWorkers
	// how many Helm actions run at once.
	Concurrency, HelmWorkers int
	// TenantLimits are the limits of tenants without limits of their own.
	TenantLimits v1alpha1.TenantLimits
	// IngressNamespace is the namespace of the ingress controller, which may reach every project's pods; "" lets none in.
	IngressNamespace string
	// Gateway is the Gateway that serves the hosts of Image apps, as "namespace/name" or "namespace/name/section"; "" leaves
	// them to an Ingress.
	Gateway string
	// FlowControl: the API server has the priority levels of the chart, and each tenant is to have FlowSchemas.
	FlowControl bool
	// DigestKey seals the digests in statuses; with nil they are written unsealed.
	DigestKey *digestkey.Key
	// PlatformApps is one of the constants of kube.Deployers; "" is Off.
	PlatformApps string
	// Platform is the URL of the platform repository; without a URL, the person who applies the Repository named platform decides.
	Platform repository.Platform
}

func (o Options) deployers() kube.Deployers {
	return kube.Deployers{PlatformApps: o.PlatformApps, Operator: o.Namespace}
}

// Process says where the operator runs.
type Process struct {
	// DataDir holds the local stores of Git objects and charts.
	DataDir string
	// Namespace is the operator's own, which holds the credentials of repositories.
	Namespace string
	// Deployment is the name of the operator's own Deployment, in its namespace: while that is being deleted, or gone, kubeop is
	// being uninstalled and nothing is removed. "" where it runs as none.
	Deployment string
	// Drain is how long the end of the process waits for Helm actions that run; 0: it does not wait.
	Drain time.Duration
}

// Evaluation says where what tenants wrote is evaluated.
type Evaluation struct {
	// Evaluate has it evaluated in processes of their own. Trials and BuildTrials are where it is remembered which charts, and which
	// manifests, cannot be; see release.Options and build.Builder.
	Evaluate            func(ctx context.Context, c apart.Call) ([]byte, error)
	Trials, BuildTrials string
	// EvaluateProcesses is how many evaluations run at once, shared by tenant. 0: there is no limit but that of the callers.
	EvaluateProcesses int
	// Sandbox has the processes; nil where Evaluate needs none that start with the operator.
	Sandbox *sandbox.Pool
}

// Network says what sources may be reached, and how.
type Network struct {
	// AllowedAddresses may be reached by the URLs of tenants although they are refused by default, see transport.Network.
	AllowedAddresses []netip.Prefix
	// ClusterNetworks are the networks of pods, Services and nodes as administrators know them; none: every private network may be one.
	ClusterNetworks []netip.Prefix
	// TokenServices are the hosts that are sent the credentials of registries, by registry, see transport.Network.
	TokenServices map[string]string
	// OwnService is the name of the operator's Service, which they may not reach; "" when there is none.
	OwnService string
	// FluxArtifactHosts are the hosts of artifacts of Flux's sources, see artifact.Store.
	FluxArtifactHosts []string
	// PlainRegistries are the registries, as host or host:port, that image policies contact without TLS.
	PlainRegistries []string
}

// Hook is where the push hook serves.
type Hook struct {
	// Listener accepts its calls; nil: there is no push hook.
	Listener net.Listener
	// Client marks Repositories, also on replicas that do not lead.
	Client client.Client
}

// ManagerOptions are what the controllers rely on in their manager: a Reconcile reads what the one before it wrote, or waits for
// the cache to have it; and the cache holds of the fields' owners those that matter here.
func ManagerOptions(scheme *runtime.Scheme) ctrl.Options {
	consistent := true
	return ctrl.Options{
		Scheme: scheme,
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &consistent}},
		Cache: cache.Options{DefaultTransform: fieldmanager.SlimFields, ByObject: map[client.Object]cache.ByObject{
			// It says what tenants' accounts can create. No other role is read from the cache.
			&rbacv1.ClusterRole{}: {Field: fields.OneTermEqualSelector("metadata.name", v1alpha1.Deployer)},
		}},
	}
}
