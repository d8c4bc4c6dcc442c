package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// newHTTPClient returns a client for one source. But for the network nothing in it is shared with another source, so a
// certificate authority or a credential of one can never serve another. The watch in the context limits the time of a
// request.
//
// strict refuses every host but the origin's, for Git; otherwise requests to other hosts go without credentials, for
// charts, whose index may point anywhere and whose registries redirect to storage.
func newHTTPClient(network *Network, auth Auth, origin *url.URL, strict bool) (*http.Client, error) {
	roots, err := auth.roots()
	if err != nil {
		return nil, err
	}
	certificates, err := auth.certificates()
	if err != nil {
		return nil, err
	}
	g := &guard{home: newTransport(network, roots, certificates), auth: auth, origin: origin, strict: strict}
	if g.away = g.home; len(certificates) > 0 {
		// A client certificate says who we are, so only the origin may ask for it.
		g.away = newTransport(network, roots, nil)
	}
	return &http.Client{Transport: g}, nil
}

// idleConnection is how long a connection outlives the last request on it. A fetch makes its requests one after the other, and the next
// is minutes away: a thousand repositories that are looked at together would keep 30 MiB of connections.
const idleConnection = 5 * time.Second

func newTransport(network *Network, roots *x509.CertPool, certificates []tls.Certificate) *http.Transport {
	return &http.Transport{
		Proxy:               network.proxy,
		DialContext:         network.dial,
		TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig:     &tls.Config{RootCAs: roots, Certificates: certificates, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     idleConnection,
	}
}

// guard is where credentials are added, request by request, and so the one place that decides who gets them: they are
// never in the headers http.Client copies along a redirect.
type guard struct {
	home, away *http.Transport
	auth       Auth
	origin     *url.URL
	strict     bool
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	home := sameOrigin(g.origin, req.URL)
	switch {
	case !home && g.strict:
		return nil, fail(ErrInvalid, "the server redirects to %s: use the URL it redirects to", req.URL.Scheme+"://"+req.URL.Host)
	case g.origin.Scheme == "https" && req.URL.Scheme != "https":
		return nil, fail(ErrInvalid, "the server leads to %s without TLS, which an https source does not follow", req.URL.Host)
	}
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", "kubeop")
	if g.strict {
		// Git hosts tell a fetch from a browser by this prefix.
		req.Header.Set("User-Agent", "git/kubeop")
	}
	// A Referer would carry the path of a private source to another host.
	req.Header.Del("Referer")
	if !sameOrigin(began(req), req.URL) {
		// What the registry's library sent was for where the request began. http.Client forgets ports, and what it took
		// out at one redirect it puts back at the next.
		req.Header.Del("Authorization")
		if req.Body != nil && req.Body != http.NoBody {
			return nil, fail(ErrInvalid, "the server redirects what it was sent to %s, which is not followed", req.URL.Host)
		}
	}
	next := g.away
	if home {
		next = g.home
	}
	if home && !g.auth.anonymous() {
		g.authorize(req)
	}
	w := watchOf(req.Context())
	answered := w.answer()
	defer answered()
	res, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	w.body(res)
	return res, nil
}

func (g *guard) authorize(req *http.Request) {
	if g.auth.BearerToken != "" {
		req.Header.Set("Authorization", "Bearer "+g.auth.BearerToken)
		return
	}
	req.SetBasicAuth(g.auth.Username, g.auth.Password)
}

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (g *guard) CloseIdleConnections() {
	g.home.CloseIdleConnections()
	g.away.CloseIdleConnections()
}

// began is the URL of the request that redirects led here from.
func began(req *http.Request) *url.URL {
	for req.Response != nil && req.Response.Request != nil {
		req = req.Response.Request
	}
	return req.URL
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// requestFailed explains an error of http.Client.Do.
func requestFailed(err error, host string) error {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		explained *failure
		handshake *net.OpError
	)
	switch {
	case errors.As(err, &authority):
		return fail(ErrAuthentication, "the certificate of %s is signed by an unknown authority: add the authority as ca.crt to the Secret", host)
	case errors.As(err, &name):
		return fail(ErrAuthentication, "the certificate of %s is for another name: use the name it is for", host)
	case errors.As(err, &explained):
		return explained
	case errors.As(err, &handshake) && handshake.Op == "remote error":
		// What crypto/tls calls an alert of the other side.
		return fail(ErrAuthentication, "%s ended the TLS handshake (%v): give it a client certificate it accepts, as tls.crt and tls.key of the Secret", host, handshake.Err)
	}
	// http.Client repeats method and URL around the cause; the caller has already named the source.
	var about *url.Error
	if errors.As(err, &about) {
		err = about.Err
	}
	return fmt.Errorf("%w: %s gives no answer: %w", ErrUnavailable, host, err)
}

// statusFailed explains an answer that is not 200; what says what was asked for, such as "a Git repository".
func statusFailed(res *http.Response, auth Auth, what string) error {
	host := res.Request.URL.Host
	switch res.StatusCode {
	case http.StatusUnauthorized:
		if auth.anonymous() {
			// Git hosts answer so for what does not exist, too, to give nothing away.
			return fail(ErrAuthentication, "%s has no %s at this URL, or it needs credentials (401): check the URL, or name a Secret with username and password, or bearerToken, in secretRef", host, what)
		}
		return fail(ErrAuthentication, "%s rejected the credentials of the Secret", host)
	case http.StatusForbidden:
		return fail(ErrAuthentication, "%s denies access (403): check what the credentials of the Secret may read", host)
	case http.StatusNotFound, http.StatusGone:
		if auth.anonymous() {
			return fail(ErrNotFound, "there is no %s at this URL, or it needs credentials (%d): check the URL, or name a Secret in secretRef", what, res.StatusCode)
		}
		return fail(ErrNotFound, "there is no %s at this URL, or the credentials may not see it (%d)", what, res.StatusCode)
	}
	return fail(errServer, "%s answered %d %s", host, res.StatusCode, http.StatusText(res.StatusCode))
}

// errServer marks an answer that may be different next time.
var errServer = fmt.Errorf("server error: %w", ErrUnavailable)
