{{- define "common.config" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .root.Release.Name }}
data: {{- toYaml .data | nindent 2 }}
{{- end }}
{{- define "common.account" -}}
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}, labels: {values: {{ .Values.common.common }}}}
{{- end }}
