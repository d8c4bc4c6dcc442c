{{- define "who" }}parent deep{{ end }}
