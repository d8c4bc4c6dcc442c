package fetch

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// loopback is the Network of tests, whose servers are on this machine.
var loopback = &Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

func TestAddressesThatAreRefused(t *testing.T) {
	network := &Network{Own: []string{"10.96.0.1"}}
	for address, what := range map[string]string{
		"127.0.0.1": "loopback", "127.9.9.9": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback",
		"169.254.169.254": "link-local", "fe80::1": "link-local", "::ffff:169.254.169.254": "link-local", "64:ff9b::a9fe:a9fe": "link-local",
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
			for _, says := range []string{"git.example leads to ", what, "ALLOWED_ADDRESSES"} {
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
	if err := (&Network{Cluster: node}).intoCluster().check(t.Context(), "source-controller:80", "203.0.113.1:80"); err != nil {
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

// TestEveryWayIsGuarded tries each kind of URL with a server on loopback that must not hear of it.
func TestEveryWayIsGuarded(t *testing.T) {
	heard := func(_ http.ResponseWriter, req *http.Request) { t.Errorf("%s was asked for %s", req.Host, req.URL) }
	inner := httptest.NewServer(http.HandlerFunc(heard))
	defer inner.Close()
	host := strings.TrimPrefix(inner.URL, "http://")
	_, port, _ := net.SplitHostPort(host)
	signer, identity := newKey(t)
	ssh := Auth{Identity: identity, KnownHosts: []byte("x " + string(cryptossh.MarshalAuthorizedKey(signer.PublicKey())))}
	git := func(at string, auth Auth) error {
		_, err := NewGitStore(t.TempDir(), nil).Fetch(t.Context(), Git{URL: at, Auth: auth})
		return err
	}
	chart := func(at string) error {
		_, err := NewChartStore(t.TempDir(), nil).Fetch(t.Context(), Chart{Repository: at, Name: "web", Insecure: true})
		return err
	}
	for name, err := range map[string]error{
		"git over http": git(inner.URL+"/a.git", Auth{}), "git over ssh": git("ssh://git@"+host+"/a.git", ssh),
		"a name": git("http://localhost:"+port+"/a.git", Auth{}), "a chart": chart(inner.URL), "a chart in a registry": chart("oci://" + host + "/charts"),
	} {
		if !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), "a loopback address") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestRedirectToARefusedAddress has an allowed server lead to another one.
func TestRedirectToARefusedAddress(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { t.Errorf("asked for %s", req.URL) }))
	defer inner.Close()
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("no second address of loopback:", err)
	}
	outer := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "index.yaml") {
			_, _ = w.Write([]byte("entries:\n  web:\n  - {version: 1.0.0, urls: [web.tgz]}\n"))
			return
		}
		http.Redirect(w, req, inner.URL, http.StatusFound)
	})}}
	outer.Start()
	defer outer.Close()
	network := &Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}
	_, err = NewChartStore(t.TempDir(), network).Fetch(t.Context(), Chart{Repository: outer.URL, Name: "web"})
	if !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), "127.0.0.1 is a loopback address") {
		t.Errorf("got %v", err)
	}
}

func TestAProxyIsTheAdministrators(t *testing.T) {
	network := &Network{}
	network.proxies.Store("127.0.0.1:1", true)
	if _, err := network.dial(t.Context(), "tcp", "127.0.0.1:1"); errors.Is(err, failure.ErrInvalid) {
		t.Errorf("the proxy is refused: %v", err)
	}
	at := &http.Request{URL: &url.URL{Scheme: "http", Host: "169.254.169.254"}}
	if _, err := network.proxy(at); err != nil {
		t.Errorf("without a proxy the dialer decides, got %v", err)
	}
}
