package request

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are the networks of proxies whose header X-Forwarded-For is read.
type Proxies []netip.Prefix

// Client returns the address of the client of a request. That is the address of the connection or, if a proxy connected, the last address in
// X-Forwarded-For that is no proxy: each proxy appends the address of its client, and the client may have invented all addresses before. If the header
// has no other address, it is the last known proxy.
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

// parseHop parses an address. Some proxies append a port.
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

// Address returns the address of the client of the request in a context, without a port; "" outside of a request.
func Address(ctx context.Context) string {
	address, _ := ctx.Value(addressKey{}).(string)
	return address
}
