package request

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are the networks of proxies whose header X-Forwarded-For is read.
type Proxies []netip.Prefix

// Client returns the address of who sent a request. That is the one of its connection, or, if a proxy connected, the last one in X-Forwarded-For that is
// no proxy's: each proxy appends whom it got the request from, and all before that may be the client's invention. If the header says nothing more,
// it is the last proxy that is known.
func (p Proxies) Client(r *http.Request) string {
	connected, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	client := plain(connected.Addr())
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for p.trusts(client) && len(hops) > 0 {
		hop, ok := parseHop(hops[len(hops)-1])
		if !ok {
			break
		}
		client, hops = hop, hops[:len(hops)-1]
	}
	return client.String()
}

func (p Proxies) trusts(address netip.Addr) bool {
	for _, network := range p {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// parseHop reads an address, which some proxies write with a port.
func parseHop(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if with, err := netip.ParseAddrPort(text); err == nil {
		return plain(with.Addr()), true
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return plain(address), err == nil
}

func plain(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }

type addressKey struct{}

// Address returns where the request of a context came from, without a port, "" outside of a request.
func Address(ctx context.Context) string {
	address, _ := ctx.Value(addressKey{}).(string)
	return address
}
