// Package notice reports to people what happens to their apps: by messages in Slack and Teams, by webhooks, and by alerts of Alertmanager.
// Tenants' administrators name the addresses, so every request goes through the SSRF guard, within limits of time and size.
package notice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
)

// Type is what a receiver understands. The values are those of Flux's Provider.
type Type string

// The types. GenericHMAC is Generic with a signature.
const (
	Slack        Type = "slack"
	Teams        Type = "msteams"
	Generic      Type = "generic"
	GenericHMAC  Type = "generic-hmac"
	Alertmanager Type = "alertmanager"
)

// Severity of a notice.
type Severity string

// The severities.
const (
	Info  Severity = "info"
	Error Severity = "error"
)

// Notice is something that happened to an app, or to the repository of a tenant.
type Notice struct {
	// App as "<project>/<app>"; "" for the repository.
	App      string   `json:"app,omitempty"`
	Severity Severity `json:"severity"`
	// Reason is that of the condition, or Delivered or Recovered.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Revision that the app delivers.
	Revision string    `json:"revision,omitempty"`
	Since    time.Time `json:"timestamp"`
	// Resolved: an alert about the app is over.
	Resolved bool `json:"-"`
}

// Receiver is where notices are sent.
type Receiver struct {
	Type    Type
	Address string
	// Token signs what GenericHMAC sends; for other types it is a bearer token.
	Token string
	// Auth are other credentials, and what to trust.
	Auth transport.Auth
}

const (
	// maxAnswer is how much of an answer is read.
	maxAnswer = 4 << 10
	// maxNotices is how many notices one message lists.
	maxNotices = 20
)

var timeouts = transport.Timeouts{Whole: 20 * time.Second, Answer: 10 * time.Second, Stall: 5 * time.Second}

// LimitError means that the receiver wants nothing more for a while.
type LimitError struct {
	Host  string
	After time.Duration
}

// Error implements error.
func (e *LimitError) Error() string { return e.Host + " limits the number of messages" }

// RetryAfter is how long the receiver wants nothing.
func (e *LimitError) RetryAfter() time.Duration { return e.After }

// Batch are the notices of a tenant that are sent together, at the time Now.
type Batch struct {
	Tenant  string
	Notices []Notice
	Now     time.Time
}

// Send sends a batch with one request. It never returns the address, which is often a secret.
func Send(ctx context.Context, network *transport.Network, to Receiver, b Batch) error {
	to.Token = strings.TrimRight(to.Token, "\r\n") // A file ends in a line break, and the token at the receiver does not.
	at, err := addressOf(to)
	if err != nil {
		return err
	}
	body, err := bodyOf(to.Type, b.Tenant, b.Notices, b.Now)
	if err != nil {
		return fmt.Errorf("encoding the message: %w", err)
	}
	auth := to.Auth
	if to.Type != GenericHMAC && to.Token != "" {
		auth.BearerToken = to.Token
	}
	client, err := transport.NewClient(network, auth, at)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	_, err = transport.Within(ctx, timeouts, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, post(ctx, client, at, body, to)
	})
	return err
}

// addressOf checks the address of a receiver.
func addressOf(to Receiver) (*url.URL, error) {
	at, err := url.Parse(strings.TrimSpace(to.Address))
	if err != nil || at.Hostname() == "" || at.Scheme != "https" && at.Scheme != "http" {
		return nil, failure.New(failure.ErrInvalid, "the address of the receiver is not an http or https URL: write it as address into the Secret; %s", to.Auth.Write("address"))
	}
	if to.Type == GenericHMAC && to.Token == "" {
		return nil, failure.New(failure.ErrInvalid, "the Secret has no key token, by which messages are signed: add it; %s", to.Auth.Write("address", "token"))
	}
	if to.Type == Alertmanager && !strings.HasSuffix(strings.TrimSuffix(at.Path, "/"), "/api/v2/alerts") {
		at = at.JoinPath("api/v2/alerts")
	}
	at.User, at.Fragment = nil, ""
	return at, nil
}

func post(ctx context.Context, client *http.Client, at *url.URL, body []byte, to Receiver) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(body))
	if err != nil {
		return failure.New(failure.ErrInvalid, "the address of the receiver cannot be used")
	}
	req.Header.Set("Content-Type", "application/json")
	if to.Type == GenericHMAC {
		req.Header.Set("X-Signature", signature(to.Token, body))
	}
	res, err := client.Do(req)
	if err != nil {
		return to.Auth.NameSecret(transport.RequestError(err, at.Host))
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil && res.StatusCode >= http.StatusMultipleChoices {
		answer = nil // The status says enough.
	}
	if res.StatusCode < http.StatusMultipleChoices {
		return nil
	}
	said := few.Quote(hide(string(answer), to))
	switch {
	case res.StatusCode == http.StatusTooManyRequests:
		return &LimitError{Host: at.Host, After: transport.RetryAfter(res.Header.Get("Retry-After"))}
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden:
		return failure.New(failure.ErrAuthentication, "%s does not take the message (%d, %q): check the address and the token in the Secret; %s", at.Host, res.StatusCode, said,
			to.Auth.Write("address", "token"))
	case res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusGone:
		return failure.New(failure.ErrNotFound, "%s has no such webhook (%d, %q): it may have been deleted; check the address in the Secret; %s", at.Host, res.StatusCode, said,
			to.Auth.Write("address"))
	case res.StatusCode >= http.StatusInternalServerError:
		return failure.New(failure.ErrServer, "%s answered %d %s", at.Host, res.StatusCode, http.StatusText(res.StatusCode))
	}
	return failure.New(failure.ErrInvalid, "%s does not take the message (%d): %s", at.Host, res.StatusCode, said)
}

// hide removes the secrets of a receiver, its address among them, from a text.
func hide(text string, to Receiver) string {
	auth := to.Auth
	auth.BearerToken = to.Token
	text = auth.Redact(text)
	if at, err := url.Parse(to.Address); err == nil && len(at.Path) > 1 {
		text = strings.ReplaceAll(text, at.Path, "***")
	}
	return text
}

var errType = errors.New("unknown type of receiver")
