package transport

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

func TestTheNetworkRefusesInternalAddresses(t *testing.T) {
	network := &Network{Own: []string{"10.96.0.1"}}
	for address, what := range map[string]string{
		"127.0.0.1": "loopback", "127.9.9.9": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback",
		"169.254.169.254": "link-local", "fe80::1": "link-local", "::ffff:169.254.169.254": "link-local", "64:ff9b::a9fe:a9fe": "link-local",
		"64:ff9b:1::a9fe:a9fe": "an address that a gateway of the site may translate to 169.254.169.254, a link-local address", "64:ff9b:1:7f00:0:100:808:808": "loopback",
		"64:ff9b:1::a60:1": "API server", "64:ff9b:1::808:808": "", "64:ff9b:1::a60:2": "",
		"0.0.0.0": "no host", "::": "no host", "224.0.0.1": "multicast", "ff02::1": "multicast", "255.255.255.255": "broadcast",
		"fd00:ec2::254": "metadata", "168.63.129.16": "metadata",
		"10.96.0.1": "API server", "::ffff:10.96.0.1": "API server",
		"10.96.0.2": "", "192.168.1.1": "", "172.16.0.1": "", "100.64.0.1": "", "fd00::1": "", "1.1.1.1": "", "2606:4700::1111": "",
	} {
		t.Run(address, func(t *testing.T) {
			err := network.check(t.Context(), "git.example:443", net.JoinHostPort(address, "443"))
			if what == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if !errors.Is(err, failure.ErrInvalid) {
				t.Fatalf("got %v", err)
			}
			for _, says := range []string{"git.example leads to ", what, "an administrator of the cluster to list the address in allowedAddresses"} {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%q does not say %q", err, says)
				}
			}
			all := &Network{Own: network.Own, Allowed: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}
			if err := all.check(t.Context(), "git.example:443", net.JoinHostPort(address, "443")); err != nil {
				t.Errorf("refused though allowed: %v", err)
			}
		})
	}
}

// TestTheClustersOwnAddressesAreRefused, and that what is not known is not taken for safe; administrators may allow what they like.
func TestTheClustersOwnAddressesAreRefused(t *testing.T) {
	node := func(_ context.Context, ip netip.Addr) (string, error) {
		switch ip.String() {
		case "203.0.113.1":
			return "the address of a node", nil
		case "203.0.113.2":
			return "", errors.New("the cache is not started")
		}
		return "", nil
	}
	network := &Network{Cluster: node}
	err := network.check(t.Context(), "git.example:443", "203.0.113.1:443")
	if !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), "git.example leads to 203.0.113.1, the address of a node, which no source may reach") {
		t.Errorf("a node: %v", err)
	}
	if err := network.check(t.Context(), "git.example:443", "[::ffff:203.0.113.1]:443"); !errors.Is(err, failure.ErrInvalid) {
		t.Errorf("a node, as IPv6: %v", err)
	}
	if err := network.check(t.Context(), "git.example:443", "[64:ff9b:1::cb00:7101]:443"); !errors.Is(err, failure.ErrInvalid) {
		t.Errorf("a node, by a gateway of the site: %v", err)
	}
	if err := network.check(t.Context(), "git.example:443", "[64:ff9b:1::cb00:7102]:443"); err == nil || errors.Is(err, failure.ErrInvalid) {
		t.Errorf("while it is not known what is the cluster's, by a gateway of the site: %v", err)
	}
	if err := network.check(t.Context(), "git.example:443", "203.0.113.2:443"); err == nil || errors.Is(err, failure.ErrInvalid) {
		t.Errorf("while it is not known what is the cluster's: %v", err)
	}
	if err := network.check(t.Context(), "git.example:443", "203.0.113.3:443"); err != nil {
		t.Errorf("another: %v", err)
	}
	network.Allowed = append(network.Allowed, netip.MustParsePrefix("203.0.113.0/24"))
	for _, at := range []string{"203.0.113.1:443", "203.0.113.2:443"} {
		if err := network.check(t.Context(), "git.example:443", at); err != nil {
			t.Errorf("%s is allowed, and refused: %v", at, err)
		}
	}
	named := &Network{Cluster: node, Named: []string{"git.corp.example:443"}}
	for asked, refused := range map[string]bool{"git.corp.example:443": false, "Git.Corp.Example:443": false, "git.corp.example:22": true, "other.example:443": true} {
		if err := named.check(t.Context(), asked, "203.0.113.1:443"); (err != nil) != refused {
			t.Errorf("%s, where administrators name git.corp.example:443: %v", asked, err)
		}
	}
	if err := named.check(t.Context(), "git.corp.example:443", "169.254.169.254:443"); err == nil {
		t.Error("a host that administrators name leads to metadata")
	}
	if err := (&Network{Cluster: node}).IntoCluster().check(t.Context(), "source-controller:80", "203.0.113.1:80"); err != nil {
		t.Errorf("a host that administrators name: %v", err)
	}
}

func TestAddressesOfThisMachineAreRefused(t *testing.T) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range addresses {
		ip := netip.MustParsePrefix(at.String()).Addr()
		if err := (&Network{}).check(t.Context(), net.JoinHostPort(ip.String(), "8080"), net.JoinHostPort(ip.String(), "8080")); err == nil {
			t.Errorf("%s is not refused", ip)
		}
	}
}

func TestAProxyIsTheAdministrators(t *testing.T) {
	network := &Network{}
	network.proxies.Store("127.0.0.1:1", true)
	if _, err := network.Dial(t.Context(), "tcp", "127.0.0.1:1"); errors.Is(err, failure.ErrInvalid) {
		t.Errorf("the proxy is refused: %v", err)
	}
	at := &http.Request{URL: &url.URL{Scheme: "http", Host: "169.254.169.254"}}
	if _, err := network.proxy(at); err != nil {
		t.Errorf("without a proxy the dialer decides, got %v", err)
	}
}

// TestDialChecksTheAddressThatIsDialed: a nil Network allows nothing more, and no connection is made before the check.
func TestDialChecksTheAddressThatIsDialed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	at := listener.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	for name, tc := range map[string]struct {
		network *Network
		to      string
		says    string
	}{
		"nil":                {nil, at, "127.0.0.1 is a loopback address, which no source may reach"},
		"none allowed":       {&Network{}, at, "127.0.0.1 is a loopback address"},
		"another is allowed": {&Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}, at, "127.0.0.1 is a loopback address"},
		"allowed":            {loopback, at, ""},
		"a name is allowed":  {loopback, net.JoinHostPort("localhost", port), ""},
		"a name is not":      {&Network{}, net.JoinHostPort("localhost", port), "localhost leads to 127.0.0.1, a loopback address"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := tc.network.Dial(t.Context(), "tcp4", tc.to)
			if tc.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.Close()
				return
			}
			if conn != nil || !errors.Is(err, failure.ErrInvalid) || !strings.HasPrefix(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestHostsOfAdministratorsAreNotTheOperators keeps the addresses of the operator itself refused.
func TestHostsOfAdministratorsAreNotTheOperators(t *testing.T) {
	node := func(context.Context, netip.Addr) (string, error) { return "the address of a node", nil }
	network := (&Network{
		Allowed: []netip.Prefix{netip.MustParsePrefix("169.254.1.0/24")}, Own: []string{"203.0.113.9", "::ffff:203.0.113.8"}, Cluster: node,
	}).IntoCluster()
	for ip, refused := range map[string]bool{"203.0.113.9": true, "203.0.113.8": true, "203.0.113.7": false, "169.254.1.1": false, "169.254.2.1": true} {
		if err := network.check(t.Context(), "x:443", ip+":443"); (err != nil) != refused {
			t.Errorf("%s: %v", ip, err)
		}
	}
	if (*Network)(nil).IntoCluster() != nil {
		t.Error("no network became one")
	}
}

func TestAnAddressThatCannotBeReadIsRefused(t *testing.T) {
	everything := &Network{Allowed: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}
	if err := everything.check(t.Context(), "x:443", "x:443"); err == nil || errors.Is(err, failure.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
