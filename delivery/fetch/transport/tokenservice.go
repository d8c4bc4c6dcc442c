package transport

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
)

// TokenService is the host from which a registry lets its callers get tokens. A registry may name any host, so a host other than the
// registry gets no credentials, unless administrators (or wellKnown) assign it to the registry; it may still give a token to everyone, as
// public registries do.
type TokenService struct {
	// registry is its host, trusted the other host that gets its credentials, "" for none.
	registry, trusted string

	mu sync.Mutex
	// realm is the URL that the registry named last; nil before.
	realm *url.URL
	// withheld is set when credentials were not sent to it.
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

// learn records which token service the registry names.
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

// serves reports whether a URL belongs to the token service that the registry named.
func (t *TokenService) serves(at *url.URL) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.realm != nil && SameOrigin(t.realm, at)
}

// withhold removes the credentials from a request to a token service that is not trusted with them.
func (t *TokenService) withhold(req *http.Request) error {
	if t.trusted != "" && (strings.EqualFold(req.URL.Host, t.trusted) || strings.EqualFold(req.URL.Hostname()+":"+port(req.URL), t.trusted)) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if req.Body != nil && req.Body != http.NoBody {
		// A refresh token is sent in the body; without it there is nothing to request.
		t.withheld = true
		return t.refused()
	}
	if req.Header.Get("Authorization") != "" {
		req.Header.Del("Authorization")
		t.withheld = true
	}
	return nil
}

// Refusal explains an answer that missing credentials may have caused; nil if they were not withheld.
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

// refused is called with the lock held.
func (t *TokenService) refused() error {
	return failure.New(failure.ErrAuthentication, "%s has its callers get tokens from %s, another host, which is not sent the credentials of the Secret: if it is the registry's, ask %s to add %s: %s to %s",
		t.registry, few.Quote(t.realm.Host), command.Administrator, t.registry, few.Quote(t.realm.Host), command.OfChart("tokenServices"))
}
