package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// newHTTPClient returns a client for one source. But for the network nothing in it is shared with another source, so a
// certificate authority or a credential of one can never serve another. The watch in the context limits the time of a
// request. Requests go to the origin only, but for those marked by fromStorage and, of a registry, for tokens.
func newHTTPClient(network *Network, auth Auth, origin *url.URL) (*http.Client, *guard, error) {
	roots, err := auth.roots()
	if err != nil {
		return nil, nil, err
	}
	certificates, err := auth.certificates()
	if err != nil {
		return nil, nil, err
	}
	g := &guard{home: newTransport(network, roots, certificates), auth: auth, origin: origin}
	if g.away = g.home; len(certificates) > 0 {
		// A client certificate says who we are, so only the origin may ask for it.
		g.away = newTransport(network, roots, nil)
	}
	return &http.Client{Transport: g}, g, nil
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

// requestFailed explains an error of http.Client.Do.
func requestFailed(err error, host string) error {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		explained *failure.Error
		handshake *net.OpError
	)
	switch {
	case errors.As(err, &authority):
		return failure.New(failure.ErrAuthentication, "the certificate of %s is signed by an unknown authority: add the authority as ca.crt to the Secret", host)
	case errors.As(err, &name):
		return failure.New(failure.ErrAuthentication, "the certificate of %s is for another name: use the name it is for", host)
	case errors.As(err, &explained):
		return explained
	case errors.As(err, &handshake) && handshake.Op == "remote error":
		// What crypto/tls calls an alert of the other side.
		return failure.New(failure.ErrAuthentication, "%s ended the TLS handshake (%v): give it a client certificate it accepts, as tls.crt and tls.key of the Secret", host, handshake.Err)
	}
	// http.Client repeats method and URL around the cause; the caller has already named the source.
	var about *url.Error
	if errors.As(err, &about) {
		err = about.Err
	}
	return fmt.Errorf("%w: %s gives no answer: %w", failure.ErrUnavailable, host, err)
}

// statusFailed explains an answer that is not 200; what says what was asked for, such as "a Git repository".
func statusFailed(res *http.Response, auth Auth, what string) error {
	host := res.Request.URL.Host
	switch res.StatusCode {
	case http.StatusUnauthorized:
		if auth.anonymous() {
			// Git hosts answer so for what does not exist, too, to give nothing away.
			return failure.New(failure.ErrAuthentication, "%s has no %s at this URL, or it needs credentials (401): check the URL, or name a Secret with username and password, or bearerToken, in secretRef", host, what)
		}
		return failure.New(failure.ErrAuthentication, "%s rejected the credentials of the Secret", host)
	case http.StatusForbidden:
		return failure.New(failure.ErrAuthentication, "%s denies access (403): check what the credentials of the Secret may read", host)
	case http.StatusNotFound, http.StatusGone:
		if auth.anonymous() {
			return failure.New(failure.ErrNotFound, "there is no %s at this URL, or it needs credentials (%d): check the URL, or name a Secret in secretRef", what, res.StatusCode)
		}
		return failure.New(failure.ErrNotFound, "there is no %s at this URL, or the credentials may not see it (%d)", what, res.StatusCode)
	}
	return failure.New(failure.ErrServer, "%s answered %d %s", host, res.StatusCode, http.StatusText(res.StatusCode))
}
