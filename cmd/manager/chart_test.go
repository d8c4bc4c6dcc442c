package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/internal/config"
)

// render returns what the chart makes of the manager with values, or what helm says against it. helm is beside the cluster binary.
func render(t *testing.T, values string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Dir(cmp.Or(os.Getenv("KUBEOP_CLUSTER_BIN"), "../../.build/bin/cluster"))
	command := exec.Command(filepath.Join(bin, "helm"), "template", "kubeop", "../../charts/kubeop", "--namespace", "kubeop-system", "--show-only", "templates/manager.yaml", "--values", file)
	out, err := command.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatalf("%v: `make test` builds helm, or set KUBEOP_CLUSTER_BIN", err)
	}
	return string(out)
}

// decode reads the one object of a kind strictly.
func decode[T any](t *testing.T, rendered, kind string, with ...string) (object T) {
	t.Helper()
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		lacks := func(text string) bool { return !strings.Contains(document, text) }
		if strings.Contains(document, "\nkind: "+kind+"\n") && !slices.ContainsFunc(with, lacks) {
			if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
				t.Fatalf("%v:\n%s", err, document)
			}
			return object
		}
	}
	t.Fatalf("there is no %s in\n%s", kind, rendered)
	return object
}

// TestTheChartRunsTheManager compares what the chart sets with what the manager reads.
func TestTheChartRunsTheManager(t *testing.T) {
	rendered := render(t, `
networkPolicy: {metricsFrom: [{podSelector: {}}]}
nodeSelector: {of: operator}
manager:
  enabled: true
  tlsSecret: tls
  keySecret: keys
  trustedProxies: [10.0.0.1, 10.1.0.0/16]
  drainDelaySeconds: 60
  gracefulTimeoutSeconds: 120
  podLabels: {team: platform}
  podAnnotations: {note: x}
  nodeSelector: {disk: ssd}
  tolerations: [{key: a, operator: Exists}]
  affinity: {podAntiAffinity: {}}
  priorityClassName: high
  extraEnv: [{name: REQUEST_BURST, value: "7"}]
`)
	deployment := decode[appsv1.Deployment](t, rendered, "Deployment")
	pod := deployment.Spec.Template
	if got := *pod.Spec.TerminationGracePeriodSeconds; got != 60+120+15 {
		t.Errorf("the grace period is %d s", got)
	}
	if pod.Labels["team"] != "platform" || pod.Annotations["note"] != "x" || pod.Spec.NodeSelector["disk"] != "ssd" || len(pod.Spec.NodeSelector) != 1 ||
		len(pod.Spec.Tolerations) != 1 || pod.Spec.Affinity == nil || pod.Spec.PriorityClassName != "high" {
		t.Errorf("the pods are %+v", pod)
	}
	for key, value := range deployment.Spec.Selector.MatchLabels {
		if pod.Labels[key] != value {
			t.Errorf("the pods lack the label %s", key)
		}
	}
	for _, v := range pod.Spec.Containers[0].Env {
		t.Setenv(v.Name, v.Value)
	}
	c, err := config.LoadManager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	proxies, err := c.Proxies()
	if err != nil || len(proxies) != 2 || c.DrainDelay.Seconds() != 60 || c.GracefulTimeout.Seconds() != 120 || c.TLSCertDir != "/tls" || c.KeyFile != "/keys/keys" || c.PublicURL != "https://kubeop-manager.kubeop-system.svc:8443" || c.Burst != 7 {
		t.Errorf("%v: the manager reads %+v", err, c)
	}
	service := decode[corev1.Service](t, rendered, "Service")
	if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == "https-api" && p.Port == 8443 }) {
		t.Errorf("the ports are %+v", service.Spec.Ports)
	}
	if policy := decode[networkingv1.NetworkPolicy](t, rendered, "NetworkPolicy"); len(policy.Spec.Egress) != 1 || len(policy.Spec.Egress[0].Ports) != 2 {
		t.Errorf("the manager may connect to %+v", policy.Spec.Egress)
	}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"paas.kubeop.io"}, Resources: []string{"tenants", "projects", "apps", "repositories", "pricelists", "clusters"}, Verbs: []string{"list", "watch"}}}
	if diff := gocmp.Diff(rules, decode[rbacv1.ClusterRole](t, rendered, "ClusterRole").Rules); diff != "" {
		t.Errorf("the rights of the manager (-want +got):\n%s", diff)
	}
	events := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}}}
	if role := decode[rbacv1.Role](t, rendered, "Role"); role.Namespace != "default" || gocmp.Diff(events, role.Rules) != "" {
		t.Errorf("beyond that the manager has the rights %+v", role)
	}
	if strings.Count(rendered, "kind: Role\n") != 1 {
		t.Errorf("the manager has several roles:\n%s", rendered)
	}
	binding := decode[rbacv1.ClusterRoleBinding](t, rendered, "ClusterRoleBinding")
	if binding.RoleRef.Name != "kubeop-manager" || len(binding.Subjects) != 1 || binding.Subjects[0].Name != pod.Spec.ServiceAccountName {
		t.Errorf("the rights are given by %+v", binding)
	}
	if !*pod.Spec.AutomountServiceAccountToken {
		t.Error("the manager has no token for the API server")
	}
}

// TestTheChartLetsTheManagerReadNamedSecretsOnly: without names none, and then it may not connect to Git servers either.
func TestTheChartLetsTheManagerReadNamedSecretsOnly(t *testing.T) {
	const values = "manager: {enabled: true, plainHTTP: true"
	without := render(t, values+"}")
	if strings.Contains(without, "secrets") {
		t.Errorf("it may read Secrets:\n%s", without)
	}
	if policy := decode[networkingv1.NetworkPolicy](t, without, "NetworkPolicy"); len(policy.Spec.Egress) != 1 {
		t.Errorf("it may connect to %+v", policy.Spec.Egress)
	}
	with := render(t, values+", git: {secrets: [acme-git, platform-git], ports: [3000]}}")
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"acme-git", "platform-git"}, Verbs: []string{"get"}}}
	if diff := gocmp.Diff(rules, decode[rbacv1.Role](t, with, "Role", "\n  name: kubeop-manager\n").Rules); diff != "" {
		t.Errorf("the rights of the manager (-want +got):\n%s", diff)
	}
	if binding := decode[rbacv1.RoleBinding](t, with, "RoleBinding", "\n  name: kubeop-manager\n"); binding.Namespace != "kubeop-system" || binding.RoleRef.Name != "kubeop-manager" || len(binding.Subjects) != 1 {
		t.Errorf("the rights are given by %+v", binding)
	}
	if policy := decode[networkingv1.NetworkPolicy](t, with, "NetworkPolicy"); len(policy.Spec.Egress) != 3 || policy.Spec.Egress[1].Ports[0].Port.IntValue() != 3000 {
		t.Errorf("it may connect to %+v", policy.Spec.Egress)
	}
}

// TestTheChartLetsTheManagerReadLogsOnlyIfAValueSaysSo: RBAC cannot leave out the pods of others.
func TestTheChartLetsTheManagerReadLogsOnlyIfAValueSaysSo(t *testing.T) {
	rules := decode[rbacv1.ClusterRole](t, render(t, "manager: {enabled: true, plainHTTP: true, logs: {enabled: true}}"), "ClusterRole").Rules
	want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}, {APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get"}}}
	if diff := gocmp.Diff(want, rules[len(rules)-2:]); diff != "" {
		t.Errorf("the rights of the manager (-want +got):\n%s", diff)
	}
	if without := render(t, "manager: {enabled: true, plainHTTP: true}"); strings.Contains(without, "pods") {
		t.Errorf("without the setting:\n%s", without)
	}
}

// TestTheChartLetsTheManagerSendToWebhooks: only if it is enabled, and has keys that encrypt their secrets.
func TestTheChartLetsTheManagerSendToWebhooks(t *testing.T) {
	const values = "manager: {enabled: true, plainHTTP: true, keySecret: keys, webhooks: {enabled: true, ports: [443, 8443], allowedAddresses: [10.1.0.0/16, 10.2.0.1]}}"
	rendered := render(t, values)
	for _, v := range decode[appsv1.Deployment](t, rendered, "Deployment").Spec.Template.Spec.Containers[0].Env {
		t.Setenv(v.Name, v.Value)
	}
	c, err := config.LoadManager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if allowed, err := c.AllowedReceivers(); err != nil || len(allowed) != 2 || !c.Webhooks || c.WebhookPlainHTTP {
		t.Errorf("%v: the manager reads %+v", err, c.Receivers)
	}
	if egress := decode[networkingv1.NetworkPolicy](t, rendered, "NetworkPolicy").Spec.Egress; len(egress) != 3 || len(egress[1].Ports) != 2 {
		t.Errorf("the manager may connect to %+v", egress)
	}
	if rules := decode[rbacv1.ClusterRole](t, rendered, "ClusterRole").Rules; !slices.Contains(rules[0].Resources, "hostnameclaims") {
		t.Errorf("the rights of the manager are %v", rules)
	}
	if without := render(t, strings.Replace(values, "keySecret: keys, ", "", 1)); !strings.Contains(without, "needs manager.keySecret") {
		t.Errorf("without keys:\n%s", without)
	}
	if off := render(t, "manager: {enabled: true, plainHTTP: true}"); strings.Contains(off, "WEBHOOK") {
		t.Errorf("without the setting:\n%s", off)
	}
}

// TestTheChartLetsTheManagerMeasureOnlyIfAValueSaysSo, and the manager measures under the name that the chart sets.
func TestTheChartLetsTheManagerMeasureOnlyIfAValueSaysSo(t *testing.T) {
	rendered := render(t, "manager: {enabled: true, plainHTTP: true, usage: {enabled: true, cluster: east}}")
	rules := decode[rbacv1.ClusterRole](t, rendered, "ClusterRole").Rules
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "persistentvolumeclaims", "services"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	}
	if diff := gocmp.Diff(want, rules[1:]); diff != "" {
		t.Errorf("the rights of the manager (-want +got):\n%s", diff)
	}
	for _, v := range decode[appsv1.Deployment](t, rendered, "Deployment").Spec.Template.Spec.Containers[0].Env {
		t.Setenv(v.Name, v.Value)
	}
	if c, err := config.LoadManager(t.Context()); err != nil || c.UsageCluster != "east" {
		t.Errorf("%v: the manager reads %+v", err, c)
	}
	if without := render(t, "manager: {enabled: true, plainHTTP: true}"); strings.Contains(without, "USAGE_CLUSTER") || strings.Contains(without, "persistentvolumeclaims") {
		t.Errorf("without the setting:\n%s", without)
	}
}

// TestTheChartLetsTheManagerGiveKubeconfigs: only if it is enabled, knows where people reach it and the API server, and the policies limit what they may.
func TestTheChartLetsTheManagerGiveKubeconfigs(t *testing.T) {
	const values = "manager: {enabled: true, plainHTTP: true, url: 'https://kubeop.example.com', kubeconfigs: {enabled: true}, kubernetes: {url: 'https://k.example.com:6443'}}"
	rendered := render(t, values)
	spec := decode[appsv1.Deployment](t, rendered, "Deployment").Spec.Template.Spec
	for _, v := range spec.Containers[0].Env {
		t.Setenv(v.Name, v.Value)
	}
	c, err := config.LoadManager(t.Context())
	if err != nil || c.KubeconfigServer != "https://k.example.com:6443" || c.KubeconfigCAFile != "/kubernetes/ca.crt" {
		t.Errorf("%v: the manager reads %+v", err, c.Kubeconfigs)
	}
	mounted := func(v corev1.Volume) bool {
		return v.Name == "kubernetes" && v.ConfigMap.Name == "kube-root-ca.crt"
	}
	if !slices.ContainsFunc(spec.Volumes, mounted) {
		t.Errorf("the volumes are %+v", spec.Volumes)
	}
	_, role, _ := strings.Cut(rendered, "\n  name: kubeop-manager-kubeconfigs\n")
	if role, _, _ = strings.Cut(role, "\n---\n"); !strings.Contains(role, "resourceNames: [kubeop-access-view, kubeop-access-edit, kubeop-access-admin]") || strings.Contains(role, "get") || strings.Contains(role, "list") {
		t.Errorf("the role is %s", role)
	}
	if public := render(t, strings.Replace(values, "6443'}", "6443', caConfigMap: ''}", 1)); strings.Contains(public, "KUBECONFIG_CA_FILE") || strings.Contains(public, "name: kubernetes") {
		t.Errorf("with a public certificate:\n%s", public)
	}
	for text, want := range map[string]string{
		strings.Replace(values, "url: 'https://kubeop.example.com', ", "", 1):                 "needs manager.url",
		strings.Replace(values, "kubernetes: {url: 'https://k.example.com:6443'}", "", 1):     "needs manager.kubernetes.url",
		strings.Replace(values, "https://k.example.com:6443", "http://k.example.com:6443", 1): "manager/kubernetes/url",
		values + "\nadmissionPolicies: {enabled: false}":                                      "needs admissionPolicies.enabled",
	} {
		if got := render(t, text); !strings.Contains(got, want) {
			t.Errorf("%s:\n%.500s", text, got)
		}
	}
	if off := render(t, "manager: {enabled: true, plainHTTP: true}"); strings.Contains(off, "KUBECONFIG") || strings.Contains(off, "serviceaccounts") {
		t.Errorf("without the setting:\n%s", off)
	}
}

// TestTheCacheVolumeIsLargerThanItsLimits: a pod whose folder is too large would be evicted.
func TestTheCacheVolumeIsLargerThanItsLimits(t *testing.T) {
	limits := openGit(t.TempDir(), nil).Disk.Limits
	deployment := decode[appsv1.Deployment](t, render(t, "manager: {enabled: true, plainHTTP: true}"), "Deployment")
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.Name == "cache" && volume.EmptyDir.SizeLimit.Value() > limits.Total && limits.Total >= limits.Bytes && limits.Bytes > 0 {
			return
		}
	}
	t.Errorf("%+v do not fit", limits)
}

func TestTheChartNeedsTLSOrPlainHTTP(t *testing.T) {
	for name, c := range map[string]struct{ manager, want string }{
		"nothing":           {`{enabled: true}`, "manager.enabled needs manager.tlsSecret"},
		"plain HTTP":        {`{enabled: true, plainHTTP: true}`, "name: http-api, port: 8080"},
		"both":              {`{enabled: true, plainHTTP: true, tlsSecret: x}`, "not both"},
		"another grace":     {`{enabled: true, tlsSecret: x, extraEnv: [{name: DRAIN_DELAY, value: 1m}]}`, "set manager.drainDelaySeconds"},
		"no grace":          {`{enabled: true, tlsSecret: x, gracefulTimeoutSeconds: 15}`, "gracefulTimeoutSeconds"},
		"a misspelt value":  {`{enabled: true, tlsSecret: x, plainHttp: true}`, "plainHttp"},
		"another address":   {`{enabled: true, tlsSecret: x, url: "https://kubeop.example.com"}`, `{name: PUBLIC_URL, value: "https://kubeop.example.com"}`},
		"a slash too many":  {`{enabled: true, tlsSecret: x, url: "https://kubeop.example.com/"}`, "/manager/url"},
		"it is not enabled": {`{enabled: false}`, "could not find template"},
	} {
		t.Run(name, func(t *testing.T) {
			if out := render(t, "manager: "+c.manager); !strings.Contains(out, c.want) {
				t.Errorf("want %q in\n%s", c.want, out)
			}
		})
	}
}

// TestTheChartSaysHowPeopleSignIn compares what the chart sets with what the manager reads.
func TestTheChartSaysHowPeopleSignIn(t *testing.T) {
	rendered := render(t, `
manager:
  enabled: true
  plainHTTP: true
  oidc:
    issuers:
    - {url: "https://a.example.com", audience: kubeop, usernamePrefix: "a:"}
    - {url: "https://b.example.com", audience: other, usernameClaim: email, usernamePrefix: "b:", groupsClaim: groups, groupsPrefix: "b:", caConfigMap: issuers}
    admins: {users: ["a:root"], groups: ["CN=sre,OU=b"]}
    ports: [8443]
`)
	pod := decode[appsv1.Deployment](t, rendered, "Deployment").Spec.Template.Spec
	for _, v := range pod.Containers[0].Env {
		t.Setenv(v.Name, v.Value)
	}
	c, err := config.LoadManager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := config.OIDC{Issuers: []config.Issuer{
		{URL: "https://a.example.com", Audience: "kubeop", UsernameClaim: "sub", UsernamePrefix: "a:"},
		{URL: "https://b.example.com", Audience: "other", UsernameClaim: "email", UsernamePrefix: "b:", GroupsClaim: "groups", GroupsPrefix: "b:", CAFile: "/issuers/1/ca.crt"},
	}}
	want.Admins.Users, want.Admins.Groups = []string{"a:root"}, []string{"CN=sre,OU=b"}
	if diff := gocmp.Diff(want, c.OIDC); diff != "" {
		t.Errorf("-want +read:\n%s", diff)
	}
	mounted := slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "issuer-1" && m.MountPath == "/issuers/1" })
	if !mounted || !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "issuer-1" && v.ConfigMap.Name == "issuers" }) {
		t.Errorf("the certificates are not there: %+v, %+v", pod.Volumes, pod.Containers[0].VolumeMounts)
	}
	if policy := decode[networkingv1.NetworkPolicy](t, rendered, "NetworkPolicy"); len(policy.Spec.Egress) != 3 || policy.Spec.Egress[1].Ports[0].Port.IntValue() != 8443 {
		t.Errorf("it may connect to %+v", policy.Spec.Egress)
	}
}

// TestTheChartRunsManagersOnADatabase compares what the chart sets with one manager and with several.
func TestTheChartRunsManagersOnADatabase(t *testing.T) {
	one := render(t, "manager: {enabled: true, plainHTTP: true}")
	if file := decode[appsv1.Deployment](t, one, "Deployment"); *file.Spec.Replicas != 1 || file.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || !strings.Contains(one, "kind: PersistentVolumeClaim\n") || strings.Contains(one, "kind: PodDisruptionBudget\n") {
		t.Errorf("with a file:\n%s", one)
	}
	many := render(t, "manager: {enabled: true, plainHTTP: true, replicas: 3, database: {existingSecret: db, key: uri, caConfigMap: db-ca, ports: [6432]}}")
	deployment := decode[appsv1.Deployment](t, many, "Deployment")
	container := deployment.Spec.Template.Spec.Containers[0]
	at := slices.IndexFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == "DATABASE_URL" })
	if *deployment.Spec.Replicas != 3 || deployment.Spec.Strategy.Type != "" || at < 0 || container.Env[at].ValueFrom.SecretKeyRef.Name != "db" || container.Env[at].ValueFrom.SecretKeyRef.Key != "uri" {
		t.Errorf("with a database: %+v", deployment.Spec)
	}
	trusted := slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == "PGSSLROOTCERT" && v.Value == "/database/ca.crt" })
	mounted := slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.Name == "database" && m.MountPath == "/database" && m.SubPath == ""
	})
	if !trusted || !mounted || !slices.ContainsFunc(deployment.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == "database" && v.ConfigMap != nil && v.ConfigMap.Name == "db-ca"
	}) {
		t.Errorf("the authority of the database is not there: %+v", deployment.Spec.Template.Spec)
	}
	if strings.Contains(many, "kind: PersistentVolumeClaim\n") || strings.Contains(many, "/data}") || !strings.Contains(many, "kind: PodDisruptionBudget\n") {
		t.Errorf("with a database:\n%s", many)
	}
	if policy := decode[networkingv1.NetworkPolicy](t, many, "NetworkPolicy"); len(policy.Spec.Egress) != 3 || policy.Spec.Egress[1].Ports[0].Port.IntValue() != 6432 {
		t.Errorf("they may connect to %+v", policy.Spec.Egress)
	}
	for values, want := range map[string]string{"replicas: 2": "manager.database.existingSecret", "extraEnv: [{name: DATABASE_URL, value: x}]": "set manager.database.existingSecret"} {
		if out := render(t, "manager: {enabled: true, plainHTTP: true, "+values+"}"); !strings.Contains(out, want) {
			t.Errorf("%s: want %q in\n%s", values, want, out)
		}
	}
}
