// Package reserved lists the addresses that tenants must not reach in any cluster, neither with pods nor with URLs that the operator
// fetches (SSRF guard).
package reserved

import (
	"net/netip"
	"slices"
)

// Range is a reserved network with its description, such as "a loopback address".
type Range struct {
	Network netip.Prefix
	What    string
}

const metadata = "the metadata service of a cloud"

// ranges are the addresses of the machine itself, link-local addresses, which include the metadata services of clouds, and addresses that
// belong to no single host.
var ranges = []Range{
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "an address of no host"},
	{netip.MustParsePrefix("::/128"), "an address of no host"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "a broadcast address"},
	// The IPv6 addresses of the metadata services of AWS, Google Cloud, Azure, Alibaba Cloud and Oracle, in addition to 169.254.169.254.
	{netip.MustParsePrefix("fd00:ec2::254/128"), metadata},
	{netip.MustParsePrefix("fd20:ce::254/128"), metadata},
	{netip.MustParsePrefix("168.63.129.16/32"), metadata},
	{netip.MustParsePrefix("100.100.100.200/32"), metadata},
	{netip.MustParsePrefix("192.0.0.192/32"), metadata},
}

// translated is the network in which a NAT64 gateway maps IPv4 addresses (RFC 6052) to their last four bytes.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// Embedded returns the address without its zone. If the address stands for an IPv4 address, it returns that.
func Embedded(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if translated.Contains(ip) {
		all := ip.As16()
		return netip.AddrFrom4([4]byte(all[12:]))
	}
	return ip
}

// local is the network in which sites choose prefixes for NAT64 gateways of their own (RFC 8215).
var local = netip.MustParsePrefix("64:ff9b:1::/48")

// Translations returns the IPv4 addresses to which a NAT64 gateway of a site may translate an address; none if it is not in the network for these. They are
// several, because only the site knows the length of its prefix, which says where the IPv4 address is (RFC 6052, section 2.2). Those in 0.0.0.0/8 are left
// out: they are the zeros beside the IPv4 address, and lead to no host.
func Translations(ip netip.Addr) (all []netip.Addr) {
	if !local.Contains(ip) {
		return nil
	}
	b := ip.As16()
	for _, at := range [][4]byte{{b[6], b[7], b[9], b[10]}, {b[7], b[9], b[10], b[11]}, {b[9], b[10], b[11], b[12]}, {b[12], b[13], b[14], b[15]}} {
		if at[0] != 0 {
			all = append(all, netip.AddrFrom4(at))
		}
	}
	return all
}

// As returns the description of a reserved address; "" for any other. The address must come from Embedded.
func As(ip netip.Addr) string {
	for _, r := range ranges {
		if r.Network.Contains(ip) {
			return r.What
		}
	}
	return ""
}

// Metadata are the networks in which clouds have their metadata services, link-local ones as a whole.
func Metadata() []netip.Prefix {
	var all []netip.Prefix
	for _, r := range ranges {
		if r.What == metadata || r.What == "a link-local address" {
			all = append(all, r.Network)
		}
	}
	return all
}

// private are the networks of RFC 1918, RFC 6598 and RFC 4193.
var private = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fc00::/7"),
}

// Private are the networks that are routed only within a site: nearly every cluster has its pods, Services and nodes there.
func Private() []netip.Prefix { return slices.Clone(private) }
