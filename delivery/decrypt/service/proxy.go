package service

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/kubeop/kubeop/delivery/message"
)

// Client returns a client for an origin. The client trusts these certificate authorities, in PEM, in addition to the system's, and decides
// which addresses it connects to (SSRF guard).
type Client func(origin *url.URL, ca []byte) (*http.Client, error)

// Proxy sends the requests of one app's process to key services.
type Proxy struct {
	client   Client
	data     map[string][]byte
	requests int
	left     time.Duration
	now      func() time.Time
}

// NewProxy returns a Proxy for the services for which the data of a Secret has credentials. now returns the time.
func NewProxy(client Client, data map[string][]byte, now func() time.Time) *Proxy {
	return &Proxy{client: client, data: data, left: maxTime, now: now}
}

// Do sends one request of a Transport.
func (p *Proxy) Do(ctx context.Context, question []byte) ([]byte, error) {
	if p.requests++; p.requests > maxRequests {
		return nil, fmt.Errorf("to decrypt the files of an app, key services may be called %d times", maxRequests)
	}
	if p.left <= 0 {
		return nil, fmt.Errorf("the key services of the app together took more than %s", maxTime)
	}
	if len(question) > maxRequestBytes {
		return nil, errors.New("the request is too long")
	}
	var asked request
	if err := reader.Read(question, &asked); err != nil {
		return nil, fmt.Errorf("reading a request: %w", err)
	}
	to, err := p.allowed(asked.Method, asked.URL)
	if err != nil {
		return nil, err
	}
	began := p.now()
	answer, err := p.do(ctx, &asked, to)
	if p.left -= p.now().Sub(began); err != nil {
		return nil, fmt.Errorf("asking %s: %w", to.Host, err)
	}
	return message.Write(answer)
}

func (p *Proxy) do(ctx context.Context, asked *request, to *url.URL) (*response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.left, fmt.Errorf("it gave no answer in time: key services have %s for all files of an app", maxTime))
	defer cancel()
	client, err := p.client(&url.URL{Scheme: to.Scheme, Host: to.Host}, p.data[CA])
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	request, err := http.NewRequestWithContext(ctx, asked.Method, to.String(), bytes.NewReader(asked.Body))
	if err != nil {
		return nil, errors.New("the URL cannot be requested")
	}
	request.Header = asked.Header
	answer, err := client.Do(request)
	if err != nil {
		return nil, reason(ctx, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 == 3 {
		return nil, errors.New("it redirects, which is not followed")
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return nil, reason(ctx, err)
	case len(body) > maxAnswerBytes:
		return nil, errors.New("its answer is too long")
	}
	return &response{Status: answer.StatusCode, Header: answer.Header, Body: body}, nil
}

// reason returns the error without method and URL, which the caller names, or the cause of an exceeded time limit.
func reason(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.As(err, new(x509.UnknownAuthorityError)) {
		return errors.New("its certificate is signed by an unknown authority: add the authority as " + CA + " to the Secret that decryption.secretRef names in Git")
	}
	if about := (*url.Error)(nil); errors.As(err, &about) {
		return about.Err
	}
	return err
}

// hosts matches the hosts of each service, by the key of the Secret with the service's credentials.
var hosts = map[string]*regexp.Regexp{
	AWS:   regexp.MustCompile(`^(kms|sts)\.[a-z0-9-]+\.amazonaws\.(com|com\.cn|eu)$`),
	GCP:   regexp.MustCompile(`^(cloudkms|oauth2)\.googleapis\.com$`),
	Azure: regexp.MustCompile(`^([a-z0-9-]+\.(vault|managedhsm)\.(azure\.net|azure\.cn|usgovcloudapi\.net)|login\.(microsoftonline\.com|microsoftonline\.us|chinacloudapi\.cn|partner\.microsoftonline\.cn))$`),
}

// ofVault matches the only allowed path of Vault: to decrypt.
var ofVault = regexp.MustCompile(`^/v1/[A-Za-z0-9_./-]+/decrypt/[A-Za-z0-9_.-]+$`)

// allowed returns the URL of a request, if it goes to a service for which there are credentials.
func (p *Proxy) allowed(method, text string) (*url.URL, error) {
	to, err := url.Parse(text)
	if err != nil || to.Scheme != "https" || to.User != nil || to.Host == "" {
		return nil, errors.New("a key service is called at https:// only")
	}
	for key, host := range hosts {
		if len(p.data[key]) > 0 && host.MatchString(to.Host) {
			return to, nil
		}
	}
	if len(p.data[Vault]) == 0 || method != http.MethodPut || !ofVault.MatchString(to.Path) || strings.Contains(to.Path, "..") || to.RawQuery != "" {
		return nil, fmt.Errorf("%.100s is no key service for which the Secret has credentials", to.Host)
	}
	if only := strings.TrimSpace(string(p.data[VaultAddress])); only != "" && strings.TrimSuffix(only, "/") != to.Scheme+"://"+to.Host {
		return nil, fmt.Errorf("%.100s is another Vault than %s of the Secret names", to.Host, VaultAddress)
	}
	return to, nil
}
