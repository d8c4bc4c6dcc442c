package fetch

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
)

// AllowedAddresses names the operator's setting that lets sources reach an address which is refused by default.
const AllowedAddresses = "ALLOWED_ADDRESSES"

// Network is the one way from this package to servers. URLs are written by tenants, so it decides where they may lead, by
// the address that is really dialed: what a name resolved to before, or where a server redirects, does not matter.
//
// Refused are the addresses of the machine itself (loopback, its interfaces, 0.0.0.0), of its link (169.254.0.0/16 and
// fe80::/10, where clouds have their metadata), multicast and broadcast, the metadata services of clouds elsewhere, and the
// services that Own names. Private networks are not: the Git servers of a company are there. Safe for concurrent use; a nil
// Network allows nothing more.
type Network struct {
	// Allowed may be reached whatever else is said of them.
	Allowed []netip.Prefix
	// Own are the hosts, by name or address, of services that no source may reach: the API server, and the operator's own.
	Own []string

	// proxies are what the environment of the process names as proxies; they are the administrator's, not a tenant's.
	proxies sync.Map
}

// refusedNetworks are those no source may reach, each with what it is.
var refusedNetworks = []struct {
	network netip.Prefix
	what    string
}{
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "an address of no host"},
	{netip.MustParsePrefix("::/128"), "an address of no host"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "a broadcast address"},
	// Where AWS, Google Cloud, Azure, Alibaba Cloud and Oracle have their metadata besides 169.254.169.254.
	{netip.MustParsePrefix("fd00:ec2::254/128"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("168.63.129.16/32"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("100.100.100.200/32"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("192.0.0.192/32"), "the metadata service of a cloud"},
}

// translated is where a NAT64 gateway finds the addresses of IPv4 (RFC 6052), which are their last four bytes.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// dial connects to a server. An address that may not be reached is ErrInvalid.
func (n *Network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	// Sooner than limits.answer, so that what could not be connected to is known from what gives no answer.
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if n == nil {
		n = &Network{}
	}
	if _, known := n.proxies.Load(address); !known {
		host, _, _ := net.SplitHostPort(address)
		dialer.ControlContext = func(ctx context.Context, _, to string, _ syscall.RawConn) error {
			return n.check(ctx, host, to)
		}
	}
	conn, err := dialer.DialContext(ctx, network, address)
	var explained *failure
	if errors.As(err, &explained) {
		return nil, explained
	}
	return conn, err
}

// check refuses the address that is about to be dialed for a host.
func (n *Network) check(ctx context.Context, host, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("reading the address %s: %w", address, err)
	}
	ip := embedded(to.Addr())
	if slices.ContainsFunc(n.Allowed, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	what := refusedAs(ip)
	if what == "" && n.isOwn(ctx, ip) {
		what = "an address of the operator or the API server"
	}
	if what == "" {
		return nil
	}
	leads := ip.String() + " is "
	if host != ip.String() {
		leads = printable(host) + " leads to " + ip.String() + ", "
	}
	return fail(ErrInvalid, "%s%s, which no source may reach: use another address, or have the administrator allow it in the operator's setting %s", leads, what, AllowedAddresses)
}

// embedded is the address without its zone, and of one that stands for an address of IPv4, that.
func embedded(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if translated.Contains(ip) {
		all := ip.As16()
		return netip.AddrFrom4([4]byte(all[12:]))
	}
	return ip
}

func refusedAs(ip netip.Addr) string {
	for _, r := range refusedNetworks {
		if r.network.Contains(ip) {
			return r.what
		}
	}
	return ""
}

// isOwn says whether the address is one of this machine or of a service in Own. Names are looked up anew for each
// connection, of which there are few.
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

// proxy is the proxy for a request, as the environment of the process says. Through one the target's address is found by
// the proxy, which then is what guards the network; an address that is written in the URL is still checked here.
func (n *Network) proxy(req *http.Request) (*url.URL, error) {
	through, err := http.ProxyFromEnvironment(req)
	if through == nil || err != nil || n == nil {
		return through, err
	}
	if ip, err := netip.ParseAddr(req.URL.Hostname()); err == nil {
		if err := n.check(req.Context(), req.URL.Hostname(), netip.AddrPortFrom(ip, 0).String()); err != nil {
			return nil, err
		}
	}
	port := through.Port()
	if port == "" {
		port = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[strings.ToLower(through.Scheme)]
	}
	if port == "" {
		port = "80"
	}
	n.proxies.Store(net.JoinHostPort(through.Hostname(), port), true)
	return through, nil
}
