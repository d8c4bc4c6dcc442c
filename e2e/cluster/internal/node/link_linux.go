package node

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/kubeop/kubeop/e2e/cluster/internal/network"
)

// insideLink is the name of the node's end of the link.
const insideLink = "eth0"

// ChoosePlan returns a plan that overlaps no address or route of this host. It reserves the block until this process ends, with an abstract
// socket of the block's name: other clusters skip blocks whose socket exists.
func ChoosePlan() (network.Plan, error) {
	used, err := usedPrefixes()
	if err != nil {
		return network.Plan{}, err
	}
	return network.Choose(used, func(block netip.Addr) bool {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return false
		}
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@kubeop-cluster-" + block.String()}); err != nil {
			unix.Close(fd)
			return false
		}
		return true
	})
}

func usedPrefixes() ([]netip.Prefix, error) {
	var used []netip.Prefix
	add := func(ipNet *net.IPNet) {
		if ipNet == nil {
			return
		}
		if prefix, err := netip.ParsePrefix(ipNet.String()); err == nil {
			used = append(used, prefix.Masked())
		}
	}
	routes, err := netlink.RouteListFiltered(unix.AF_INET, &netlink.Route{}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("listing the host's routes: %w", err)
	}
	for _, route := range routes {
		add(route.Dst)
	}
	addresses, err := netlink.AddrList(nil, unix.AF_INET)
	if err != nil {
		return nil, fmt.Errorf("listing the host's addresses: %w", err)
	}
	for _, address := range addresses {
		add(address.IPNet)
	}
	return used, nil
}

// Connect creates the link between the host and the node, whose init has the given PID, and routes pods and Services over it. When the node's
// network namespace ends, the kernel removes the link and its routes.
func (n Node) Connect(pid int) error {
	name := Link(n.Cluster)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: insideLink, PeerNamespace: netlink.NsPid(pid)}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("making the link %s: %w", name, err)
	}
	link, err := configure(name, netip.PrefixFrom(n.Plan.Host, n.Plan.LinkBits))
	if err != nil {
		return err
	}
	for _, prefix := range []netip.Prefix{n.Plan.Pods, n.Plan.Services} {
		if err := addRoute(link, prefix, n.Plan.Node); err != nil {
			return err
		}
	}
	return nil
}

// connectInside does the same from the node's side.
func (n Node) connectInside() error {
	if _, err := configure("lo", netip.Prefix{}); err != nil {
		return err
	}
	link, err := configure(insideLink, netip.PrefixFrom(n.Plan.Node, n.Plan.LinkBits))
	if err != nil {
		return err
	}
	if err := addRoute(link, netip.PrefixFrom(netip.IPv4Unspecified(), 0), n.Plan.Host); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("turning on forwarding: %w", err)
	}
	return nil
}

// configure sets a device's address, if that is valid, and turns the device on.
func configure(name string, address netip.Prefix) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("finding device %s: %w", name, err)
	}
	if address.IsValid() {
		ipNet := &net.IPNet{IP: address.Addr().AsSlice(), Mask: net.CIDRMask(address.Bits(), 32)}
		if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet}); err != nil {
			return nil, fmt.Errorf("giving %s the address %s: %w", name, address, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return nil, fmt.Errorf("turning on %s: %w", name, err)
	}
	return link, nil
}

func addRoute(link netlink.Link, to netip.Prefix, via netip.Addr) error {
	route := &netlink.Route{
		LinkIndex: link.Attrs().Index, Gw: via.AsSlice(),
		Dst: &net.IPNet{IP: to.Addr().AsSlice(), Mask: net.CIDRMask(to.Bits(), 32)},
	}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("routing %s over %s: %w", to, link.Attrs().Name, err)
	}
	return nil
}

// removeLink removes the host's end of the link if it still exists. The kernel does so too, but only some time after the node's last process
// has ended.
func removeLink(name string) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding device %s: %w", name, err)
	}
	if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("removing device %s: %w", name, err)
	}
	return nil
}
