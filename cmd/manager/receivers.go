package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/manager/outbox"
)

// maxAnswerHeaders is how many bytes of the headers of an answer of a webhook are read.
const maxAnswerHeaders = 16 << 10

// receivers is the way to webhooks. Tenants write their URLs, so it goes through the SSRF guard: to public addresses, and to those that a
// setting allows.
type receivers struct {
	network   *transport.Network
	through   *http.Transport
	plainHTTP bool
}

// newReceivers returns the way to public addresses and those that are allowed. own are the hosts, by name or address, of services that no
// webhook may lead to otherwise: the API server.
func newReceivers(allowed []netip.Prefix, own []string, plainHTTP bool) *receivers {
	network := &transport.Network{Allowed: allowed, Own: own, Private: true}
	return &receivers{network: network, through: network.HTTP(maxAnswerHeaders), plainHTTP: plainHTTP}
}

// RoundTrip implements http.RoundTripper. It checks the address that it connects to, whatever the host led to before.
func (r *receivers) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := r.checkScheme(request.URL); err != nil {
		return nil, err
	}
	answer, err := r.through.RoundTrip(request)
	return answer, explain(err)
}

// Check says why nothing is sent to a URL, by an outbox.RefusedError, which does not reveal the addresses of a host.
func (r *receivers) Check(ctx context.Context, u *url.URL) error {
	if err := r.checkScheme(u); err != nil {
		return err
	}
	return explain(r.network.CheckURL(ctx, u))
}

func (r *receivers) checkScheme(u *url.URL) error {
	switch {
	case u.Scheme == "https" || u.Scheme == "http" && r.plainHTTP:
		return nil
	case u.Scheme == "http":
		return &outbox.RefusedError{Why: "The URL is not https. Who installed the manager may allow http by manager.webhooks.plainHTTP of the chart."}
	}
	return &outbox.RefusedError{Why: "The URL is not https."}
}

// explain says that a host cannot be reached, and neither by which address nor whether there is one: otherwise tenants would find out which
// names the cluster's own DNS resolves.
func explain(err error) error {
	var name *net.DNSError
	if errors.Is(err, failure.ErrInvalid) || errors.As(err, &name) {
		return &outbox.RefusedError{Why: "The host has no address, or one that webhooks may not reach, such as one of a private network. Who installed the manager may allow addresses by manager.webhooks.allowedAddresses of the chart."}
	}
	return err
}
