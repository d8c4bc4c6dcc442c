{{- /* The operator's configuration; internal/config documents each variable. */ -}}
{{- define "kubeop.env" -}}
- {name: OPERATOR_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
- {name: CLUSTER_NAME, value: {{ .Values.clusterName | quote }}}
- {name: OPERATOR_DEPLOYMENT, value: {{ .Release.Name | quote }}}
- {name: LOG_LEVEL, value: {{ .Values.logLevel | quote }}}
- {name: LOG_FORMAT, value: {{ .Values.logFormat | quote }}}
- {name: METRICS_ADDR, value: ":8080"}
- {name: METRICS_SECURE, value: {{ .Values.metrics.secure | quote }}}
{{- if .Values.metrics.tlsSecret }}
- {name: METRICS_CERT_DIR, value: /metrics-tls}
{{- end }}
- {name: HEALTH_ADDR, value: ":8081"}
- {name: HOOK_ADDR, value: ":9292"}
- {name: DATA_DIR, value: /data}
- {name: LEADER_ELECT, value: "true"}
- {name: CONCURRENCY, value: {{ .Values.concurrency | quote }}}
- {name: HELM_WORKERS, value: {{ .Values.helmWorkers | quote }}}
- {name: EVALUATE_PROCESSES, value: {{ .Values.evaluate.processes | quote }}}
- {name: EVALUATE_MEMORY_MIB, value: {{ .Values.evaluate.memoryMiB | quote }}}
- {name: EVALUATE_CPU, value: {{ .Values.evaluate.cpu | quote }}}
- {name: EVALUATE_TIMEOUT, value: {{ .Values.evaluate.timeout | quote }}}
{{- with .Values.tenantLimits }}
- {name: TENANT_LIMITS, value: {{ toJson . | quote }}}
{{- end }}
- {name: GRACEFUL_TIMEOUT, value: {{ printf "%ds" (int .Values.gracefulTimeoutSeconds) }}}
{{- with .Values.flowControl }}
- {name: FLOW_CONTROL, value: {{ and .enabled .perTenant | quote }}}
{{- end }}
- {name: OWNER_REQUESTS, value: {{ .Values.admissionPolicies.enabled | quote }}}
- {name: INGRESS_NAMESPACE, value: {{ .Values.ingressNamespace | quote }}}
- {name: MONITORING_NAMESPACE, value: {{ .Values.monitoringNamespace | quote }}}
- {name: CLUSTER_NETWORK_POLICIES, value: {{ .Values.clusterNetworkPolicies | quote }}}
- {name: OPERATOR_SERVICE, value: {{ printf "%s.%s.svc" .Release.Name .Release.Namespace | quote }}}
- {name: ALLOWED_ADDRESSES, value: {{ join "," .Values.allowedAddresses | quote }}}
- {name: CLUSTER_NETWORKS, value: {{ join "," .Values.clusterNetworks | quote }}}
{{- $services := list }}
{{- range $registry, $host := .Values.tokenServices }}{{ $services = append $services (printf "%s=%s" $registry $host) }}{{ end }}
- {name: TOKEN_SERVICES, value: {{ join "," $services | quote }}}
{{- with .Values.fluxArtifactHosts }}
- {name: FLUX_ARTIFACT_HOSTS, value: {{ join "," . | quote }}}
{{- end }}
{{- if and .Values.manager.enabled .Values.manager.kubeconfigs.enabled }}
- {name: MANAGER_ACCOUNT, value: {{ printf "%s-manager" .Release.Name | quote }}}
{{- end }}
- {name: PLATFORM_APPS, value: {{ .Values.platformApps | quote }}}
- {name: GATEWAY, value: {{ .Values.gateway | quote }}}
- {name: INGRESS_CLASS, value: {{ .Values.ingressClassName | quote }}}
- {name: PLAIN_REGISTRIES, value: {{ join "," .Values.plainRegistries | quote }}}
{{- with .Values.sigstore.trustedRoot }}
- {name: SIGSTORE_TRUSTED_ROOT, value: {{ . | quote }}}
{{- end }}
{{- with .Values.platform }}
{{- if .url }}
- {name: PLATFORM_URL, value: {{ .url | quote }}}
- {name: PLATFORM_BRANCH, value: {{ .ref.branch | quote }}}
- {name: PLATFORM_PATH, value: {{ .path | quote }}}
- {name: PLATFORM_SECRET, value: {{ .secretRef | quote }}}
- {name: PLATFORM_HOOK_SECRET, value: {{ .hookSecretRef | quote }}}
- {name: PLATFORM_INTERVAL, value: {{ .interval | quote }}}
- {name: PLATFORM_VERIFY_SECRET, value: {{ .verify.secretRef | quote }}}
- {name: PLATFORM_HISTORY, value: {{ .history | quote }}}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
