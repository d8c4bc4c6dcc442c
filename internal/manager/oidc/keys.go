package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
)

const (
	// pause is the minimum time between two requests to an issuer: anyone can send tokens with unknown keys, and each would cause a request.
	pause = 10 * time.Second
	// refreshEvery is how often the keys are fetched without a special reason, so that keys that the issuer withdrew stop counting.
	refreshEvery = 10 * time.Minute
	// maxAge is how long keys are used while their issuer does not answer.
	maxAge = 24 * time.Hour
	// fetchTimeout is how long a whole fetch may take, and waitTimeout how long a request waits for it.
	fetchTimeout = 10 * time.Second
	waitTimeout  = 5 * time.Second

	maxAnswer  = 1 << 20
	maxKeys    = 100
	minRSABits = 2048
)

// keys are the public keys of an issuer.
type keys struct {
	url    string
	client *http.Client
	now    func() time.Time

	mu  sync.Mutex
	set []jose.JSONWebKey
	// fetched is when the issuer answered last, and asked when the last fetch began. why is the error of that fetch.
	fetched, asked time.Time
	why            error
	// running is closed when the current fetch ends; nil if there is none.
	running chan struct{}
}

// attempt is one verification. It keeps the error of the KeySet, because go-oidc does not wrap it.
type attempt struct {
	*keys
	why error
}

// VerifySignature implements oidc.KeySet.
func (a *attempt) VerifySignature(ctx context.Context, text string) ([]byte, error) {
	parsed, err := jose.ParseSignedCompact(text, algorithms)
	if err != nil {
		return nil, err
	}
	payload, err := a.verify(parsed)
	if errors.Is(err, errNoKey) {
		a.refresh(ctx)
		payload, err = a.verify(parsed)
	}
	if errors.Is(err, errNoKey) && a.check() != nil {
		a.why = ErrUnavailable
	}
	return payload, err
}

var errNoKey = errors.New("the issuer has no such key")

// verify verifies a signature. It returns errNoKey if a key that is not here could verify it.
func (k *keys) verify(parsed *jose.JSONWebSignature) ([]byte, error) {
	header := parsed.Signatures[0].Header
	k.mu.Lock()
	set := k.set
	if age := k.now().Sub(k.fetched); age > maxAge {
		set = nil
	}
	k.mu.Unlock()
	wrong := errNoKey
	for _, key := range set {
		if header.KeyID != "" && key.KeyID != header.KeyID || key.Algorithm != "" && key.Algorithm != header.Algorithm {
			continue
		}
		payload, err := parsed.Verify(key.Key)
		if err == nil {
			return payload, nil
		}
		if header.KeyID != "" { // The token names this key, so another key would not help.
			wrong = err
		}
	}
	return nil, wrong
}

// check returns why the last fetch failed.
func (k *keys) check() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fetched.IsZero() && k.why == nil {
		return errors.New("it did not answer yet")
	}
	return k.why
}

// refresh fetches the keys and waits for them, unless they were fetched shortly before. Concurrent calls share one fetch.
func (k *keys) refresh(ctx context.Context) {
	k.mu.Lock()
	running := k.running
	if running == nil {
		if since := k.now().Sub(k.asked); since >= 0 && since < pause {
			k.mu.Unlock()
			return
		}
		running = make(chan struct{})
		k.running, k.asked = running, k.now()
		// The fetch is for others too, so it does not end with the first request.
		go k.fetch(context.WithoutCancel(ctx), running)
	}
	k.mu.Unlock()
	limit := time.NewTimer(waitTimeout)
	defer limit.Stop()
	select {
	case <-running:
	case <-limit.C:
	case <-ctx.Done():
	}
}

func (k *keys) fetch(ctx context.Context, ended chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	set, err := k.read(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.set, k.fetched = set, k.now()
	}
	if (err == nil) != (k.why == nil) || k.fetched.IsZero() {
		logr.FromContextOrDiscard(ctx).Info("Asked an issuer of ID tokens for its keys", "issuer", k.url, "answers", err == nil, "why", fmt.Sprint(err))
	}
	k.why, k.running = err, nil
	close(ended)
}

// read fetches the configuration of the issuer, which says where the keys are, and then the keys.
func (k *keys) read(ctx context.Context) ([]jose.JSONWebKey, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, k.client), k.url)
	if err != nil {
		return nil, err
	}
	var configuration struct {
		URL string `json:"jwks_uri"`
	}
	if err := provider.Claims(&configuration); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(configuration.URL, "https://") {
		return nil, errors.New("its keys are not at an https URL")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, configuration.URL, nil)
	if err != nil {
		return nil, err
	}
	answer, err := k.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asked for its keys, it answers %s", answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&set); err != nil {
		return nil, fmt.Errorf("reading its keys: %w", err)
	}
	return usable(set.Keys)
}

// usable returns the keys that verify signatures, and leaves out the others.
func usable(all []json.RawMessage) (set []jose.JSONWebKey, err error) {
	for _, raw := range all {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) != nil || !key.Valid() || key.Use != "" && key.Use != "sig" {
			continue
		}
		switch public := key.Key.(type) {
		case *rsa.PublicKey:
			if public.N.BitLen() < minRSABits {
				continue
			}
		case *ecdsa.PublicKey, ed25519.PublicKey:
		default:
			continue
		}
		set = append(set, key)
	}
	if len(set) == 0 || len(set) > maxKeys {
		return nil, fmt.Errorf("it has %d keys that verify signatures; it may have 1 to %d", len(set), maxKeys)
	}
	return set, nil
}

// Run fetches the keys of each issuer regularly, until the context ends.
func (i *Issuers) Run(ctx context.Context) error {
	var group errgroup.Group
	for _, one := range i.all {
		group.Go(func() error {
			one.keys.follow(ctx)
			return nil
		})
	}
	return group.Wait()
}

func (k *keys) follow(ctx context.Context) {
	for {
		k.refresh(ctx)
		next := refreshEvery
		if k.check() != nil {
			next = pause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// newClient returns an HTTP client for an issuer. It allows only HTTPS.
func newClient(caFile string) (*http.Client, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
	if caFile != "" {
		text, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("reading caFile: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("caFile %s has no certificate", caFile)
		}
	}
	redirected := func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != "https" || len(via) > 3 {
			return errors.New("it redirects too often, or not to https")
		}
		return nil
	}
	return &http.Client{Transport: bounded{transport}, CheckRedirect: redirected, Timeout: fetchTimeout}, nil
}

// bounded limits how much of an answer is read.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	}
	return answer, err
}
