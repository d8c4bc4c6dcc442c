package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/lru"
)

// NewClient returns a client for one source at an origin, a scheme and a host. Except for the network it shares nothing with another
// source, so a certificate authority or a credential of one never serves another. Within limits the time of its requests. They go to the
// origin only, except those marked by FromStorage. Unusable credentials are ErrInvalid.
func NewClient(network *Network, auth Auth, origin *url.URL) (*http.Client, error) {
	g, err := newGuard(network, auth, origin)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: g}, nil
}

// NewGitClient is NewClient for a Git repository.
func NewGitClient(network *Network, auth Auth, origin *url.URL) (*http.Client, error) {
	g, err := newGuard(network, auth, origin)
	if err != nil {
		return nil, err
	}
	g.git = true
	return &http.Client{Transport: g}, nil
}

// NewRegistryClient is NewClient for a registry, which may send its callers to another host for tokens.
func NewRegistryClient(network *Network, auth Auth, origin *url.URL) (*http.Client, *TokenService, error) {
	if auth.App != nil {
		return nil, nil, failure.New(failure.ErrInvalid, "the Secret holds a GitHub App, which a registry does not take: write a token into it; %s", auth.Write(usernameKey, passwordKey))
	}
	g, err := newGuard(network, auth, origin)
	if err != nil {
		return nil, nil, err
	}
	g.tokens = newTokenService(network, origin.Host)
	return &http.Client{Transport: g}, g.tokens, nil
}

func newGuard(network *Network, auth Auth, origin *url.URL) (*guard, error) {
	roots, err := auth.roots()
	if err != nil {
		return nil, err
	}
	certificates, err := auth.certificates()
	if err != nil {
		return nil, err
	}
	g := &guard{home: newTransport(network, roots, certificates), auth: auth, origin: origin}
	if auth.App != nil {
		if g.app, err = network.installationOf(auth, origin); err != nil {
			return nil, err
		}
	}
	if g.away = g.home; len(certificates) > 0 {
		// A client certificate identifies us, so only the origin may request it.
		g.away = newTransport(network, roots, nil)
	}
	return g, nil
}

// maxInstallations bounds the installations whose tokens are kept. One that is dropped gets a new token when it is needed.
const maxInstallations = 1000

// installationOf returns the installation of a GitHub App. Sources with the same credentials share it, and so its token.
func (n *Network) installationOf(auth Auth, origin *url.URL) (*installation, error) {
	api, err := auth.App.api(origin)
	if err != nil {
		return nil, err
	}
	g, err := newGuard(n, Auth{CA: auth.CA, Certificate: auth.Certificate, PrivateKey: auth.PrivateKey}, api)
	if err != nil {
		return nil, err
	}
	made := &installation{app: auth.App, api: api, clock: clock.RealClock{}, client: &http.Client{Transport: g}}
	if n == nil {
		return made, nil
	}
	if n.Clock != nil {
		made.clock = n.Clock
	}
	key := auth.Digest(api.String())
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.installations == nil {
		n.installations = lru.New[string, *installation](maxInstallations, nil)
	}
	if known, ok := n.installations.Get(key); ok {
		return known, nil
	}
	n.installations.Add(key, made)
	return made, nil
}

// idleConnection is how long a connection is kept after the last request. A fetch makes its requests one after the other, and the next
// fetch is minutes away: a thousand repositories that are fetched together would keep 30 MiB of connections.
const idleConnection = 5 * time.Second

func newTransport(network *Network, roots *x509.CertPool, certificates []tls.Certificate) *http.Transport {
	return &http.Transport{
		Proxy:               network.proxy,
		DialContext:         network.Dial,
		TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig:     &tls.Config{RootCAs: roots, Certificates: certificates, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     idleConnection,
	}
}

// RequestError explains an error of http.Client.Do to the host. Errors of no other kind are ErrUnavailable.
func RequestError(err error, host string) error {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		explained *failure.Error
		handshake *net.OpError
	)
	switch {
	case errors.As(err, &authority):
		return &lackError{failure.New(failure.ErrAuthentication, "the certificate of %s is signed by an unknown authority: add the authority as ca.crt to the Secret that secretRef names in Git", host), []string{caKey}}
	case errors.As(err, &name):
		return failure.New(failure.ErrAuthentication, "the certificate of %s is for another name: use the name it is for in the URL in Git", host)
	case errors.As(err, &explained):
		return explained
	case errors.As(err, &handshake) && handshake.Op == "remote error":
		// That is what crypto/tls calls an alert from the other side.
		return &lackError{failure.New(failure.ErrAuthentication, "%s ended the TLS handshake (%v): give it a client certificate it accepts, as tls.crt and tls.key of the Secret that secretRef names in Git", host, handshake.Err),
			[]string{certificateKey, privateKeyKey}}
	}
	// http.Client repeats method and URL around the cause; the caller has already named the source.
	var about *url.Error
	if errors.As(err, &about) {
		err = about.Err
	}
	return fmt.Errorf("%w: %s gives no answer: %w", failure.ErrUnavailable, host, err)
}

// StatusError explains an answer that is not 200: ErrAuthentication, ErrNotFound or ErrServer. what names the requested thing, such as "a
// Git repository".
func StatusError(res *http.Response, auth Auth, what string) error {
	host := res.Request.URL.Host
	switch res.StatusCode {
	case http.StatusUnauthorized:
		if auth.Anonymous() {
			return failure.New(failure.ErrAuthentication, "%s (401): check the URL in Git, or name a Secret with username and password, or bearerToken, in secretRef there", wanted(host, what))
		}
		return failure.New(failure.ErrAuthentication, "%s rejected the credentials of the Secret (401): check them; a token may have expired", host)
	case http.StatusForbidden:
		if auth.Anonymous() {
			return failure.New(failure.ErrAuthentication, "%s denies access without credentials (403): check the URL in Git, or name a Secret with credentials in secretRef there", host)
		}
		return failure.New(failure.ErrAuthentication, "%s denies access (403): check what the credentials of the Secret may read", host)
	case http.StatusNotFound, http.StatusGone:
		if auth.Anonymous() {
			return failure.New(failure.ErrNotFound, "there is no %s at this URL (%d): check the URL in Git; if it is private, name a Secret in secretRef there", what, res.StatusCode)
		}
		return failure.New(failure.ErrNotFound, "there is no %s at this URL, or the credentials may not see it (%d): check the URL in Git, and what the credentials may read", what, res.StatusCode)
	case http.StatusRequestEntityTooLarge:
		return failure.New(failure.ErrTooLarge, "%s refuses a request of this size (413)", host)
	}
	return failure.New(failure.ErrServer, "%s answered %d %s", host, res.StatusCode, http.StatusText(res.StatusCode))
}

// alike are hosts that answer in the same way where something does not exist and where it needs credentials, in order to reveal nothing.
var alike = map[string]bool{
	"github.com": true, "gitlab.com": true, "bitbucket.org": true, "codeberg.org": true, "dev.azure.com": true,
	"ghcr.io": true, "quay.io": true, "registry.gitlab.com": true, "registry-1.docker.io": true, "index.docker.io": true,
}

// wanted explains that a host wants credentials and got none.
func wanted(host, what string) string {
	if alike[host] {
		return fmt.Sprintf("%s has no %s at this URL, or it needs credentials; the host does not say which", host, what)
	}
	return fmt.Sprintf("%s wants credentials for the %s at this URL; some hosts answer so if it does not exist", host, what)
}

// GetBody starts a download; the caller closes the body. An answer other than 200 is a StatusError, which uses what as the name of the
// download.
func GetBody(ctx context.Context, client *http.Client, auth Auth, at *url.URL, what string) (io.ReadCloser, error) {
	res, err := Get(ctx, client, at, nil)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		return nil, StatusError(res, auth, what)
	}
	return res.Body, nil
}

// Get returns an answer with any status; the caller closes the body.
func Get(ctx context.Context, client *http.Client, at *url.URL, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, failure.New(failure.ErrInvalid, "the URL cannot be requested")
	}
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, RequestError(err, at.Host)
	}
	return res, nil
}

// SafeURL returns a URL for messages: without the user, because a token may be written as one.
func SafeURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "the repository"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// maxRetryAfter bounds the pause that a server may ask for.
const maxRetryAfter = time.Hour

// RetryAfter returns the pause of a header Retry-After in seconds, at most an hour; 0 if it says none.
func RetryAfter(value string) time.Duration {
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}

// CheckURL refuses a URL whose host has an address that may not be reached, as ErrInvalid. The host may have another one later, so Dial checks that again.
func (n *Network) CheckURL(ctx context.Context, at *url.URL) error {
	if through, err := n.proxy((&http.Request{URL: at}).WithContext(ctx)); through != nil || err != nil {
		return err // The proxy resolves the name.
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", at.Hostname())
	if err != nil {
		return err
	}
	asked := net.JoinHostPort(at.Hostname(), port(at))
	for _, ip := range found {
		if err := n.check(ctx, asked, netip.AddrPortFrom(ip, 0).String()); err != nil {
			return err
		}
	}
	return nil
}

// HTTP returns a way to servers that get no credentials. Of the headers of an answer it reads so many bytes.
func (n *Network) HTTP(headers int64) *http.Transport {
	to := newTransport(n, nil, nil)
	to.MaxResponseHeaderBytes = headers
	return to
}
