{{- define "who" }}parent a{{ end }}
