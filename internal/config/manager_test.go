package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sethvargo/go-envconfig"
)

func TestASecretIsHidden(t *testing.T) {
	c := Storage{DatabaseURL: "S3CR3T"}
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, c), fmt.Sprintf(verb, &c), fmt.Sprintf(verb, c.DatabaseURL))
	}
	for _, text := range texts {
		if strings.Contains(text, "S3CR3T") || strings.Contains(text, fmt.Sprintf("%x", "S3CR3T")) || !strings.Contains(text, "(hidden)") {
			t.Errorf("it is printed as %s", text)
		}
	}
}

func TestLoadManagerSetsDefaultsAndRefusesWrongSettings(t *testing.T) {
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
		"webhooks without keys":   {"WEBHOOKS", "true", "WEBHOOKS needs KEY_FILE, by which the manager encrypts the secrets of webhooks"},
		"a receiver by its name":  {"WEBHOOK_ALLOWED_ADDRESSES", "hooks", `WEBHOOK_ALLOWED_ADDRESSES holds "hooks"; it may be addresses and networks such as 10.0.0.5 and 127.0.0.0/8, with commas between them`},
		"a path of Kubernetes":    {"KUBECONFIG_SERVER", "https://k.example.com/x", `KUBECONFIG_SERVER is "https://k.example.com/x"; it may be a URL such as https://kubernetes.example.com:6443, without a path`},
		"Kubernetes without TLS":  {"KUBECONFIG_SERVER", "http://k.example.com", `KUBECONFIG_SERVER is "http://k.example.com"; it may be a URL such as https://kubernetes.example.com:6443, without a path`},
		"kubeconfigs of no URL":   {"KUBECONFIG_SERVER", "https://k.example.com", "KUBECONFIG_SERVER needs PUBLIC_URL, at which kubeconfigs ask for tokens"},
		"an address by its name":  {"ALLOWED_ADDRESSES", "git", `ALLOWED_ADDRESSES holds "git"; it may be addresses and networks such as 10.0.0.5 and 127.0.0.0/8, with commas between them`},
		"a URL with a slash":      {"PUBLIC_URL", "https://kubeop.example.com/", `PUBLIC_URL is "https://kubeop.example.com/"; it may be a URL such as https://kubeop.example.com, without a slash at its end`},
		"a name for a URL":        {"PUBLIC_URL", "kubeop.example.com", `PUBLIC_URL is "kubeop.example.com"; it may be a URL such as https://kubeop.example.com, without a slash at its end`},
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

func TestIssuersThatCouldTakeEachOthersNamesAreRefused(t *testing.T) {
	const a, b = `{"url":"https://a","audience":"x","usernamePrefix":"a:","groupsClaim":"g","groupsPrefix":"a:"}`, `{"url":"https://b","audience":"x","usernamePrefix":"b:","groupsClaim":"g","groupsPrefix":"b:"}`
	for name, c := range map[string]struct{ oidc, want string }{
		"two":                         {`{"issuers":[` + a + `,` + b + `],"admins":{"users":["a:root"]}}`, ""},
		"one without a prefix":        {`{"issuers":[{"url":"https://a/realms/x","audience":"x"}]}`, ""},
		"none":                        {``, ""},
		"no JSON":                     {`https://a`, "it may be JSON"},
		"a misspelt field":            {`{"issuers":[{"url":"https://a","clientID":"x"}]}`, "clientID"},
		"an issuer twice":             {`{"issuers":[` + a + `,` + a + `]}`, "https://a twice"},
		"names with one prefix":       {`{"issuers":[` + a + `,` + strings.Replace(b, `"usernamePrefix":"b:"`, `"usernamePrefix":"a:"`, 1) + `]}`, "usernamePrefix"},
		"a prefix of the other":       {`{"issuers":[` + a + `,` + strings.Replace(b, `"usernamePrefix":"b:"`, `"usernamePrefix":"a:b:"`, 1) + `]}`, "usernamePrefix"},
		"names without a prefix":      {`{"issuers":[` + a + `,` + strings.Replace(b, `"usernamePrefix":"b:"`, `"usernamePrefix":""`, 1) + `]}`, "usernamePrefix"},
		"groups without a prefix":     {`{"issuers":[` + a + `,` + strings.Replace(b, `"groupsPrefix":"b:"`, `"groupsPrefix":""`, 1) + `]}`, "groupsPrefix"},
		"plain HTTP":                  {`{"issuers":[{"url":"http://a","audience":"x"}]}`, "must be an https URL"},
		"a query":                     {`{"issuers":[{"url":"https://a?x=1","audience":"x"}]}`, "must be an https URL"},
		"a password":                  {`{"issuers":[{"url":"https://u:p@a","audience":"x"}]}`, "must be an https URL"},
		"no audience":                 {`{"issuers":[{"url":"https://a"}]}`, "without an audience"},
		"the manager itself":          {`{"issuers":[{"url":"https://kubeop.example.com","audience":"x"}]}`, "PUBLIC_URL"},
		"a group of Kubernetes":       {`{"issuers":[` + a + `],"admins":{"groups":["system:masters"]}}`, "system:masters"},
		"an administrator of no name": {`{"admins":{"users":[""]}}`, "the administrator"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadManager(t.Context(), envconfig.MapLookuper(map[string]string{"OIDC": c.oidc, "PUBLIC_URL": "https://kubeop.example.com"}))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
