package transport

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestTheRealmOfAChallengeIsTheTokenService(t *testing.T) {
	for name, tc := range map[string]struct {
		status    int
		challenge string
		want      string
	}{
		"the usual one":         {401, `Bearer realm="https://auth.example/token",service="r"`, "https://auth.example/token"},
		"realm is not first":    {401, `Bearer service="r", realm="https://auth.example/token"`, "https://auth.example/token"},
		"spaces and upper case": {401, `BEARER  Realm = "https://auth.example/token"`, "https://auth.example/token"},
		"basic":                 {401, `Basic realm="https://auth.example/token"`, ""},
		"a longer name":         {401, `Bearer xrealm="https://auth.example/token"`, ""},
		"no host":               {401, `Bearer realm="/token"`, ""},
		"no URL":                {401, `Bearer realm="https://%zz"`, ""},
		"none":                  {401, "", ""},
		"another status":        {403, `Bearer realm="https://auth.example/token"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			service := newTokenService(nil, "r.example")
			service.learn(&http.Response{StatusCode: tc.status, Header: http.Header{"Www-Authenticate": {tc.challenge}}})
			got := ""
			if service.realm != nil {
				got = service.realm.String()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheTokenServiceIsAHostWithItsPort(t *testing.T) {
	service := newTokenService(nil, "r.example")
	at := func(raw string) *url.URL {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	if service.serves(at("https://auth.example/token")) {
		t.Error("before the registry named one")
	}
	service.realm = at("https://auth.example/token")
	for raw, want := range map[string]bool{
		"https://auth.example/other": true, "https://AUTH.example:443/": true, "http://auth.example/": false,
		"https://auth.example:8443/": false, "https://evil.example/": false,
	} {
		if got := service.serves(at(raw)); got != want {
			t.Errorf("%s: got %v, want %v", raw, got, want)
		}
	}
	if (*TokenService)(nil).serves(at("https://auth.example/")) {
		t.Error("what is no registry has no token service")
	}
}

func TestOnlyKnownTokenServicesAreTrusted(t *testing.T) {
	network := &Network{TokenServices: map[string]string{"r.example": "Auth.example:8443", "plain.example": "auth.example", "registry.gitlab.com": "own.example"}}
	for name, tc := range map[string]struct {
		registry, url string
		trusted       bool
	}{
		"Docker Hub":             {"registry-1.docker.io", "https://auth.docker.io/token", true},
		"GitLab, overridden":     {"registry.gitlab.com", "https://gitlab.com/jwt/auth", false},
		"what overrides it":      {"registry.gitlab.com", "https://own.example/jwt/auth", true},
		"another of Docker Hub":  {"registry-1.docker.io", "https://evil.example/token", false},
		"by port":                {"r.example", "https://auth.example:8443/token", true},
		"another port":           {"r.example", "https://auth.example/token", false},
		"without a port":         {"plain.example", "https://auth.example/token", true},
		"without, another port":  {"plain.example", "https://auth.example:444/token", false},
		"of another registry":    {"x.example", "https://auth.example/token", false},
		"nothing is named at it": {"x.example", "https://x.example/token", false},
	} {
		t.Run(name, func(t *testing.T) {
			service := newTokenService(network, tc.registry)
			req := httptest.NewRequest(http.MethodGet, tc.url, nil)
			service.realm = req.URL
			req.Header.Set("Authorization", basicOfBot)
			if err := service.withhold(req); err != nil {
				t.Fatal(err)
			}
			if sent := req.Header.Get("Authorization") != ""; sent != tc.trusted {
				t.Errorf("credentials are sent: %v, want %v", sent, tc.trusted)
			}
			if refusal := service.Refusal(http.StatusUnauthorized); (refusal == nil) != tc.trusted {
				t.Errorf("the refusal is explained by %v", refusal)
			}
		})
	}
}

func TestATokenServiceWithAPortOfTheSchemeIsTrusted(t *testing.T) {
	service := newTokenService(&Network{TokenServices: map[string]string{"r.example": "auth.example:443"}}, "r.example")
	req := httptest.NewRequest(http.MethodGet, "https://auth.example/token", nil)
	req.Header.Set("Authorization", basicOfBot)
	if err := service.withhold(req); err != nil || req.Header.Get("Authorization") == "" {
		t.Errorf("credentials are withheld: %v", err)
	}
}

// TestCredentialsAreWithheldFromATokenServiceThatNoAdministratorNamed: the service may still give a token to everybody.
func TestCredentialsAreWithheldFromATokenServiceThatNoAdministratorNamed(t *testing.T) {
	registry, service := record(t, httptest.NewServer), record(t, httptest.NewServer)
	registry.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+service.URL+`/token",service="r"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
	client, tokens, err := NewRegistryClient(loopback, Auth{}, registry.origin(t))
	if err != nil {
		t.Fatal(err)
	}
	credentials := http.Header{"Authorization": {basicOfBot}}
	sources.WantError(t, send(t.Context(), client, service, credentials), failure.ErrInvalid, "the server redirects to")
	if err := send(t.Context(), client, registry, nil); err != nil {
		t.Fatal(err)
	}
	if err := send(t.Context(), client, service, nil); err != nil || tokens.Refusal(http.StatusUnauthorized) != nil {
		t.Errorf("without credentials nothing is withheld: %v, %v", err, tokens.Refusal(http.StatusUnauthorized))
	}
	if err := send(t.Context(), client, service, credentials); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", ""}, service.headers("Authorization")); diff != "" {
		t.Error(diff)
	}
	at, of := service.origin(t).Host, registry.origin(t).Host
	says := of + " has its callers get tokens from " + at + ", another host, which is not sent the credentials of the Secret: if it is the registry's, ask an administrator of the cluster to add " +
		of + ": " + at + " to tokenServices of the values of kubeop's chart"
	for status, explained := range map[int]bool{200: false, 401: true, 403: true, 404: true, 429: false, 500: false} {
		refusal := tokens.Refusal(status)
		if explained {
			sources.WantError(t, refusal, failure.ErrAuthentication, says)
		} else if refusal != nil {
			t.Errorf("%d: %v", status, refusal)
		}
	}
}

func TestATokenServiceThatAnAdministratorNamedGetsTheCredentials(t *testing.T) {
	registry, service := record(t, httptest.NewServer), record(t, httptest.NewServer)
	registry.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+service.URL+`/token"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
	network := &Network{Allowed: loopback.Allowed, TokenServices: map[string]string{registry.origin(t).Host: service.origin(t).Host}}
	client, _, err := NewRegistryClient(network, Auth{}, registry.origin(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []*recorder{registry, service} {
		if err := send(t.Context(), client, at, http.Header{"Authorization": {basicOfBot}}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{basicOfBot}, service.headers("Authorization")); diff != "" {
		t.Error(diff)
	}
}

func TestATokenThatIsSentInABodyIsWithheld(t *testing.T) {
	service := newTokenService(nil, "r.example")
	req := httptest.NewRequest(http.MethodPost, "https://auth.example/token", strings.NewReader("refresh_token=hunter2"))
	service.realm = req.URL
	err := service.withhold(req)
	sources.WantError(t, err, failure.ErrAuthentication, "add r.example: auth.example to tokenServices of the values")
	sources.WantNoSecret(t, err, "hunter2")
	sources.WantError(t, service.Refusal(http.StatusUnauthorized), failure.ErrAuthentication, "auth.example")
}

func TestARedirectOfATokenServiceIsRefused(t *testing.T) {
	registry, service, third := record(t, httptest.NewServer), record(t, httptest.NewServer), record(t, httptest.NewServer)
	service.answer = redirectTo(third.URL)
	client, tokens, err := NewRegistryClient(loopback, Auth{}, registry.origin(t))
	if err != nil {
		t.Fatal(err)
	}
	tokens.realm = service.origin(t)
	sources.WantError(t, send(FromStorage(t.Context()), client, service, nil), failure.ErrInvalid,
		"the token service "+service.origin(t).Host+" redirects to "+third.origin(t).Host+", which is not followed")
	if len(third.requests) != 0 {
		t.Error("the third host was asked")
	}
}

func TestOnlyTheRegistryItselfNamesItsTokenService(t *testing.T) {
	registry, storage, third := record(t, httptest.NewServer), record(t, httptest.NewServer), record(t, httptest.NewServer)
	registry.answer = redirectTo(storage.URL)
	storage.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+third.URL+`/token"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
	client, _, err := NewRegistryClient(loopback, Auth{}, registry.origin(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := send(FromStorage(t.Context()), client, registry, nil); err != nil {
		t.Fatal(err)
	}
	sources.WantError(t, send(t.Context(), client, third, nil), failure.ErrInvalid, "the server redirects to "+third.URL)
}
