{{- /* The namespaced kinds an app may hold, with the verbs given as a JSON list; Secrets are left out because not
everybody who may see the rest may see them. What is not here (quotas, limits, network policies, kubeop's own kinds,
service account tokens, everything cluster-scoped) an app cannot hold. */ -}}
{{- define "kubeop.workloads" -}}
- apiGroups: [""]
  resources: [configmaps, services, persistentvolumeclaims, serviceaccounts, pods]
  verbs: {{ . }}
- apiGroups: [apps]
  resources: [deployments, statefulsets, daemonsets, replicasets, controllerrevisions]
  verbs: {{ . }}
- apiGroups: [batch]
  resources: [jobs, cronjobs]
  verbs: {{ . }}
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: {{ . }}
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: {{ . }}
- apiGroups: [networking.k8s.io]
  resources: [ingresses]
  verbs: {{ . }}
- apiGroups: [gateway.networking.k8s.io]
  resources: [httproutes]
  verbs: {{ . }}
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: {{ . }}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: {{ . }}
{{- end }}

{{- /* What everybody with a role in a tenant sees: everything but Secrets. */ -}}
{{- define "kubeop.view" -}}
{{ include "kubeop.workloads" "[get, list, watch]" }}
- apiGroups: [paas.kubeop.io]
  resources: [projects, apps]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods/log, events, endpoints, limitranges, resourcequotas]
  verbs: [get, list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [get, list, watch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch]
- apiGroups: [metrics.k8s.io]
  resources: [pods]
  verbs: [get, list]
{{- end }}

{{- /* What an editor does beyond looking. Git stays the only way to change an app, so nothing here writes one; deleting
a pod restarts it. */ -}}
{{- define "kubeop.edit" -}}
{{ include "kubeop.view" . }}
- apiGroups: [""]
  resources: [pods/exec, pods/attach, pods/portforward]
  verbs: [get, create]
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
{{- end }}
