package transport

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"oras.land/oras-go/v2/errdef"
	ociremote "oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
)

// single is a client of one repository of an OCI registry, with credentials.
type single struct {
	*ociremote.Repository
	auth   Auth
	client *http.Client
	tokens *TokenService
}

// Close closes the idle connections.
func (r *single) Close() { r.client.CloseIdleConnections() }

// Anonymous reports whether no credentials are sent.
func (r *single) Anonymous() bool { return r.auth.Anonymous() }

// openSingle returns a client of a repository of a registry, host/path, and asks no mirror. The library gets the credentials, and not our client,
// because the registry's challenge decides how they are used.
func openSingle(network *Network, at string, by Access) (*single, error) {
	as, insecure := by.Auth, by.Insecure
	repo, err := ociremote.NewRepository(at)
	if err != nil {
		return nil, failure.New(failure.ErrInvalid, "%s is not the name of a repository in an OCI registry: it is lower-case letters, digits, dots, dashes and slashes", few.Quote(at))
	}
	repo.PlainHTTP = insecure
	repo.TagListMaxPages = 100
	host := repo.Reference.Host()
	own, refresh, err := as.ForHost(host + "/" + repo.Reference.Repository)
	if err != nil {
		return nil, err
	}
	origin := &url.URL{Scheme: "https", Host: host}
	if insecure {
		origin.Scheme = "http"
	}
	client, tokens, err := NewRegistryClient(network, Auth{CA: as.CA, Certificate: as.Certificate, PrivateKey: as.PrivateKey}, origin)
	if err != nil {
		return nil, err
	}
	repo.Client = &auth.Client{
		Client: client,
		Cache:  auth.NewCache(),
		Credential: auth.StaticCredential(host, auth.Credential{
			Username: own.Username, Password: own.Password, AccessToken: own.BearerToken, RefreshToken: refresh,
		}),
	}
	if refresh != "" {
		own.BearerToken = refresh
	}
	return &single{Repository: repo, auth: own, client: client, tokens: tokens}, nil
}

// Ungranted adds to an error that missing credentials may have caused who can give them: without a Registry, every app needs a Secret.
func (r *single) Ungranted(err error) error {
	if !r.Anonymous() || r.auth.Secret != "" || !errors.Is(err, failure.ErrAuthentication) {
		return err
	}
	return fmt.Errorf("%w; or ask %s to let the tenant use a Registry of %s", err, command.Administrator, r.Reference.Registry)
}

// Failed explains why a registry refused, or could not answer. Only the status is used, because the error's text may repeat what a server sent.
func (r *single) Failed(err error, what string) error {
	var (
		answer *errcode.ErrorResponse
		asked  *url.Error
	)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return r.Ungranted(failure.New(failure.ErrAuthentication, "%s: check the URL in Git, or name a Secret with username and password or .dockerconfigjson in secretRef there", wanted(r.Reference.Host(), what)))
	case errors.As(err, &answer) && r.tokens.Refusal(answer.StatusCode) != nil:
		return r.tokens.Refusal(answer.StatusCode)
	case errors.As(err, &answer):
		res := &http.Response{StatusCode: answer.StatusCode, Request: &http.Request{URL: answer.URL}}
		return r.Ungranted(StatusError(res, r.auth, what))
	case errors.Is(err, errdef.ErrNotFound):
		return failure.New(failure.ErrNotFound, "there is no %s at this URL, or the credentials may not see it: check the URL and the version in Git, and what the credentials may read", what)
	case !errors.As(err, &asked):
		// The library does not understand the answer, for example because it names a token server that is not trusted. The library wraps
		// the error with URLs, which may be signed.
		for cause := err; cause != nil; cause = errors.Unwrap(cause) {
			err = cause
		}
		return failure.New(failure.ErrServer, "%s answers what cannot be used: %s", r.Reference.Host(), few.Quote(r.auth.Redact(err.Error())))
	}
	return RequestError(err, r.Reference.Host())
}
