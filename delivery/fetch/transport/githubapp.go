package transport

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// The keys of a Secret with the credentials of a GitHub App; the same as Flux's.
const (
	appIDKey           = "githubAppID"
	appInstallationKey = "githubAppInstallationID"
	appPrivateKeyKey   = "githubAppPrivateKey"
	appBaseURLKey      = "githubAppBaseURL"
)

// GitHubApp are the credentials of a GitHub App for one installation. Requests carry a token that GitHub issues for them, and that ends after
// an hour; it is kept in memory only.
type GitHubApp struct {
	// ID is the App's ID or client ID, Installation the number of its installation.
	ID, Installation string
	// PrivateKey is an RSA key in PEM.
	PrivateKey []byte
	// BaseURL is that of the API. Default: https://api.github.com for github.com, otherwise https://<host>/api/v3.
	BaseURL string
}

// appFrom returns the App in the data of a Secret; nil if it has none.
func appFrom(data map[string][]byte) *GitHubApp {
	app := &GitHubApp{
		ID: string(data[appIDKey]), Installation: string(data[appInstallationKey]), PrivateKey: data[appPrivateKeyKey], BaseURL: string(data[appBaseURLKey]),
	}
	if app.ID == "" && app.Installation == "" && len(app.PrivateKey) == 0 {
		return nil
	}
	return app
}

var (
	appID           = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)
	appInstallation = regexp.MustCompile(`^[0-9]{1,20}$`)
)

// check returns ErrInvalid for credentials that cannot be used, naming the key of the Secret.
func (a *GitHubApp) check() error {
	if a == nil {
		return nil
	}
	if !appID.MatchString(a.ID) {
		return failure.New(failure.ErrInvalid, "%s of the Secret is not the ID of a GitHub App", appIDKey)
	}
	if !appInstallation.MatchString(a.Installation) {
		return failure.New(failure.ErrInvalid, "%s of the Secret is not the number of an installation; it is the last part of the installation's URL", appInstallationKey)
	}
	if _, err := a.key(); err != nil {
		return err
	}
	if u, err := url.Parse(a.BaseURL); a.BaseURL != "" && (err != nil || u.Hostname() == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http") {
		return failure.New(failure.ErrInvalid, "%s of the Secret is not an http or https URL", appBaseURLKey)
	}
	return nil
}

// key returns the private key: PKCS #1, as GitHub issues it, or PKCS #8. An error says nothing of the cause, because a parser may quote its input.
func (a *GitHubApp) key() (*rsa.PrivateKey, error) {
	unusable := failure.New(failure.ErrInvalid, "%s of the Secret is not a private RSA key in PEM", appPrivateKeyKey)
	block, _ := pem.Decode(a.PrivateKey)
	if block == nil {
		return nil, unusable
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, isRSA := parsed.(*rsa.PrivateKey)
	if err != nil || !isRSA {
		return nil, unusable
	}
	return key, nil
}

// api is the base of the API, for a source at an origin.
func (a *GitHubApp) api(origin *url.URL) (*url.URL, error) {
	switch {
	case a.BaseURL != "":
		at, err := url.Parse(strings.TrimSuffix(a.BaseURL, "/"))
		if err != nil {
			return nil, failure.New(failure.ErrInvalid, "%s of the Secret is not an http or https URL", appBaseURLKey)
		}
		if origin.Scheme == "https" && at.Scheme != "https" {
			return nil, failure.New(failure.ErrInvalid, "%s of the Secret is without TLS, which an https source does not follow", appBaseURLKey)
		}
		return at, nil
	case strings.EqualFold(origin.Hostname(), "github.com") || strings.EqualFold(origin.Hostname(), "api.github.com"):
		return &url.URL{Scheme: "https", Host: "api.github.com"}, nil
	}
	return &url.URL{Scheme: origin.Scheme, Host: origin.Host, Path: "/api/v3"}, nil
}

// installation issues the token of an installation, and keeps it until it is about to end.
type installation struct {
	app    *GitHubApp
	api    *url.URL
	client *http.Client
	clock  clock.PassiveClock

	mu    sync.Mutex
	token string
	until time.Time
}

// margin is how long before its end a token is renewed, so that it does not end during a fetch.
const margin = 10 * time.Minute

// get returns a token. Callers wait for the one that requests it.
func (i *installation) get(ctx context.Context) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.token != "" && i.clock.Now().Add(margin).Before(i.until) {
		return i.token, nil
	}
	var err error
	i.token, i.until, err = i.request(ctx)
	return i.token, err
}

// drop forgets a token that a server refused.
func (i *installation) drop(token string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.token == token {
		i.token = ""
	}
}

// request requests a token. https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app
func (i *installation) request(ctx context.Context) (token string, until time.Time, err error) {
	proof, err := i.proof()
	if err != nil {
		return "", until, err
	}
	at := i.api.JoinPath("app/installations", i.app.Installation, "access_tokens")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), http.NoBody)
	if err != nil {
		return "", until, failure.New(failure.ErrInvalid, "the URL of GitHub's API cannot be requested")
	}
	req.Header.Set("Authorization", "Bearer "+proof)
	req.Header.Set("Accept", "application/vnd.github+json")
	res, err := i.client.Do(req)
	if err != nil {
		return "", until, fmt.Errorf("requesting a token of GitHub App %s from %s: %w", i.app.ID, at.Host, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 64*limit.KiB))
	if err != nil {
		return "", until, fmt.Errorf("requesting a token of GitHub App %s from %s: %w", i.app.ID, at.Host, err)
	}
	var answer struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		return "", until, failure.New(failure.ErrAuthentication, "%s rejected the key of GitHub App %s (401): %s and %s of the Secret do not belong together, or the key was revoked", at.Host, i.app.ID, appIDKey, appPrivateKeyKey)
	case res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusForbidden:
		return "", until, failure.New(failure.ErrAuthentication, "GitHub App %s has no usable installation %s at %s (%d): it was removed or suspended, or %s of the Secret is wrong", i.app.ID, i.app.Installation, at.Host, res.StatusCode, appInstallationKey)
	case res.StatusCode != http.StatusCreated:
		return "", until, failure.New(failure.ErrServer, "%s answered %d %s to the request for a token of GitHub App %s", at.Host, res.StatusCode, http.StatusText(res.StatusCode), i.app.ID)
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&answer); err != nil || answer.Token == "" || strings.ContainsAny(answer.Token, "\r\n\x00") {
		return "", until, failure.New(failure.ErrServer, "%s answered the request for a token of GitHub App %s with none", at.Host, i.app.ID)
	}
	return answer.Token, answer.ExpiresAt, nil
}

// proof is the token that the App's key signs. GitHub accepts at most ten minutes, and clocks differ.
func (i *installation) proof() (string, error) {
	key, err := i.app.key()
	if err != nil {
		return "", err
	}
	now := i.clock.Now()
	claims := jwt.Claims{Issuer: i.app.ID, IssuedAt: jwt.NewNumericDate(now.Add(-time.Minute)), Expiry: jwt.NewNumericDate(now.Add(8 * time.Minute))}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	var signed string
	if err == nil {
		signed, err = jwt.Signed(signer).Claims(claims).Serialize()
	}
	if err != nil {
		return "", fmt.Errorf("signing the request for a token of GitHub App %s: %w", i.app.ID, err)
	}
	return signed, nil
}

// digest identifies the credentials.
func (a *GitHubApp) digest() []byte {
	if a == nil {
		return nil
	}
	sum := sha256.Sum256([]byte(a.ID + "\n" + a.Installation + "\n" + a.BaseURL + "\n" + string(a.PrivateKey)))
	return []byte(hex.EncodeToString(sum[:]))
}
