package main

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/internal/manager/outbox"
)

// TestNoWebhookLeadsIntoPrivateNetworks: private addresses are refused when a webhook is created, and again when a message is sent, because
// the host may have another address by then.
func TestNoWebhookLeadsIntoPrivateNetworks(t *testing.T) {
	r := newReceivers(nil, []string{"203.0.113.7"}, false)
	for _, address := range []string{
		"https://127.0.0.1/", "https://localhost/", "https://[::1]/", "https://0.0.0.0/", "https://10.0.0.1/", "https://172.16.5.5:8443/x", "https://192.168.1.1/", "https://100.64.0.1/",
		"https://169.254.169.254/latest/meta-data/", "https://[fe80::1]/", "https://[fd00:ec2::254]/", "https://[fc00::1]/", "https://[::ffff:10.0.0.1]/", "https://[64:ff9b::a00:1]/", "https://[64:ff9b:1::a00:1]/", "https://198.18.0.1/", "https://240.0.0.1/", "https://203.0.113.7/", "https://no-such-host.invalid/",
		"http://93.184.216.34/", "ftp://93.184.216.34/", "file:///etc/passwd",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		var refused *outbox.RefusedError
		if err := r.Check(t.Context(), u); !errors.As(err, &refused) {
			t.Errorf("%s is checked: %v", address, err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&http.Client{Transport: r}).Do(request)
		if err == nil {
			answer.Body.Close()
		}
		if !errors.As(err, &refused) || u.Hostname() != "" && strings.Contains(refused.Why, u.Hostname()) {
			t.Errorf("%s is sent to: %v", address, err)
		}
	}
	u, _ := url.Parse("https://93.184.216.34/hook?x=1")
	if err := r.Check(t.Context(), u); err != nil {
		t.Errorf("a public address: %v", err)
	}
}

func TestASettingAllowsAddressesAndPlainHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/much" {
			w.Header().Set("X-Much", strings.Repeat("x", maxAnswerHeaders))
		}
	}))
	defer server.Close()
	r := newReceivers([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil, true)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(t.Context(), u); err != nil {
		t.Error(err)
	}
	client := &http.Client{Transport: r}
	answer, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer, err := client.Get(server.URL + "/much"); err == nil {
		answer.Body.Close()
		t.Error("headers of any size are read")
	}
	var op *net.OpError
	if answer, err := client.Get("http://127.0.0.1:1/"); err == nil {
		answer.Body.Close()
	} else if !errors.As(err, &op) {
		t.Errorf("an error of the connection is reported as %v", err)
	}
}
