package fetch

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/kubeop/kubeop/delivery/fetch/chart"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// loopback is the Network of tests, whose servers are on this machine.
var loopback = &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

// TestEveryWayIsGuarded tries each kind of URL with a server on loopback that must get no request.
func TestEveryWayIsGuarded(t *testing.T) {
	recordingServer := func(_ http.ResponseWriter, req *http.Request) { t.Errorf("%s was asked for %s", req.Host, req.URL) }
	inner := httptest.NewServer(http.HandlerFunc(recordingServer))
	defer inner.Close()
	host := strings.TrimPrefix(inner.URL, "http://")
	_, port, _ := net.SplitHostPort(host)
	signer, identity := sources.NewSSHKey(t)
	ssh := transport.Auth{Identity: identity, KnownHosts: []byte("x " + string(cryptossh.MarshalAuthorizedKey(signer.PublicKey())))}
	git := func(at string, auth transport.Auth) error {
		_, err := git.NewStore(t.TempDir(), nil).Fetch(t.Context(), git.Source{URL: at, Auth: auth})
		return err
	}
	chart := func(at string) error {
		_, err := chart.NewStore(t.TempDir(), nil).Fetch(t.Context(), chart.Source{Repository: at, Name: "web", Insecure: true})
		return err
	}
	for name, err := range map[string]error{
		"git over http": git(inner.URL+"/a.git", transport.Auth{}), "git over ssh": git("ssh://git@"+host+"/a.git", ssh),
		"a name": git("http://localhost:"+port+"/a.git", transport.Auth{}), "a chart": chart(inner.URL), "a chart in a registry": chart("oci://" + host + "/charts"),
	} {
		if !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), "a loopback address") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestARedirectToARefusedAddressIsNotFollowed has an allowed server lead to another one.
func TestARedirectToARefusedAddressIsNotFollowed(t *testing.T) {
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
	network := &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}
	_, err = chart.NewStore(t.TempDir(), network).Fetch(t.Context(), chart.Source{Repository: outer.URL, Name: "web"})
	if !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), "127.0.0.1 is a loopback address") {
		t.Errorf("got %v", err)
	}
}
