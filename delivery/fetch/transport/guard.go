package transport

import (
	"context"
	"net/http"
	"net/url"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// guard adds the credentials to each request, so it is the only place that decides which host gets them: they are never in the headers that
// http.Client copies along a redirect. It also decides which requests may go to other hosts than the source's.
type guard struct {
	home, away *http.Transport
	auth       Auth
	origin     *url.URL
	// git sends the headers by which Git hosts distinguish a fetch from a browser.
	git bool
	// app issues the token of a GitHub App; nil for other credentials.
	app *installation
	// tokens is the registry's token service; nil if the source is not a registry.
	tokens *TokenService
}

type storageKey struct{}

// FromStorage marks requests that may go to another host than the source's, by a redirect or because the source names it: archives, which
// registries and chart repositories keep in external storage. Everything else has to be on the source's own host.
func FromStorage(ctx context.Context) context.Context {
	return context.WithValue(ctx, storageKey{}, true)
}

func isFromStorage(ctx context.Context) bool { return ctx.Value(storageKey{}) != nil }

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	home := SameOrigin(g.origin, req.URL)
	req = req.Clone(req.Context())
	if err := g.mayLead(req, home); err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "kubeop")
	if g.git {
		req.Header.Set("User-Agent", "git/kubeop")
	}
	// A Referer would carry the path of a private source to another host.
	req.Header.Del("Referer")
	if !home {
		return g.send(g.away, req)
	}
	if g.app != nil {
		return g.asApp(req)
	}
	if !g.auth.Anonymous() {
		g.authorize(req)
	}
	res, err := g.send(g.home, req)
	if err == nil && g.tokens != nil {
		g.tokens.learn(res)
	}
	return res, err
}

// send makes a request within the time limits.
func (g *guard) send(through *http.Transport, req *http.Request) (*http.Response, error) {
	w := WatchdogOf(req.Context())
	answered := w.AwaitAnswer()
	defer answered()
	res, err := through.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	w.body(res)
	return res, nil
}

// asApp makes a request with the token of a GitHub App. If the server refuses a token, which may have been revoked, it tries a new one.
func (g *guard) asApp(req *http.Request) (*http.Response, error) {
	for again := false; ; again = true {
		token, err := g.app.get(req.Context())
		if err != nil {
			return nil, err
		}
		if again && req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		if req.Header.Set("Authorization", "Bearer "+token); g.git {
			req.SetBasicAuth("x-access-token", token)
		}
		res, err := g.send(g.home, req)
		if err != nil || res.StatusCode != http.StatusUnauthorized {
			return res, err
		}
		g.app.drop(token)
		if again || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
			return res, nil
		}
		_ = res.Body.Close()
	}
}

// mayLead refuses a request to a host that is not allowed, and removes from it what that host must not get.
func (g *guard) mayLead(req *http.Request, home bool) error {
	first := began(req)
	redirected := !SameOrigin(first, req.URL)
	switch {
	case g.origin.Scheme == "https" && req.URL.Scheme != "https":
		return failure.New(failure.ErrInvalid, "the server leads to %s without TLS, which an https source does not follow", req.URL.Host)
	case !home && !redirected && g.tokens.serves(req.URL):
		return g.tokens.withhold(req)
	case !home && (!isFromStorage(req.Context()) || !redirected && g.tokens != nil):
		return failure.New(failure.ErrInvalid, "the server redirects to %s: use the URL it redirects to, in Git", req.URL.Scheme+"://"+req.URL.Host)
	case redirected && !SameOrigin(g.origin, first) && g.tokens.serves(first):
		return failure.New(failure.ErrInvalid, "the token service %s redirects to %s, which is not followed", first.Host, req.URL.Host)
	}
	if redirected {
		// The registry's library added this header for the first host. http.Client ignores ports, and adds a header again that it removed
		// at an earlier redirect.
		req.Header.Del("Authorization")
		if req.Body != nil && req.Body != http.NoBody {
			return failure.New(failure.ErrInvalid, "the server redirects what it was sent to %s, which is not followed", req.URL.Host)
		}
	}
	return nil
}

func (g *guard) authorize(req *http.Request) {
	if g.auth.BearerToken != "" {
		req.Header.Set("Authorization", "Bearer "+g.auth.BearerToken)
		return
	}
	req.SetBasicAuth(g.auth.Username, g.auth.Password)
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (g *guard) CloseIdleConnections() {
	g.home.CloseIdleConnections()
	g.away.CloseIdleConnections()
}

// began returns the URL of the first of the requests that led to this one by redirects.
func began(req *http.Request) *url.URL {
	for req.Response != nil && req.Response.Request != nil {
		req = req.Response.Request
	}
	return req.URL
}
