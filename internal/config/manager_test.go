package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sethvargo/go-envconfig"
)

func TestLoadManager(t *testing.T) {
	got, err := loadManager(t.Context(), envconfig.MapLookuper(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := &Manager{
		Logging: Logging{LogLevel: "info", LogFormat: "json"}, APIAddr: ":8443", HealthAddr: ":8081", DataDir: "/data", Namespace: "kubeop-system",
		RequestsPerSecond: 50, Burst: 200, DrainDelay: 5 * time.Second, GracefulTimeout: 20 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	for name, c := range map[string]struct{ variable, value, want string }{
		"an unknown level":        {"LOG_LEVEL", "loud", `LOG_LEVEL is "loud"; it may be debug, info or error`},
		"no requests":             {"REQUESTS_PER_SECOND", "0", "REQUESTS_PER_SECOND is 0; it must be more than 0 and at most 1000000"},
		"requests without number": {"REQUESTS_PER_SECOND", "NaN", "REQUESTS_PER_SECOND is NaN; it must be more than 0 and at most 1000000"},
		"no burst":                {"REQUEST_BURST", "0", "REQUEST_BURST is 0; it may be 1 to 1000000"},
		"a proxy by its name":     {"TRUSTED_PROXIES", "ingress", `TRUSTED_PROXIES holds "ingress"; it may be addresses and networks such as 10.0.0.5 and 127.0.0.0/8, with commas between them`},
		"everyone is a proxy":     {"TRUSTED_PROXIES", "10.0.0.5, ::/0", "TRUSTED_PROXIES holds ::/0; whoever is a proxy names the caller, so it may not be everyone"},
		"IPv4 as IPv6":            {"TRUSTED_PROXIES", "::ffff:10.0.0.5", "TRUSTED_PROXIES holds ::ffff:10.0.0.5/128, an IPv4 address in the form of IPv6, which no connection has; write it as IPv4"},
		"an address by its name":  {"ALLOWED_ADDRESSES", "git", `ALLOWED_ADDRESSES holds "git"; it may be addresses and networks such as 10.0.0.5 and 127.0.0.0/8, with commas between them`},
		"a negative drain":        {"DRAIN_DELAY", "-1s", "DRAIN_DELAY is -1s; it may be 0s to 5m"},
		"a stop without patience": {"GRACEFUL_TIMEOUT", "15s", "GRACEFUL_TIMEOUT is 15s; it must be more than the 15s that an operation may take, and at most 5m"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := loadManager(t.Context(), envconfig.MapLookuper(map[string]string{c.variable: c.value})); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
