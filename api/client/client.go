// Package client calls the management API of kubeop. `make generate` makes its types and a method for each operation of docs/api/openapi.json.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"time"
)

// Options is which manager to call, and as whom.
type Options struct {
	// Server is the URL of the manager, such as https://kubeop.example.com.
	Server string
	// Token is sent with every request. Without one, only the operations answer that need none.
	Token string
	// Roots are the authorities of the manager's certificate. Nil: those of the system.
	Roots *x509.CertPool
	// Timeout is how long one answer may take. Streams have none, but may not be silent. Default: 30 s, twice what an operation may take.
	Timeout time.Duration
}

// Client calls a manager. It may be used by several goroutines.
type Client struct {
	server  *url.URL
	token   string
	timeout time.Duration
	// silence is how long a stream may say nothing: the manager sends a comment every 15 s.
	silence time.Duration
	http    *http.Client
}

// Answer is what the manager answered with a status below 300.
type Answer[T any] struct {
	Status int
	Header http.Header
	Body   T
}

// ErrNotModified says that the answer is one that the caller has, by IfNoneMatch of the parameters.
var ErrNotModified = errors.New("the answer did not change")

const (
	defaultTimeout = 30 * time.Second
	// maxAnswer bounds what is read of one answer.
	maxAnswer = 256 << 20
)

// New returns a Client. A token is sent over plain HTTP only to this machine.
func New(o Options) (*Client, error) {
	server, err := url.Parse(o.Server)
	if err != nil {
		// What url.Parse says may repeat a password.
		return nil, errors.New("the URL of the manager cannot be read: write https:// and a host")
	}
	switch plain := server.Scheme == "http"; {
	case server.Hostname() == "" || !plain && server.Scheme != "https":
		return nil, errors.New("the URL of the manager has to begin with https:// and a host")
	case server.User != nil || server.RawQuery != "" || server.Fragment != "":
		return nil, errors.New("the URL of the manager may have only a host, a port and a path")
	case plain && o.Token != "" && !isLoopback(server.Hostname()):
		return nil, errors.New("the token is not sent over plain http://, which others can read, but to this machine: write https://")
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: o.Timeout, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20, ForceAttemptHTTP2: true,
	}
	return &Client{server: server, token: o.Token, timeout: o.Timeout, silence: 45 * time.Second, http: &http.Client{
		Transport: transport,
		// The token would go along.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// request is one that is not sent yet.
type request struct {
	*Client
	method, path string
	parameters   url.Values
	headers      http.Header
	body         any
}

func (c *Client) request(method, path string) *request {
	return &request{Client: c, method: method, path: path, parameters: url.Values{}, headers: http.Header{}}
}

// query adds a parameter, unless it has its zero value.
func (r *request) query(name string, value any) *request {
	if text := textOf(value); text != "" {
		r.parameters.Set(name, text)
	}
	return r
}

// header adds a header, unless it is empty.
func (r *request) header(name string, value any) *request {
	if text := textOf(value); text != "" {
		r.headers.Set(name, text)
	}
	return r
}

// json is the body of the request.
func (r *request) json(body any) *request {
	r.headers.Set("Content-Type", "application/json")
	r.body = body
	return r
}

// textOf returns a value as a parameter has it, "" for the zero value.
func textOf(value any) string {
	if reflect.ValueOf(value).IsZero() {
		return ""
	}
	if at, is := value.(time.Time); is {
		return at.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(value)
}

// do sends the request. It returns an error for every answer from 300 on.
func (r *request) do(ctx context.Context, accept string) (*http.Response, error) {
	// Names in the path are escaped already, so that a slash of one is no part of the path.
	address := strings.TrimSuffix(r.server.String(), "/") + r.path
	if len(r.parameters) > 0 {
		address += "?" + r.parameters.Encode()
	}
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("writing the body: %w", err)
		}
		body = bytes.NewReader(text)
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	sent.Header = r.headers
	sent.Header.Set("Accept", accept)
	sent.Header.Set("User-Agent", "kubeop-client")
	if r.token != "" {
		sent.Header.Set("Authorization", "Bearer "+r.token)
	}
	answer, err := r.http.Do(sent)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode < http.StatusMultipleChoices {
		return answer, nil
	}
	// Nothing was written, so closing cannot lose anything.
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusNotModified {
		return nil, ErrNotModified
	}
	return nil, refusalOf(answer)
}

// send sends a request, and reads its answer.
func send[T any](ctx context.Context, r *request) (*Answer[T], error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	received, err := r.do(ctx, "application/json, "+problemType)
	if err != nil {
		return nil, err
	}
	defer func() { _ = received.Body.Close() }()
	answer := &Answer[T]{Status: received.StatusCode, Header: received.Header}
	if received.StatusCode == http.StatusNoContent {
		return answer, nil
	}
	if err := json.NewDecoder(io.LimitReader(received.Body, maxAnswer)).Decode(&answer.Body); err != nil {
		return nil, fmt.Errorf("reading the answer to %s %s: %w", r.method, r.path, err)
	}
	return answer, nil
}

// All reads all pages of a list. page reads the one of a cursor, which is "" for the first, and returns the cursor of the next, "" after the last.
func All[T any](page func(cursor string) (items []T, next string, err error)) ([]T, error) {
	var all []T
	for cursor := ""; ; {
		items, next, err := page(cursor)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		if next == "" {
			return all, nil
		}
		if next == cursor {
			return nil, errors.New("the next page is the same page again")
		}
		cursor = next
	}
}
