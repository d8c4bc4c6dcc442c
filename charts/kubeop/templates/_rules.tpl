{{- /* The namespaced kinds that an app may have, with the given JSON list of verbs. Secrets are not included, because not every
role that may read the other kinds may read them. An app cannot have other kinds, such as quotas, limits, network policies,
kubeop's own kinds, service account tokens and cluster-scoped kinds. */ -}}
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

{{- /* What an app's Roles usually grant besides those kinds: the rights of Kubernetes' role edit, to Events and leader election among them.
The API server lets the deployer grant only what it has. It does not have what leads out of the namespace or to more rights: to impersonate,
tokens of service accounts, connections by the API server (proxy), and to write endpoints, network policies, quotas and limits. */ -}}
{{- define "kubeop.grantable" -}}
- apiGroups: [""]
  resources: [pods/log, pods/status, services/status, persistentvolumeclaims/status, endpoints, limitranges, resourcequotas, resourcequotas/status, namespaces]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods/attach, pods/exec, pods/portforward]
  verbs: [get, list, watch, create, update, patch, delete, deletecollection]
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
# The policy kubeop-events limits their size, and the operator their number.
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [get, list, watch, create, update, patch, delete, deletecollection]
- apiGroups: [apps]
  resources: [deployments/scale, statefulsets/scale, replicasets/scale]
  verbs: [get, list, watch, create, update, patch, delete, deletecollection]
- apiGroups: [apps]
  resources: [deployments/status, statefulsets/status, daemonsets/status, replicasets/status]
  verbs: [get, list, watch]
- apiGroups: [batch]
  resources: [jobs/status, cronjobs/status]
  verbs: [get, list, watch]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers/status]
  verbs: [get, list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets/status]
  verbs: [get, list, watch]
- apiGroups: [networking.k8s.io]
  resources: [ingresses/status, networkpolicies]
  verbs: [get, list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch]
- apiGroups: [metrics.k8s.io]
  resources: [pods]
  verbs: [get, list, watch]
# An operator that sets blockOwnerDeletion in an owner reference needs these where the API server checks that.
- apiGroups: ["", apps, batch]
  resources:
    - configmaps/finalizers
    - services/finalizers
    - pods/finalizers
    - deployments/finalizers
    - statefulsets/finalizers
    - daemonsets/finalizers
    - replicasets/finalizers
    - jobs/finalizers
    - cronjobs/finalizers
  verbs: [update]
{{- end }}

{{- /* The read permissions of every role in a tenant: everything except Secrets. */ -}}
{{- define "kubeop.view" -}}
{{ include "kubeop.workloads" "[get, list, watch]" }}
- apiGroups: [paas.kubeop.io]
  resources: [projects, apps, guardrails]
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

{{- /* The permissions of an editor, in addition to reading. Apps can be changed in Git only. An editor may only set the annotations on
them that the policy kubeop-requests lists, and may only create the Jobs that kubeop-job-by-hand allows. So without the policies an editor
can do neither. Deleting a pod restarts it. */ -}}
{{- define "kubeop.edit" -}}
- apiGroups: [""]
  resources: [pods/exec, pods/attach, pods/portforward]
  verbs: [get, create]
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
- apiGroups: [apps]
  resources: [deployments/scale, statefulsets/scale, replicasets/scale]
  verbs: [get, update, patch]
{{- if .Values.admissionPolicies.enabled }}
- apiGroups: [paas.kubeop.io]
  resources: [projects, apps]
  verbs: [patch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [create]
{{- end }}
{{- end }}
