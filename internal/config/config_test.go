package config

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sethvargo/go-envconfig"
)

func TestLoadSetsTheDefaultsOfTheOperator(t *testing.T) {
	got, err := load(t.Context(), envconfig.MapLookuper(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := &Operator{
		Logging:      Logging{LogLevel: "info", LogFormat: "json"},
		Servers:      Servers{MetricsAddr: ":8080", HealthAddr: ":8081", HookAddr: ":9292", MetricsSecure: true},
		Process:      Process{DataDir: "/data", Namespace: "kubeop-system", Concurrency: 10, HelmWorkers: 8, GCPercent: 30, GracefulTimeout: 10 * time.Minute},
		Election:     Election{LeaderElect: true, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Minute, RetryPeriod: 4 * time.Second},
		Evaluation:   Evaluation{EvaluateProcesses: 2, EvaluateMemoryMiB: 256, EvaluateCPU: 10 * time.Second, EvaluateTimeout: 30 * time.Second},
		Network:      Network{FluxArtifactHosts: []string{"source-controller.*.svc", "source-controller.*.svc.cluster.local"}},
		Tenants:      Tenants{ClusterNetworkPolicies: true},
		PlatformApps: "Off",
		Platform:     Platform{Interval: time.Minute},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestLoadRefusesWrongSettingsOfTheOperator(t *testing.T) {
	cases := map[string]struct {
		env  map[string]string
		want string
	}{
		"a platform repository":        {env: map[string]string{"PLATFORM_URL": "https://git.example.com/platform", "PLATFORM_INTERVAL": "5s"}},
		"apps of the platform":         {env: map[string]string{"PLATFORM_APPS": "ClusterAdmin"}},
		"unknown apps of the platform": {env: map[string]string{"PLATFORM_APPS": "on"}, want: `PLATFORM_APPS is "on"; it may be Off, Namespaced or ClusterAdmin`},
		"an unknown level":             {env: map[string]string{"LOG_LEVEL": "loud"}, want: `LOG_LEVEL is "loud"; it may be debug, info or error`},
		"limits of tenants":            {env: map[string]string{"TENANT_LIMITS": `{"projects": 7, "treeBytes": "1Mi"}`}},
		"an unknown limit":             {env: map[string]string{"TENANT_LIMITS": `{"project": 7}`}, want: `TENANT_LIMITS is {"project": 7}; it may be limits as in spec.limits of a Tenant, in JSON: error unmarshaling JSON: while decoding JSON: json: unknown field "project"`},
		"a limit that is no size":      {env: map[string]string{"TENANT_LIMITS": `{"treeBytes": "much"}`}, want: `TENANT_LIMITS is {"treeBytes": "much"}; it may be limits as in spec.limits of a Tenant, in JSON: error unmarshaling JSON: while decoding JSON: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`},
		"a Gateway":                    {env: map[string]string{"GATEWAY": "infra/public/https", "PLAIN_REGISTRIES": "a:5000,b"}},
		"an ingress class":             {env: map[string]string{"INGRESS_CLASS": "nginx.public"}},
		"an ingress class of no name":  {env: map[string]string{"INGRESS_CLASS": "a/b"}, want: `INGRESS_CLASS is "a/b"; it may be the name of an IngressClass`},
		"an ingress class and Gateway": {env: map[string]string{"INGRESS_CLASS": "nginx", "GATEWAY": "infra/public"}, want: `INGRESS_CLASS is "nginx" and GATEWAY is "infra/public"; set one: hosts are served by Ingresses or by a Gateway`},
		"a Gateway without namespace":  {env: map[string]string{"GATEWAY": "public"}, want: `GATEWAY is "public"; it may be namespace/name or namespace/name/section`},
		"an unknown format":            {env: map[string]string{"LOG_FORMAT": "xml"}, want: `LOG_FORMAT is "xml"; it may be json or console`},
		"no worker":                    {env: map[string]string{"CONCURRENCY": "0"}, want: "CONCURRENCY is 0; it may be 1 to 1000"},
		"garbage collection too often": {env: map[string]string{"GOGC": "1"}, want: "GOGC is 1; it may be 10 to 1000"},
		"no Helm worker":               {env: map[string]string{"HELM_WORKERS": "0"}, want: "HELM_WORKERS is 0; it may be 1 to 100"},
		"nothing evaluates":            {env: map[string]string{"EVALUATE_PROCESSES": "0"}, want: "EVALUATE_PROCESSES is 0; it may be 1 to 64"},
		"evaluation without memory":    {env: map[string]string{"EVALUATE_MEMORY_MIB": "1"}, want: "EVALUATE_MEMORY_MIB is 1; it may be 64 to 16384"},
		"more processor time than any": {env: map[string]string{"EVALUATE_CPU": "31s"}, want: "EVALUATE_CPU is 31s; it must be at least 1s and at most EVALUATE_TIMEOUT"},
		"evaluation that never ends":   {env: map[string]string{"EVALUATE_TIMEOUT": "1h"}, want: "EVALUATE_TIMEOUT is 1h0m0s; it may be 10m at most"},
		"a poll without an interval":   {env: map[string]string{"PLATFORM_INTERVAL": "0s"}, want: "PLATFORM_INTERVAL is 0s; it must be at least 1s"},
		"a poll below the minimum":     {env: map[string]string{"PLATFORM_INTERVAL": "999ms"}, want: "PLATFORM_INTERVAL is 999ms; it must be at least 1s"},
		"a stop that does not wait":    {env: map[string]string{"GRACEFUL_TIMEOUT": "0s"}, want: "GRACEFUL_TIMEOUT is 0s; it must be more than 0s and at most 1h"},
		"a stop that never ends":       {env: map[string]string{"GRACEFUL_TIMEOUT": "-1s"}, want: "GRACEFUL_TIMEOUT is -1s; it must be more than 0s and at most 1h"},
		"a stop of an hour":            {env: map[string]string{"GRACEFUL_TIMEOUT": "1h"}},
		"a stop of more":               {env: map[string]string{"GRACEFUL_TIMEOUT": "1h0m1s"}, want: "GRACEFUL_TIMEOUT is 1h0m1s; it must be more than 0s and at most 1h"},
		"a lease of part seconds":      {env: map[string]string{"LEASE_DURATION": "1500ms"}, want: "LEASE_DURATION is 1.5s; it must be whole seconds and at least 1s"},
		"a lease below a second":       {env: map[string]string{"LEASE_DURATION": "1ns"}, want: "LEASE_DURATION is 1ns; it must be whole seconds and at least 1s"},
		"a lease of no time":           {env: map[string]string{"LEASE_DURATION": "0s"}, want: "LEASE_DURATION is 0s; it must be whole seconds and at least 1s"},
		"a deadline within the lease":  {env: map[string]string{"RENEW_DEADLINE": "13s"}, want: "RENEW_DEADLINE is 13s; it must be at least LEASE_DURATION"},
		"a deadline of no time":        {env: map[string]string{"RENEW_DEADLINE": "0s"}, want: "RENEW_DEADLINE is 0s; it must be at least LEASE_DURATION"},
		"a try near the lease's end":   {env: map[string]string{"RETRY_PERIOD": "6s"}, want: "RETRY_PERIOD is 6s; it must be more than 0s and at most a third of LEASE_DURATION"},
		"a retry without a pause":      {env: map[string]string{"RETRY_PERIOD": "0s"}, want: "RETRY_PERIOD is 0s; it must be more than 0s and at most a third of LEASE_DURATION"},
		"the shortest election":        {env: map[string]string{"LEASE_DURATION": "1s", "RENEW_DEADLINE": "1s", "RETRY_PERIOD": "333ms"}},
		"a short election":             {env: map[string]string{"LEASE_DURATION": "3s", "RENEW_DEADLINE": "3s", "RETRY_PERIOD": "1s"}},
		"addresses":                    {env: map[string]string{"ALLOWED_ADDRESSES": "127.0.0.0/8, ::1"}},
		"the cluster's networks":       {env: map[string]string{"CLUSTER_NETWORKS": "10.244.0.0/16, fd00:10::/64"}},
		"a network that is no such":    {env: map[string]string{"CLUSTER_NETWORKS": "10.244.0.0/33"}, want: `CLUSTER_NETWORKS holds "10.244.0.0/33"; it may be addresses and networks such as 10.0.0.5 and 127.0.0.0/8, with commas between them`},
		"a token service":              {env: map[string]string{"TOKEN_SERVICES": "registry.example.com:5050=gitlab.example.com, b=c"}},
		"a token service of nothing":   {env: map[string]string{"TOKEN_SERVICES": "gitlab.example.com"}, want: `TOKEN_SERVICES holds "gitlab.example.com"; it may be pairs such as registry.example.com=gitlab.example.com, each host with or without a port, with commas between them`},
		"a token service as a URL":     {env: map[string]string{"TOKEN_SERVICES": "a=https://b/token"}, want: `TOKEN_SERVICES holds "a=https://b/token"; it may be pairs such as registry.example.com=gitlab.example.com, each host with or without a port, with commas between them`},
		"an address that is no such":   {env: map[string]string{"ALLOWED_ADDRESSES": "::1,localhost"}, want: `ALLOWED_ADDRESSES holds "localhost"; it may be addresses and networks such as 10.0.0.5 and 127.0.0.0/8, with commas between them`},
		"a number that is no such":     {env: map[string]string{"CONCURRENCY": "many"}, want: `reading the environment: Process: Concurrency: strconv.ParseInt: parsing "many": invalid syntax`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := load(t.Context(), envconfig.MapLookuper(c.env))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case c.want != "" && (err == nil || err.Error() != c.want):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestNetworksAndTokenServicesAreAllKept: a list with one entry too few blocks an address, or sends no credentials.
func TestNetworksAndTokenServicesAreAllKept(t *testing.T) {
	c, err := load(t.Context(), envconfig.MapLookuper(map[string]string{
		"ALLOWED_ADDRESSES": "127.0.0.0/8, ::1", "CLUSTER_NETWORKS": "10.244.0.0/16, 10.0.0.5 ,fd00:10::/64", "TOKEN_SERVICES": "registry.example.com:5050=gitlab.example.com, b=c",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string]struct {
		parse func() ([]netip.Prefix, error)
		want  []string
	}{
		"allowed": {c.Allowed, []string{"127.0.0.0/8", "::1/128"}}, "cluster": {c.Cluster, []string{"10.244.0.0/16", "10.0.0.5/32", "fd00:10::/64"}},
	} {
		networks, err := list.parse()
		var got []string
		for _, n := range networks {
			got = append(got, n.String())
		}
		if diff := cmp.Diff(list.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	services, err := c.Tokens()
	if diff := cmp.Diff(map[string]string{"registry.example.com:5050": "gitlab.example.com", "b": "c"}, services); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestNoSettingAllowsNoAddress(t *testing.T) {
	c, err := load(t.Context(), envconfig.MapLookuper(nil))
	if err != nil {
		t.Fatal(err)
	}
	if allowed, err := c.Allowed(); err != nil || len(allowed) != 0 {
		t.Errorf("got %v, %v", allowed, err)
	}
}
