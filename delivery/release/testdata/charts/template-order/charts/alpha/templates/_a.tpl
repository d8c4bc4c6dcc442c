{{- define "who" }}alpha{{ end }}
{{- define "late" }}alpha{{ end }}
