{{- define "who" }}zeta{{ end }}
{{- define "late" }}zeta{{ end }}
