package transport

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// wantedProxy is set in a process of TestRequestsGoThroughTheProxyOfTheEnvironment: the address that is dialed instead of the server's.
const wantedProxy = "KUBEOP_TEST_PROXY"

// TestRequestsGoThroughTheProxyOfTheEnvironment runs itself once for each proxy, because net/http reads the environment once in a process.
func TestRequestsGoThroughTheProxyOfTheEnvironment(t *testing.T) {
	if want := os.Getenv(wantedProxy); want != "" {
		requestsThrough(t, want)
		return
	}
	for proxy, dialed := range map[string]string{
		"http://proxy.example:3128": "proxy.example:3128", "http://proxy.example": "proxy.example:80", "https://proxy.example": "proxy.example:443",
		"socks5://proxy.example": "proxy.example:1080", "SOCKS5H://proxy.example": "proxy.example:1080", "http://10.0.0.3:8080": "10.0.0.3:8080",
	} {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRequestsGoThroughTheProxyOfTheEnvironment$")
		for _, variable := range os.Environ() {
			if !strings.Contains(strings.ToLower(variable[:strings.Index(variable, "=")]), "proxy") {
				command.Env = append(command.Env, variable)
			}
		}
		command.Env = append(command.Env, "HTTPS_PROXY="+proxy, "NO_PROXY=direct.example", wantedProxy+"="+dialed)
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", proxy, err, out)
		}
	}
}

// requestsThrough asks for the proxy of requests to several servers.
func requestsThrough(t *testing.T, dialed string) {
	t.Helper()
	to := func(server string) *http.Request {
		return (&http.Request{URL: &url.URL{Scheme: "https", Host: server, Path: "/"}}).WithContext(t.Context())
	}
	for _, server := range []string{"169.254.169.254", "169.254.169.254:8443", "[::ffff:169.254.169.254]", "[fe80::1]"} {
		network := &Network{}
		through, err := network.proxy(to(server))
		if !errors.Is(err, failure.ErrInvalid) || through != nil {
			t.Errorf("%s: through %v, %v", server, through, err)
		}
		if _, known := network.proxies.Load(dialed); known {
			t.Errorf("%s is dialed for %s, which is refused", dialed, server)
		}
	}
	allowing := &Network{Allowed: []netip.Prefix{netip.MustParsePrefix("169.254.169.254/32")}}
	for server, network := range map[string]*Network{"git.example": {}, "8.8.8.8": {}, "169.254.169.254": allowing} {
		through, err := network.proxy(to(server))
		if err != nil || through == nil {
			t.Errorf("%s: through %v, %v", server, through, err)
		}
		if of, known := network.proxies.Load(dialed); !known || of != true {
			t.Errorf("%s may not be dialed for %s", dialed, server)
		}
	}
	if through, err := (&Network{}).proxy(to("direct.example")); through != nil || err != nil {
		t.Errorf("a server without a proxy: through %v, %v", through, err)
	}
	if through, err := (*Network)(nil).proxy(to("git.example")); through == nil || err != nil {
		t.Errorf("no network: through %v, %v", through, err)
	}
}
