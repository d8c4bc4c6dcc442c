package transport

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// TokenServices names the operator's setting with the token services of registries that are sent credentials.
const TokenServices = "TOKEN_SERVICES"

// TokenService is the host from which a registry has its callers get tokens. A registry may name any host for that, so one that is not
// the registry itself gets no credentials, unless administrators say that it is the registry's (or wellKnown does); it may still give a
// token to everybody, as public registries do.
type TokenService struct {
	// registry is its host, trusted the host that gets its credentials, "" for none.
	registry, trusted string

	mu sync.Mutex
	// realm is the URL that the registry named last; nil before.
	realm *url.URL
	// withheld is set when credentials were not sent there.
	withheld bool
}

// wellKnown are the token services of large registries.
var wellKnown = map[string]string{"registry-1.docker.io": "auth.docker.io", "registry.gitlab.com": "gitlab.com"}

func newTokenService(network *Network, registry string) *TokenService {
	t := &TokenService{registry: registry, trusted: wellKnown[registry]}
	if network != nil && network.TokenServices[registry] != "" {
		t.trusted = network.TokenServices[registry]
	}
	return t
}

// realmOf finds the realm of a challenge: Bearer realm="https://…",service="…" (RFC 7235; the registry's token specification).
var realmOf = regexp.MustCompile(`(?i)^bearer\s(?:.*[\s,])?realm\s*=\s*"([^"]*)"`)

// learn takes in which token service the registry names.
func (t *TokenService) learn(res *http.Response) {
	if res.StatusCode != http.StatusUnauthorized {
		return
	}
	found := realmOf.FindStringSubmatch(res.Header.Get("Www-Authenticate"))
	if found == nil {
		return
	}
	if at, err := url.Parse(found[1]); err == nil && at.Host != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.realm = at
	}
}

// serves reports whether a URL is of the token service that the registry named.
func (t *TokenService) serves(at *url.URL) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.realm != nil && SameOrigin(t.realm, at)
}

// withhold takes the credentials from a request to a token service that is not trusted with them.
func (t *TokenService) withhold(req *http.Request) error {
	if t.trusted != "" && (strings.EqualFold(req.URL.Host, t.trusted) || strings.EqualFold(req.URL.Hostname()+":"+port(req.URL), t.trusted)) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if req.Body != nil && req.Body != http.NoBody {
		// A token that stands for a user is sent in the body, without which there is nothing to ask.
		t.withheld = true
		return t.refused()
	}
	if req.Header.Get("Authorization") != "" {
		req.Header.Del("Authorization")
		t.withheld = true
	}
	return nil
}

// Refusal explains an answer that may be for want of credentials; nil where they were not withheld.
func (t *TokenService) Refusal(status int) error {
	if status != http.StatusUnauthorized && status != http.StatusForbidden && status != http.StatusNotFound {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.withheld {
		return nil
	}
	return t.refused()
}

// refused is called with the lock.
func (t *TokenService) refused() error {
	return failure.New(failure.ErrAuthentication, "%s has its callers get tokens from %s, another host, which is not sent the credentials of the Secret: have the administrator add %s=%s to the operator's setting %s if it is the registry's",
		t.registry, failure.Printable(t.realm.Host), t.registry, failure.Printable(t.realm.Host), TokenServices)
}
