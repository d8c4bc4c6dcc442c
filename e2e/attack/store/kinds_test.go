//go:build e2e

package store

const (
	podSpec = `
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers: [{name: a, image: registry.example.com/hello:v1, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
`
	always   = `{metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: registry.example.com/hello:v1}]}}`
	never    = `{metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: a, image: registry.example.com/hello:v1}]}}`
	selector = "selector: {matchLabels: {a: b}}"
)

// kinds are minimal objects of each kind that an app may have, by resource. "" means that the cluster does not serve the kind, or
// that no account may create it.
var kinds = map[string]string{
	"configmaps":             "{apiVersion: v1, kind: ConfigMap}",
	"secrets":                "{apiVersion: v1, kind: Secret}",
	"services":               "{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}",
	"persistentvolumeclaims": "{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}}",
	"serviceaccounts":        "{apiVersion: v1, kind: ServiceAccount}",
	"pods":                   "apiVersion: v1\nkind: Pod\nspec:" + podSpec,
	"deployments":            "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 0, " + selector + ", template: " + always + "}}",
	"statefulsets":           "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 0, serviceName: a, " + selector + ", template: " + always + "}}",
	"daemonsets":             "{apiVersion: apps/v1, kind: DaemonSet, spec: {" + selector + ", template: " + always + "}}",
	"replicasets":            "{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 0, " + selector + ", template: " + always + "}}",
	"controllerrevisions":    "", // Kubernetes' controllers create them.
	"jobs":                   "{apiVersion: batch/v1, kind: Job, spec: {suspend: true, template: " + never + "}}",
	"cronjobs": "{apiVersion: batch/v1, kind: CronJob, spec: {schedule: '0 0 1 1 *', suspend: true, " +
		"jobTemplate: {spec: {template: " + never + "}}}}",
	"horizontalpodautoscalers": "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, " +
		"spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}",
	"poddisruptionbudgets": "{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {" + selector + ", maxUnavailable: 1}}",
	"ingresses":            "{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {rules: [{host: NAMESPACE.example}]}}",
	"httproutes":           "",
	"roles":                "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}",
	"rolebindings": "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, " +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: bot}}",
	"leases": "{apiVersion: coordination.k8s.io/v1, kind: Lease}",
	"events": "{apiVersion: v1, kind: Event, involvedObject: {kind: Pod, name: a, namespace: NAMESPACE}}",
}
