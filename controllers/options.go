package controllers

import (
	"context"
	"net"
	"net/netip"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/blame"
	"github.com/kubeop/kubeop/controllers/guards"
	"github.com/kubeop/kubeop/controllers/plan"
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
	// Concurrency is how many objects of each kind are reconciled at once for one tenant; twice as many are reconciled at once for all
	// tenants. HelmWorkers is how many Helm actions run at once.
	Concurrency, HelmWorkers int
	// TenantLimits are for tenants without limits of their own.
	TenantLimits v1alpha1.TenantLimits
	// Admitted are labels of namespaces whose pods may reach every project's pods, such as those of the ingress controller and of monitoring.
	Admitted []map[string]string
	// Gateway is the Gateway that serves the hosts of Image Apps, as "namespace/name" or "namespace/name/section"; with "", an Ingress
	// serves them.
	Gateway string
	// IngressClass is the class of Ingresses of Image Apps that name none; "" leaves the class to the cluster.
	IngressClass string
	// FlowControl: the API server has the priority levels of the chart, so each tenant gets FlowSchemas.
	FlowControl bool
	// OwnerRequests: the API server has the chart's policy kubeop-requests, so owners may annotate their Repository.
	OwnerRequests bool
	// DigestKey is the key that seals the digests in statuses; nil leaves them unsealed.
	DigestKey *digestkey.Key
	// PlatformApps is one of the constants of kube.Deployers; "" means Off.
	PlatformApps string
	// Platform is the URL of the platform repository. Without a URL, the person who applies the Repository named platform decides.
	Platform Platform
}

func (o Options) deployers() kube.Deployers {
	return kube.Deployers{PlatformApps: o.PlatformApps, Operator: o.Namespace}
}

// Process says where the operator runs.
type Process struct {
	// DataDir is the directory of the local stores of Git objects and charts.
	DataDir string
	// Namespace is the operator's own namespace, with the credentials of repositories.
	Namespace string
	// Cluster is the name of the operator's cluster among the Clusters of the platform repository; "" if it has none.
	Cluster string
	// Deployment is the name of the operator's own Deployment in its namespace; "" if the operator does not run as one. If the Deployment
	// is gone or being deleted, kubeop is being uninstalled, and nothing is deleted.
	Deployment string
	// ManagerAccount is the name of the service account in its namespace as which the management API gets tokens for the kubeconfigs of people; "" if
	// people get none.
	ManagerAccount string
	// Drain is how long the process waits at its end for running Helm actions; with 0, it does not wait.
	Drain time.Duration
}

// Evaluation says where the input of tenants is evaluated, and what renders Apps for the plans of pull requests.
type Evaluation struct {
	// Renderer renders Apps for plans.
	Renderer plan.NewRenderer
	// Evaluate evaluates the input of tenants in a separate process. Trials and BuildTrials record which charts and which manifests
	// exceeded a limit; see release.Options and build.Builder.
	Evaluate            func(ctx context.Context, c apart.Call) ([]byte, error)
	Trials, BuildTrials string
	// EvaluateProcesses limits how many evaluations run at once; tenants take turns. 0 means no limit of its own.
	EvaluateProcesses int
	// Sandbox has the processes; nil if Evaluate needs no processes that start with the operator.
	Sandbox *sandbox.Pool
	// unjudged is hostclaims.Claims.Unjudged. Only the tests of this package can set it.
	unjudged func(tenant string) bool
}

// Network says which addresses sources may have, how they are reached, and what confines pods.
type Network struct {
	// AllowedAddresses may be the addresses of tenants' URLs although the SSRF guard refuses them by default, see transport.Network.
	AllowedAddresses []netip.Prefix
	// ClusterNetworks are the networks of pods, Services and nodes, as administrators set them. If none are set, every private network
	// counts as one.
	ClusterNetworks []netip.Prefix
	// TokenServices are, by registry, the hosts to which the credentials of a registry are sent, see transport.Network.
	TokenServices map[string]string
	// OwnService is the name of the operator's Service, which sources must not reach; "" if there is none.
	OwnService string
	// FluxArtifactHosts are the hosts of the artifacts of Flux sources, see artifact.Store.
	FluxArtifactHosts []string
	// PlainRegistries are the registries, as host or host:port, that image policies contact without TLS.
	PlainRegistries []string
	// TrustedRoot is the trusted root of sigstore in JSON, see cosign.TrustedRoot.
	TrustedRoot string
	// ClusterNetworkPolicies: where the API server serves the kind, each project of a tenant has one.
	ClusterNetworkPolicies bool
}

// Hook configures the push hook.
type Hook struct {
	// Listener accepts the calls of the hook; nil turns the hook off.
	Listener net.Listener
	// Client annotates Repositories, also on replicas that are not the leader.
	Client client.Client
}

// ManagerOptions are the manager options that the controllers need: a Reconcile reads what the one before it wrote, or waits until the
// cache has it; the cache keeps only the needed parts of managedFields, and of admission policies whether somebody changed them; and the log has failures of
// tenants as information.
func ManagerOptions(scheme *runtime.Scheme) ctrl.Options {
	consistent := true
	return ctrl.Options{
		Scheme: scheme,
		Logger: blame.Logger(ctrl.Log),
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &consistent}},
		Cache: cache.Options{DefaultTransform: slim, ByObject: map[client.Object]cache.ByObject{
			&admissionregistrationv1.ValidatingAdmissionPolicyBinding{}: {Label: guards.Chart},
			&admissionregistrationv1.ValidatingAdmissionPolicy{}:        {Label: guards.Chart},
			// This role lists what the tenants' accounts can create. No other role is read from the cache.
			&rbacv1.ClusterRole{}: {Field: fields.OneTermEqualSelector("metadata.name", v1alpha1.Deployer)},
		}},
	}
}

// slim removes from an object what no controller reads.
func slim(object any) (any, error) {
	object, err := guards.Compare(object)
	if err != nil {
		return nil, err
	}
	return fieldmanager.SlimFields(object)
}
