// Package host calls the API of the Git host of a repository: GitHub, GitLab, Gitea and Forgejo, Bitbucket Cloud and Bitbucket
// Server. Tenants may name the hosts, so every request goes through the SSRF guard of delivery/fetch/transport, within limits of time and
// size.
package host

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/drone/go-scm/scm"
	"github.com/drone/go-scm/scm/driver/bitbucket"
	"github.com/drone/go-scm/scm/driver/gitea"
	"github.com/drone/go-scm/scm/driver/github"
	"github.com/drone/go-scm/scm/driver/gitlab"
	"github.com/drone/go-scm/scm/driver/stash"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// Repository is a repository at a Git host. Close it after use.
type Repository struct {
	api    *scm.Client
	kind   Type
	name   string
	auth   transport.Auth
	origin *url.URL
	now    func() time.Time
}

// maxAnswer is how much of an answer is read: a page of pull requests, each of which has a text of up to 256 KiB at GitHub.
const maxAnswer = 8 << 20

// timeouts bound a request.
var timeouts = transport.Timeouts{Whole: 30 * time.Second, Answer: 15 * time.Second, Stall: 10 * time.Second}

// Open returns a client of a repository at its Git host; it contacts nothing. A place or credentials that can never work are ErrInvalid.
func Open(network *transport.Network, at Place, auth transport.Auth, now func() time.Time) (*Repository, error) {
	kind := cmp.Or(at.Type, TypeOf(at.URL), TypeOf(at.Address))
	base, name, err := locate(at, kind)
	if err != nil {
		return nil, err
	}
	if auth, err = forAPI(auth, kind); err != nil {
		return nil, err
	}
	client, err := transport.NewClient(network, auth, base)
	if err != nil {
		return nil, err
	}
	client.Transport = bounded{client.Transport}
	driver := map[Type]func(string) (*scm.Client, error){
		GitHub: github.New, GitLab: gitlab.New, Gitea: gitea.New, Bitbucket: bitbucket.New, BitbucketServer: stash.New,
	}[kind]
	api, err := driver(base.String())
	if err != nil {
		return nil, failure.New(failure.ErrInvalid, "the address of the Git host cannot be used")
	}
	api.Client = client
	return &Repository{api: api, kind: kind, name: name, auth: auth, origin: base, now: now}, nil
}

// forAPI returns the credentials as the API takes them. A token may be written as bearerToken, or as the password with which it is used
// for Git.
func forAPI(auth transport.Auth, kind Type) (transport.Auth, error) {
	if auth.App != nil {
		if kind != GitHub {
			return transport.Auth{}, failure.New(failure.ErrInvalid, "the Secret holds a GitHub App, and the Git host is not GitHub: write a token into it; %s", auth.Write("bearerToken"))
		}
		return transport.Auth{CA: auth.CA, Certificate: auth.Certificate, PrivateKey: auth.PrivateKey, App: auth.App, Secret: auth.Secret}, nil
	}
	token := cmp.Or(auth.BearerToken, auth.Password)
	if token == "" || len(auth.Identity) > 0 && auth.BearerToken == "" {
		return transport.Auth{}, failure.New(failure.ErrInvalid, "the Secret holds no token for the API of the Git host: add it; %s", auth.Write("bearerToken"))
	}
	as := transport.Auth{CA: auth.CA, Certificate: auth.Certificate, PrivateKey: auth.PrivateKey, Secret: auth.Secret}
	if auth.BearerToken == "" && auth.Username != "" && kind != GitLab { // GitLab takes no basic authentication for its API.
		as.Username, as.Password = auth.Username, auth.Password
		return as, nil
	}
	as.BearerToken = token
	return as, nil
}

// Close closes the idle connections.
func (r *Repository) Close() { r.api.Client.CloseIdleConnections() }

// Host is the host of the API with its port, for limits by host.
func (r *Repository) Host() string { return transport.HostOf(r.origin.String()) }

// call makes one request within the limits, and explains its error.
func (r *Repository) call(ctx context.Context, what string, do func(context.Context) (*scm.Response, error)) error {
	_, err := transport.Within(ctx, timeouts, func(ctx context.Context) (struct{}, error) {
		res, err := do(ctx)
		return struct{}{}, r.explain(res, err)
	})
	if err != nil {
		return fmt.Errorf("%s of %s: %w", what, r.name, err)
	}
	return nil
}

// bounded limits how much of an answer is read.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, maxAnswer), res.Body}
	return res, nil
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (b bounded) CloseIdleConnections() {
	if c, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// accepted drops the error of an answer that could only not be read: the library reads every answer, also those of which nothing is needed.
func accepted(res *scm.Response, err error) (*scm.Response, error) {
	if res != nil && res.Status < http.StatusMultipleChoices {
		return res, nil
	}
	return res, err
}
