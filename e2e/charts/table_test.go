//go:build e2e

package charts

// chart is what becomes of a chart with its defaults.
type chart struct {
	// helm are more fields of spec.helm.
	helm string
	// values are what a later push sets, so that an app changes, or that one that was refused is healthy; "" if there is no such push.
	values string
	// with is another chart of testdata that is its subchart.
	with string
	// refused are parts of the message at the App of a tenant; nil: the app is healthy.
	refused []string
	// retried: the API server refuses, so that an administrator can help while kubeop tries again. Other refusals are final.
	retried bool
	// platform is the Pod Security level at which the chart is healthy as an app of the platform; "" if it is not delivered so.
	platform string
}

// byAdministrator is the way out that a refusal names, of what only the platform may have.
const byAdministrator = "ask an administrator of the cluster to deliver it from platform/ of the platform repository"

// What kubeop keeps when the apps are removed: claims with data (docs/data.md), and definitions (docs/helm.md).
var keptClaims = []string{
	"backup", "data-database-0", "data-git-host-db-0", "data-queue-0", "data-queue-1", "data-wiki-database-0", "git-host-shared", "object-store", "registry",
}

const keptDefinitions = 15

// charts by the name of their folder in testdata.
var charts = map[string]chart{
	// With their defaults these are healthy as apps of a tenant.
	"backup":       {},
	"cache":        {values: "{replicas: 1}"},
	"collector":    {values: "{config: {receivers: {zipkin: {}}}}"},
	"dashboards":   {},
	"database":     {values: "{auth: {username: other}}"},
	"git-host":     {with: "database"},
	"importer":     {},
	"library":      {},
	"many":         {},
	"migrated":     {values: "{databaseURL: postgres://db/other}"},
	"oauth-proxy":  {},
	"object-store": {},
	"operator":     {},
	"queue":        {},
	"registry":     {},
	"runner":       {},
	"tested":       {helm: ", test: {enable: true}"},
	"web":          {values: "{autoscaling: {minReplicas: 1}}"},
	"wiki":         {with: "database", values: "{database: {auth: {username: other}}}"},

	// These are for the whole cluster or for its nodes, so they are apps of the platform.
	"autoscaler":          {platform: "restricted", refused: clusterScoped("ClusterRole/autoscaler")},
	"certificate-manager": {platform: "restricted", refused: clusterScoped("ClusterRole/certificate-manager-injector", "CustomResourceDefinition/certificates.certs.example.com", "Role/certificate-manager-webhook-election is for namespace kube-system", "MutatingWebhookConfiguration/certificate-manager-webhook")},
	"external-dns":        {platform: "restricted", refused: clusterScoped("ClusterRole/external-dns")},
	"external-secrets":    {platform: "restricted", refused: clusterScoped("ClusterRole/external-secrets", "ValidatingWebhookConfiguration/external-secrets")},
	"ingress-controller":  {platform: "restricted", refused: clusterScoped("ClusterRole/ingress-controller", "IngressClass/edge")},
	"log-shipper":         {platform: "privileged", refused: clusterScoped("ClusterRole/log-shipper", "hostPath", "spec.taints of the Tenant")},
	"metrics-stack":       {platform: "privileged", refused: []string{"CustomResourceDefinition/targets.metrics.example.com", "spec.clusterKinds of the Tenant", "crds: Skip", "or delivers the app from platform/ there"}},
	"node-agent":          {platform: "privileged", refused: []string{"tolerates every taint", "hostNetwork=true", `"hostPath"`, byAdministrator}},
	"policy-engine":       {platform: "restricted", refused: clusterScoped("ClusterRole/policy-engine", "MutatingWebhookConfiguration/policy-engine")},
	"priority":            {platform: "restricted", refused: []string{"PriorityClass/important is cluster-scoped", "or to deliver the app from platform/ there"}},
	"service-mesh":        {platform: "restricted", refused: clusterScoped("ClusterRole/service-mesh", "MutatingWebhookConfiguration/service-mesh-injector")},
	"state-metrics":       {platform: "restricted", refused: clusterScoped("ClusterRole/state-metrics")},
	"storage-driver":      {platform: "privileged", refused: clusterScoped("StorageClass/disk", "CSIDriver/disk.csi.example.com", "privileged=true")},
	"workflow-engine":     {platform: "restricted", refused: clusterScoped("ClusterRole/workflow-engine-server")},

	// These need something of their author, or of another cluster.
	"future":   {refused: []string{"requires kubeVersion: >= 1.99.0-0", "v1.37"}},
	"isolated": {values: "{networkPolicy: {enabled: false}}", refused: []string{"NetworkPolicy/isolated is refused: the platform sets the network policies of a project, so leave it out", "networkPolicy.enabled: false"}},
	"license":  {values: "{license: {key: abc}}", refused: []string{"license/templates/all.yaml", "license.key is required: you got it by mail"}},
	"search":   {values: "{sysctl: {enabled: false}}", platform: "privileged", refused: []string{`StatefulSet/search`, `privileged`, "take privileged: true out of spec.template.spec", byAdministrator}},
	"wildcard": {values: "{rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, list, watch]}]}", retried: true, refused: []string{`"wildcard" is forbidden`, `{APIGroups:["*"], Resources:["*"], Verbs:["*"]}`, "an app's role can grant only what kubeop-deployer has: take these rules out, or ask an administrator"}},
}

// clusterScoped are the parts of the refusal of a chart that belongs to the platform.
func clusterScoped(parts ...string) []string {
	return append(parts, "is cluster-scoped", byAdministrator)
}
