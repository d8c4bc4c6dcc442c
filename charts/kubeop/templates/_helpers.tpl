{{- define "kubeop.selector" -}}
app.kubernetes.io/name: kubeop
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kubeop.labels" -}}
{{ include "kubeop.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* Other ones than those of the operator, whose Service and NetworkPolicy would select the manager's pods by them. */ -}}
{{- define "kubeop.managerSelector" -}}
app.kubernetes.io/name: kubeop-manager
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kubeop.managerLabels" -}}
{{ include "kubeop.managerSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "kubeop.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- /* Objects that tenants still need after the operator is uninstalled. docs/operations/uninstall.md lists them. */ -}}
{{- define "kubeop.keep" -}}
helm.sh/resource-policy: keep
{{- end }}

{{- /* The path of the pod, in an expression of CEL, of a Pod, a PodTemplate or an object with a template of pods. */ -}}
{{- define "kubeop.podSpec" -}}
request.kind.kind == 'Pod' ? dyn(object).spec : request.kind.kind == 'CronJob' ? dyn(object).spec.jobTemplate.spec.template.spec : request.kind.kind == 'PodTemplate' ? dyn(object).?template.?spec.orValue({}) : dyn(object).?spec.?template.?spec.orValue({})
{{- end }}

{{- /* Admission policies and their bindings, as text, with digests of their specs in an annotation. kubeop compares them with what is in the cluster. */ -}}
{{- define "kubeop.digested" -}}
{{- range regexSplit "(?m)^---$" . -1 }}
{{- $object := fromYaml . }}
{{- if $object }}
{{- $_ := set $object.metadata "annotations" (merge (dict "paas.kubeop.io/spec-digest" (toJson $object.spec | sha256sum)) ($object.metadata.annotations | default dict)) }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}
