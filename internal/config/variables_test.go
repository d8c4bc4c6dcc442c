package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sethvargo/go-envconfig"
)

// TestEachVariableOfTheOperatorSetsItsField. The chart and administrators know them by these names.
func TestEachVariableOfTheOperatorSetsItsField(t *testing.T) {
	want := &Operator{
		Logging: Logging{LogLevel: "debug", LogFormat: "console"},
		Servers: Servers{MetricsAddr: ":1", HealthAddr: ":2", HookAddr: ":3", MetricsCertDir: "/certs", PprofAddr: ":4"},
		Process: Process{DataDir: "/d", Namespace: "ns", ClusterName: "here", Deployment: "dep", Service: "svc", Concurrency: 2, HelmWorkers: 3, GCPercent: 40, GracefulTimeout: time.Minute,
			FlowControl: true, OwnerRequests: true},
		Election:   Election{LeaseDuration: 30 * time.Second, RenewDeadline: time.Minute, RetryPeriod: 2 * time.Second},
		Evaluation: Evaluation{EvaluateProcesses: 4, EvaluateMemoryMiB: 512, EvaluateCPU: 20 * time.Second, EvaluateTimeout: time.Minute},
		Tenants:    Tenants{TenantLimits: "{}", IngressNamespace: "in", MonitoringNamespace: "use=monitoring", IngressClass: "nginx"},
		Network: Network{PlainRegistries: []string{"a:5000", "b"}, TrustedRoot: "root", AllowedAddresses: []string{"::1"}, ClusterNetworks: []string{"10.0.0.0/8"},
			TokenServices: []string{"a=b"}, FluxArtifactHosts: []string{"source"}},
		PlatformApps: "Namespaced",
		Platform: Platform{URL: "https://git", Branch: "main", Path: "sub", Secret: "s", HookSecret: "h", Interval: 2 * time.Minute,
			VerifySecret: "v", History: "Any"},
	}
	for name, value := range map[string]string{
		"LOG_LEVEL": "debug", "LOG_FORMAT": "console", "METRICS_ADDR": ":1", "HEALTH_ADDR": ":2", "HOOK_ADDR": ":3", "METRICS_SECURE": "false", "METRICS_CERT_DIR": "/certs", "PPROF_ADDR": ":4",
		"DATA_DIR": "/d", "OPERATOR_NAMESPACE": "ns", "CLUSTER_NAME": "here", "OPERATOR_DEPLOYMENT": "dep", "OPERATOR_SERVICE": "svc", "CONCURRENCY": "2", "HELM_WORKERS": "3", "GOGC": "40", "GRACEFUL_TIMEOUT": "1m",
		"FLOW_CONTROL": "true", "OWNER_REQUESTS": "true", "LEADER_ELECT": "false", "LEASE_DURATION": "30s", "RENEW_DEADLINE": "1m", "RETRY_PERIOD": "2s", "EVALUATE_PROCESSES": "4",
		"EVALUATE_MEMORY_MIB": "512", "EVALUATE_CPU": "20s", "EVALUATE_TIMEOUT": "1m", "TENANT_LIMITS": "{}", "INGRESS_NAMESPACE": "in", "MONITORING_NAMESPACE": "use=monitoring",
		"CLUSTER_NETWORK_POLICIES": "false", "GATEWAY": "", "INGRESS_CLASS": "nginx", "PLAIN_REGISTRIES": "a:5000,b", "SIGSTORE_TRUSTED_ROOT": "root", "ALLOWED_ADDRESSES": "::1",
		"CLUSTER_NETWORKS": "10.0.0.0/8", "TOKEN_SERVICES": "a=b", "FLUX_ARTIFACT_HOSTS": "source", "PLATFORM_APPS": "Namespaced", "PLATFORM_URL": "https://git", "PLATFORM_BRANCH": "main",
		"PLATFORM_PATH": "sub", "PLATFORM_SECRET": "s", "PLATFORM_HOOK_SECRET": "h", "PLATFORM_INTERVAL": "2m", "PLATFORM_VERIFY_SECRET": "v", "PLATFORM_HISTORY": "Any",
	} {
		t.Setenv(name, value)
	}
	got, err := Load(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

func TestEachVariableOfTheManagerSetsItsField(t *testing.T) {
	want := &Manager{
		Logging: Logging{LogLevel: "error", LogFormat: "console"}, APIAddr: ":1", HealthAddr: ":2", TLSCertDir: "/certs", DataDir: "/d", Namespace: "ns", AllowedAddresses: []string{"::1"},
		RequestsPerSecond: 1.5, Burst: 2, TrustedProxies: []string{"10.0.0.1"}, DrainDelay: time.Second, GracefulTimeout: time.Minute,
		Storage: Storage{DatabaseURL: "postgres://x", CacheDir: "/cache"}, Signing: Signing{KeyFile: "/keys", PublicURL: "https://kubeop.example.com/api"},
		Optional: Optional{
			Receivers:   Receivers{Webhooks: true, WebhookAddresses: []string{"10.0.0.5"}, WebhookPlainHTTP: true},
			Kubeconfigs: Kubeconfigs{KubeconfigServer: "https://kubernetes.example.com:6443", KubeconfigCAFile: "/ca.crt"},
		},
	}
	for name, value := range map[string]string{
		"LOG_LEVEL": "error", "LOG_FORMAT": "console", "API_ADDR": ":1", "HEALTH_ADDR": ":2", "TLS_CERT_DIR": "/certs", "DATA_DIR": "/d", "OPERATOR_NAMESPACE": "ns", "ALLOWED_ADDRESSES": "::1",
		"REQUESTS_PER_SECOND": "1.5", "REQUEST_BURST": "2", "TRUSTED_PROXIES": "10.0.0.1", "DRAIN_DELAY": "1s", "GRACEFUL_TIMEOUT": "1m", "DATABASE_URL": "postgres://x", "CACHE_DIR": "/cache",
		"KEY_FILE": "/keys", "PUBLIC_URL": "https://kubeop.example.com/api", "OIDC": "", "WEBHOOKS": "true", "WEBHOOK_ALLOWED_ADDRESSES": "10.0.0.5", "WEBHOOK_PLAIN_HTTP": "true",
		"KUBECONFIG_SERVER": "https://kubernetes.example.com:6443", "KUBECONFIG_CA_FILE": "/ca.crt",
	} {
		t.Setenv(name, value)
	}
	got, err := LoadManager(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("%v, -want +got:\n%s", err, diff)
	}
	allowed, _ := got.Allowed()
	receivers, _ := got.AllowedReceivers()
	proxies, _ := got.Proxies()
	if len(allowed) != 1 || allowed[0].String() != "::1/128" || len(receivers) != 1 || receivers[0].String() != "10.0.0.5/32" || len(proxies) != 1 || proxies[0].String() != "10.0.0.1/32" {
		t.Errorf("addresses %v, receivers %v, proxies %v", allowed, receivers, proxies)
	}
}

func TestEachVariableOfTheCommandLineSetsItsField(t *testing.T) {
	for name, value := range map[string]string{"KUBEOP_SERVER": "https://s", "KUBEOP_SERVER_CA": "/ca", "KUBEOP_TOKEN": "t", "KUBEOP_TOKEN_FILE": "/t"} {
		t.Setenv(name, value)
	}
	got, err := LoadCommandLine()
	if diff := cmp.Diff(CommandLine{Server: "https://s", ServerCA: "/ca", Token: "t", TokenFile: "/t"}, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// TestSettingsOfTheManagerAreAllowedUpToTheirBounds, and not beyond.
func TestSettingsOfTheManagerAreAllowedUpToTheirBounds(t *testing.T) {
	for name, c := range map[string]struct{ allowed, refused []string }{
		"REQUESTS_PER_SECOND": {[]string{"0.001", "1000000"}, []string{"-1", "0", "1000000.5", "Inf"}},
		"REQUEST_BURST":       {[]string{"1", "1000000"}, []string{"0", "1000001"}},
		"DRAIN_DELAY":         {[]string{"0s", "5m"}, []string{"-1ns", "5m0.000000001s"}},
		"GRACEFUL_TIMEOUT":    {[]string{"15.000000001s", "5m"}, []string{"15s", "5m0.000000001s"}},
		"TRUSTED_PROXIES":     {[]string{"128.0.0.0/1", "::/1", "10.0.0.1, fd00::/8"}, []string{"0.0.0.0/0", "10.0.0.1,::/0", "::ffff:0:0/96"}},
		"LOG_LEVEL":           {[]string{"debug", "info", "error"}, []string{"warn", "Info"}},
		"LOG_FORMAT":          {[]string{"json", "console"}, []string{"text"}},
		"PUBLIC_URL": {[]string{"https://a", "http://a:8080", "https://a/b"},
			[]string{"ftp://a", "https:///b", "https://a?x=1", "https://a#x", "https://user@a", "https://a/", "https://a b", "//a"}},
	} {
		for i, value := range append(append([]string{}, c.allowed...), c.refused...) {
			_, err := loadManager(t.Context(), envconfig.MapLookuper(map[string]string{name: value}))
			if want := i < len(c.allowed); (err == nil) != want || err != nil && !strings.Contains(err.Error(), name+" ") {
				t.Errorf("%s=%s: %v, want it allowed: %t", name, value, err, want)
			}
		}
	}
}

// TestThePlatformsChoicesAreTheseAlone.
func TestThePlatformsChoicesAreTheseAlone(t *testing.T) {
	for name, c := range map[string]struct{ allowed, refused []string }{
		"PLATFORM_HISTORY": {[]string{"", "FastForward", "Any"}, []string{"any", "Rewritten"}},
		"PLATFORM_APPS":    {[]string{"Off", "Namespaced", "ClusterAdmin"}, []string{"off"}},
		"GATEWAY":          {[]string{"", "infra/public", "infra/public.x/https"}, []string{"a/b/c/d", "/b", "a/", "A/b", "a/b/"}},
		"TOKEN_SERVICES":   {[]string{"a=b", "a:1=b:2"}, []string{"a=", "=b", "a=b:", "a=B"}},
	} {
		for i, value := range append(append([]string{}, c.allowed...), c.refused...) {
			_, err := load(t.Context(), envconfig.MapLookuper(map[string]string{name: value}))
			if want := i < len(c.allowed); (err == nil) != want || err != nil && !strings.Contains(err.Error(), name+" ") {
				t.Errorf("%s=%s: %v, want it allowed: %t", name, value, err, want)
			}
		}
	}
}

// TestAnIssuerHasDefaults, and what it states stays.
func TestAnIssuerHasDefaults(t *testing.T) {
	c, err := loadManager(t.Context(), envconfig.MapLookuper(map[string]string{"OIDC": `{"issuers":[{"url":"https://a","audience":"x","usernamePrefix":"a:"},
		{"url":"https://b","audience":"y","usernamePrefix":"b:","usernameClaim":"email","groupsClaim":"g","groupsPrefix":"b:","caFile":"/ca"}],"admins":{"users":["a:u"],"groups":["b:g"]}}`}))
	if err != nil {
		t.Fatal(err)
	}
	want := OIDC{Issuers: []Issuer{
		{URL: "https://a", Audience: "x", UsernameClaim: "sub", UsernamePrefix: "a:"},
		{URL: "https://b", Audience: "y", UsernameClaim: "email", UsernamePrefix: "b:", GroupsClaim: "g", GroupsPrefix: "b:", CAFile: "/ca"},
	}}
	want.Admins.Users, want.Admins.Groups = []string{"a:u"}, []string{"b:g"}
	if diff := cmp.Diff(want, c.OIDC); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := Secret("").String(); got != "" {
		t.Errorf("a secret that is not set is %q", got)
	}
}
