// Package transport connects to the servers from which sources are fetched: which addresses may be reached (the SSRF guard, Network), which
// host gets which credentials (Auth and the clients made with it), and how long a server may take (Timeouts).
package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/lru"
	"github.com/kubeop/kubeop/delivery/reserved"
)

// Network is the SSRF guard of all connections to servers. Because tenants write the URLs, it checks the address that is really dialed;
// what a name resolved to before, or where a server redirects, does not matter.
//
// It refuses the addresses that package reserved lists, those of this machine's interfaces, the cluster's own as reported by Cluster, and
// the services that Own names. Safe for concurrent use; a nil Network allows nothing more.
type Network struct {
	// Allowed may always be reached.
	Allowed []netip.Prefix
	// Private says that addresses of private networks, in which clusters are, are refused too, and all others that are not routed in the Internet.
	Private bool
	// Named are hosts, as name:port, that administrators name in settings. They may be reached even if they are in the cluster or in a
	// private network.
	Named []string
	// Cluster describes an address of the cluster's own, such as "the address of a node", and returns "" for any other. Nil: none is.
	Cluster func(context.Context, netip.Addr) (string, error)
	// Own are the hosts, by name or address, of services that no source may reach: the API server, and the operator's own.
	Own []string
	// TokenServices are, by registry, the other hosts that get the credentials for it in order to issue a token, in addition to wellKnown;
	// both as host or host:port.
	TokenServices map[string]string
	// Clock says when tokens end. Default: the real one.
	Clock clock.PassiveClock

	// installations are those of GitHub Apps, by their credentials.
	mu            sync.Mutex
	installations *lru.Cache[string, *installation]
	// proxies are the proxies that the environment of the process names; administrators set them, not tenants.
	proxies sync.Map
	// resting are the mirrors of registries that did not answer.
	resting mirrors
}

// Dial connects to a server. A refused address is ErrInvalid.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	// Shorter than limits.answer, to distinguish a failed connection from a missing answer.
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if n == nil {
		n = &Network{}
	}
	if _, known := n.proxies.Load(address); !known {
		dialer.ControlContext = func(ctx context.Context, _, to string, _ syscall.RawConn) error {
			return n.check(ctx, address, to)
		}
	}
	conn, err := dialer.DialContext(ctx, network, address)
	var explained *failure.Error
	if errors.As(err, &explained) {
		return nil, explained
	}
	return conn, err
}

// check refuses the address that is about to be dialed for a host, which is name:port.
func (n *Network) check(ctx context.Context, asked, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("reading the address %s: %w", address, err)
	}
	host, _, _ := net.SplitHostPort(asked)
	ip := reserved.Embedded(to.Addr())
	if slices.ContainsFunc(n.Allowed, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	what, err := n.refuses(ctx, asked, ip)
	for _, behind := range reserved.Translations(ip) {
		if what != "" || err != nil {
			break
		}
		if what, err = n.refuses(ctx, asked, behind); what != "" {
			what = "an address that a gateway of the site may translate to " + behind.String() + ", " + what
		}
	}
	if what == "" || err != nil {
		return err
	}
	leads := ip.String() + " is "
	if host != ip.String() {
		leads = few.Quote(host) + " leads to " + ip.String() + ", "
	}
	return failure.New(failure.ErrInvalid, "%s%s, which no source may reach: use another address, or ask %s to list the address in %s", leads, what, command.Administrator, command.OfChart("allowedAddresses"))
}

// refuses returns the description of an address that a source may not reach; "" for any other. asked is the host that the source names.
func (n *Network) refuses(ctx context.Context, asked string, ip netip.Addr) (string, error) {
	if what := reserved.As(ip); what != "" {
		return what, nil
	}
	if n.Private && isPrivate(ip) {
		return "an address of a private network", nil
	}
	if n.isOwn(ctx, ip) {
		return "an address of the operator or the API server", nil
	}
	if n.Cluster == nil || slices.ContainsFunc(n.Named, func(name string) bool { return strings.EqualFold(name, asked) }) {
		return "", nil
	}
	what, err := n.Cluster(ctx, ip)
	if err != nil {
		return "", fmt.Errorf("finding out whether %s is the cluster's own: %w", ip, err)
	}
	return what, nil
}

// special are networks that are not routed in the Internet, beside the private ones: for benchmarks (RFC 2544), for future use (RFC 1112), and by which sites translate to their own IPv4
// addresses (RFC 8215).
var special = []netip.Prefix{netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b:1::/48")}

func isPrivate(ip netip.Addr) bool {
	return slices.ContainsFunc(slices.Concat(reserved.Private(), special), func(p netip.Prefix) bool { return p.Contains(ip) })
}

// now is the time by the clock.
func (n *Network) now() time.Time {
	if n.Clock == nil {
		return clock.RealClock{}.Now()
	}
	return n.Clock.Now()
}

// IntoCluster returns the network for hosts that administrators name, which may also be in the cluster.
func (n *Network) IntoCluster() *Network {
	if n == nil {
		return nil
	}
	return &Network{Allowed: n.Allowed, Own: n.Own}
}

// isOwn reports whether the address belongs to this machine or to a service in Own. Names are resolved for each connection, of which there
// are few.
func (n *Network) isOwn(ctx context.Context, ip netip.Addr) bool {
	interfaces, _ := net.InterfaceAddrs()
	for _, at := range interfaces {
		if mine, err := netip.ParsePrefix(at.String()); err == nil && mine.Addr().Unmap() == ip {
			return true
		}
	}
	for _, host := range n.Own {
		if is, err := netip.ParseAddr(host); err == nil {
			if is.Unmap() == ip {
				return true
			}
			continue
		}
		found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if slices.ContainsFunc(found, func(is netip.Addr) bool { return is.Unmap() == ip }) {
			return true
		}
	}
	return false
}

// proxy returns the proxy for a request, by the environment of the process. The proxy resolves the target's address and then has to guard
// the network; an address that is written in the URL is still checked here.
func (n *Network) proxy(req *http.Request) (*url.URL, error) {
	through, err := http.ProxyFromEnvironment(req)
	if through == nil || err != nil || n == nil {
		return through, err
	}
	if ip, err := netip.ParseAddr(req.URL.Hostname()); err == nil {
		asked := net.JoinHostPort(req.URL.Hostname(), port(req.URL))
		if err := n.check(req.Context(), asked, netip.AddrPortFrom(ip, 0).String()); err != nil {
			return nil, err
		}
	}
	at := through.Port()
	if at == "" {
		at = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[strings.ToLower(through.Scheme)]
	}
	if at == "" {
		at = "80"
	}
	n.proxies.Store(net.JoinHostPort(through.Hostname(), at), true)
	return through, nil
}
