{{- /* The only image here. The test replaces the registry by the one of its cluster. */ -}}
{{- define "shared.image" -}}registry.example.com/hello:v1{{- end -}}

{{- define "shared.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end -}}
{{- end -}}

{{- define "shared.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- /* The labels of the pods of one workload: root, name. */ -}}
{{- define "shared.selector" -}}
{app.kubernetes.io/instance: {{ .root.Release.Name }}, app.kubernetes.io/component: {{ .name }}}
{{- end -}}

{{- /* metadata: root, name. */ -}}
{{- define "shared.metadata" -}}
metadata:
  name: {{ .name }}
  labels: {{- include "shared.labels" .root | nindent 4 }}
{{- end -}}

{{- /* A container that serves: name; port if it is not 8080; container is more of its fields. */ -}}
{{- define "shared.container" -}}
- name: {{ .name }}
  image: {{ include "shared.image" . }}
  ports: [{name: http, containerPort: {{ .port | default 8080 }}}]
  readinessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 1}
  livenessProbe: {httpGet: {path: /healthz, port: http}}
  resources: {requests: {cpu: 5m, memory: 16Mi}, limits: {memory: 64Mi}}
  {{- with .container }}{{ . | nindent 2 }}{{ end }}
{{- end -}}

{{- /* A container that prints a message and ends: name, container. */ -}}
{{- define "shared.task" -}}
- name: {{ .name }}
  image: {{ include "shared.image" . }}
  args: {{ .args | default (list "-say") | toJson }}
  resources: {requests: {cpu: 5m, memory: 16Mi}, limits: {memory: 64Mi}}
  {{- with .container }}{{ . | nindent 2 }}{{ end }}
{{- end -}}

{{- /* A template of pods: root, name, account; pod and container are more fields. */ -}}
{{- define "shared.pods" -}}
template:
  metadata:
    labels: {{ include "shared.selector" . }}
    {{- with .checksum }}
    annotations: {checksum/config: {{ . | sha256sum }}}
    {{- end }}
  spec:
    terminationGracePeriodSeconds: 2
    {{- with .account }}
    serviceAccountName: {{ . }}
    {{- end }}
    {{- with .pod }}{{ . | nindent 4 }}{{ end }}
    containers: {{- include "shared.container" . | nindent 4 }}
    {{- with .containers }}{{ . | nindent 4 }}{{ end }}
{{- end -}}

{{- define "shared.deployment" -}}
apiVersion: apps/v1
kind: Deployment
{{ include "shared.metadata" . }}
spec:
  {{- if not .scaled }}
  replicas: {{ .replicas | default 1 }}
  {{- end }}
  selector: {matchLabels: {{ include "shared.selector" . }}}
  {{- include "shared.pods" . | nindent 2 }}
{{- end -}}

{{- define "shared.daemonset" -}}
apiVersion: apps/v1
kind: DaemonSet
{{ include "shared.metadata" . }}
spec:
  selector: {matchLabels: {{ include "shared.selector" . }}}
  {{- include "shared.pods" . | nindent 2 }}
{{- end -}}

{{- /* A StatefulSet with its headless Service; claim is the size of its data. */ -}}
{{- define "shared.statefulset" -}}
apiVersion: apps/v1
kind: StatefulSet
{{ include "shared.metadata" . }}
spec:
  replicas: {{ .replicas | default 1 }}
  serviceName: {{ .name }}-headless
  podManagementPolicy: Parallel
  selector: {matchLabels: {{ include "shared.selector" . }}}
  {{- include "shared.pods" . | nindent 2 }}
  {{- with .claim }}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: {{ . }}}}}
  {{- end }}
---
apiVersion: v1
kind: Service
{{ include "shared.metadata" (dict "root" .root "name" (printf "%s-headless" .name)) }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {{ include "shared.selector" . }}
  ports: [{name: http, port: 8080, targetPort: http}]
{{- end -}}

{{- /* root, name; of is the workload, type the type of the Service. */ -}}
{{- define "shared.service" -}}
apiVersion: v1
kind: Service
{{ include "shared.metadata" . }}
spec:
  type: {{ .type | default "ClusterIP" }}
  selector: {{ include "shared.selector" (dict "root" .root "name" (.of | default .name)) }}
  ports: [{name: http, port: 80, targetPort: http}]
{{- end -}}

{{- /* A service account that has rules in the namespace of the release. */ -}}
{{- define "shared.account" -}}
apiVersion: v1
kind: ServiceAccount
{{ include "shared.metadata" . }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
{{ include "shared.metadata" . }}
rules: {{- .rules | toYaml | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
{{ include "shared.metadata" . }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .name }}}
subjects: [{kind: ServiceAccount, name: {{ .name }}, namespace: {{ .root.Release.Namespace }}}]
{{- end -}}

{{- /* A service account that has rules in the whole cluster. */ -}}
{{- define "shared.clusterAccount" -}}
apiVersion: v1
kind: ServiceAccount
{{ include "shared.metadata" . }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
{{ include "shared.metadata" . }}
rules: {{- .rules | toYaml | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
{{ include "shared.metadata" . }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ .name }}}
subjects: [{kind: ServiceAccount, name: {{ .name }}, namespace: {{ .root.Release.Namespace }}}]
{{- end -}}

{{- /* A definition of a namespaced kind: group, kind, plural, and short if there is a short name. */ -}}
{{- define "shared.definition" -}}
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: {{ .plural }}.{{ .group }}}
spec:
  group: {{ .group }}
  scope: {{ .scope | default "Namespaced" }}
  names: {kind: {{ .kind }}, listKind: {{ .kind }}List, plural: {{ .plural }}, singular: {{ .kind | lower }}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}, status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
{{- end -}}

{{- /* A Job that is a hook: root, name, hook; args, account, and policy of its deletion. */ -}}
{{- define "shared.hook" -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .name }}
  labels: {{- include "shared.labels" .root | nindent 4 }}
  annotations:
    helm.sh/hook: {{ .hook }}
    helm.sh/hook-weight: {{ .weight | default 0 | quote }}
    helm.sh/hook-delete-policy: {{ .policy | default "before-hook-creation,hook-succeeded" }}
spec:
  backoffLimit: 2
  template:
    spec:
      restartPolicy: Never
      {{- with .account }}
      serviceAccountName: {{ . }}
      {{- end }}
      containers: {{- include "shared.task" . | nindent 6 }}
{{- end -}}
