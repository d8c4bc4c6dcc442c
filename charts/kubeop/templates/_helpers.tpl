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
