package notice

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

var (
	loopback = &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	noon     = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
)

// sent is what a server received.
type sent struct {
	path, authorization, signature string
	body                           []byte
}

func serve(t *testing.T, status int, answer string) (*httptest.Server, *sent) {
	t.Helper()
	got := &sent{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*got = sent{r.Method + " " + r.URL.String(), r.Header.Get("Authorization"), r.Header.Get("X-Signature"), body}
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server, got
}

var some = []Notice{
	{App: "shop/web", Severity: Error, Reason: "Unhealthy", Message: "Deployment web: <!channel> & more", Revision: "main@sha1:1a2b3c4d", Since: noon},
	{App: "shop/api", Severity: Info, Reason: Recovered, Message: "ready again", Since: noon},
	{Severity: Error, Reason: "InvalidTree", Message: "app.yaml:3:1: why", Since: noon},
}

func TestEachReceiverGetsMessagesInItsFormat(t *testing.T) {
	tests := map[Type]struct{ path, want string }{
		Slack: {"POST /services/T0/B0/secret", `{"text": "❌ acme/shop/web: Unhealthy: Deployment web: &lt;!channel&gt; &amp; more\n✅ acme/shop/api: Recovered: ready again\n❌ acme: InvalidTree: app.yaml:3:1: why"}`},
		Teams: {"POST /services/T0/B0/secret", `{"type": "message", "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": {
			"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": [
				{"type": "TextBlock", "wrap": true, "text": "❌ acme/shop/web: Unhealthy: Deployment web: <!channel> & more"},
				{"type": "TextBlock", "wrap": true, "text": "✅ acme/shop/api: Recovered: ready again"},
				{"type": "TextBlock", "wrap": true, "text": "❌ acme: InvalidTree: app.yaml:3:1: why"}]}}]}`},
		Generic: {"POST /services/T0/B0/secret", `{"tenant": "acme", "notices": [
			{"app": "shop/web", "severity": "error", "reason": "Unhealthy", "message": "Deployment web: <!channel> & more", "revision": "main@sha1:1a2b3c4d", "timestamp": "2026-11-26T12:00:00Z"},
			{"app": "shop/api", "severity": "info", "reason": "Recovered", "message": "ready again", "timestamp": "2026-11-26T12:00:00Z"},
			{"severity": "error", "reason": "InvalidTree", "message": "app.yaml:3:1: why", "timestamp": "2026-11-26T12:00:00Z"}]}`},
		Alertmanager: {"POST /services/T0/B0/secret/api/v2/alerts", `[
			{"labels": {"alertname": "KubeopAppNotReady", "tenant": "acme", "project": "shop", "app": "web", "severity": "error"},
			 "annotations": {"summary": "Unhealthy", "description": "Deployment web: <!channel> & more", "revision": "main@sha1:1a2b3c4d"}, "startsAt": "2026-11-26T12:00:00Z", "endsAt": "2026-11-26T12:16:00Z"},
			{"labels": {"alertname": "KubeopAppNotReady", "tenant": "acme", "project": "shop", "app": "api", "severity": "error"},
			 "annotations": {"summary": "Recovered", "description": "ready again", "revision": ""}, "startsAt": "2026-11-26T12:00:00Z", "endsAt": "2026-11-26T12:16:00Z"},
			{"labels": {"alertname": "KubeopCommitNotApplied", "tenant": "acme", "severity": "error"},
			 "annotations": {"summary": "InvalidTree", "description": "app.yaml:3:1: why", "revision": ""}, "startsAt": "2026-11-26T12:00:00Z", "endsAt": "2026-11-26T12:16:00Z"}]`},
	}
	for kind, tc := range tests {
		t.Run(string(kind), func(t *testing.T) {
			server, got := serve(t, http.StatusOK, "ok")
			to := Receiver{Type: kind, Address: server.URL + "/services/T0/B0/secret", Token: "a-token"}
			if err := Send(t.Context(), loopback, to, Batch{"acme", some, noon.Add(time.Minute)}); err != nil {
				t.Fatal(err)
			}
			if got.path != tc.path || got.authorization != "Bearer a-token" {
				t.Errorf("got %s with %q, want %s", got.path, got.authorization, tc.path)
			}
			var is, want any
			if err := errors.Join(json.Unmarshal(got.body, &is), json.Unmarshal([]byte(tc.want), &want)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, is); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResolvedAlertsEnd(t *testing.T) {
	server, got := serve(t, http.StatusOK, "")
	n := some[0]
	n.Resolved = true
	if err := Send(t.Context(), loopback, Receiver{Type: Alertmanager, Address: server.URL + "/api/v2/alerts"}, Batch{"acme", []Notice{n}, noon.Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if got.path != "POST /api/v2/alerts" || !strings.Contains(string(got.body), `"endsAt":"2026-11-26T12:01:00Z"`) {
		t.Errorf("got %s: %s", got.path, got.body)
	}
}

// TestALineBreakBehindASigningKeyIsIgnored: a key from a file that ends in a line break is the same key, and one that is nothing else is none.
func TestALineBreakBehindASigningKeyIsIgnored(t *testing.T) {
	server, got := serve(t, http.StatusOK, "")
	for _, token := range []string{"a-key", "a-key\n", "a-key\r\n"} {
		if err := Send(t.Context(), loopback, Receiver{Type: GenericHMAC, Address: server.URL, Token: token}, Batch{"acme", some, noon}); err != nil {
			t.Fatal(err)
		}
		mac := hmac.New(sha256.New, []byte("a-key"))
		mac.Write(got.body)
		if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); got.signature != want || got.authorization != "" {
			t.Errorf("%q: got the signature %q and the authorization %q, want %q and none", token, got.signature, got.authorization, want)
		}
	}
	err := Send(t.Context(), loopback, Receiver{Type: GenericHMAC, Address: server.URL, Token: "\n", Auth: transport.Auth{Secret: "acme/chat"}}, Batch{"acme", some, noon})
	want := "the Secret has no key token, by which messages are signed: add it; an administrator of the cluster may run: " +
		"kubectl create secret generic chat -n acme --from-literal=address=... --from-literal=token=... --dry-run=client -o yaml | kubectl apply -f -"
	if !errors.Is(err, failure.ErrInvalid) || err.Error() != want {
		t.Errorf("without a key: %v", err)
	}
}

// TestAnUnknownTypeIsNotSent: nobody knows what such a receiver would understand.
func TestAnUnknownTypeIsNotSent(t *testing.T) {
	server, got := serve(t, http.StatusOK, "")
	err := Send(t.Context(), loopback, Receiver{Type: "fax", Address: server.URL}, Batch{"acme", some, noon})
	if !errors.Is(err, errType) || err.Error() != "encoding the message: unknown type of receiver" || got.path != "" {
		t.Errorf("got %v, and the server %+v", err, got)
	}
}

// TestManyNoticesAreCutInAChat: people read the first ones, and how many more there are.
func TestManyNoticesAreCutInAChat(t *testing.T) {
	line := "❌ acme/shop/web: Unhealthy: no image\n"
	for n, want := range map[int]string{20: strings.TrimSpace(strings.Repeat(line, 20)), 23: strings.Repeat(line, 20) + "and 3 more"} {
		notices := slices.Repeat([]Notice{{App: "shop/web", Severity: Error, Reason: "Unhealthy", Message: "no image"}}, n)
		if got := text("acme", notices, func(s string) string { return s }); got != want {
			t.Errorf("%d notices are reported as %s", n, got)
		}
	}
}

// TestErrorsHideTheAddress: the address of a webhook is a secret by itself.
func TestErrorsHideTheAddress(t *testing.T) {
	const secret = "/services/T0/B0/s3cr3t"
	const run = "an administrator of the cluster may run: kubectl create secret generic chat -n acme --from-literal=address=... --dry-run=client -o yaml | kubectl apply -f -"
	withToken := strings.Replace(run, " --dry-run", " --from-literal=token=... --dry-run", 1)
	for status, want := range map[int]struct {
		is   error
		says string
	}{
		300: {failure.ErrInvalid, `the host does not take the message (300): no service at *** for ***`},
		302: {failure.ErrInvalid, `the host does not take the message (302): no service at *** for ***`},
		400: {failure.ErrInvalid, `the host does not take the message (400): no service at *** for ***`},
		401: {failure.ErrAuthentication, `the host does not take the message (401, "no service at *** for ***"): check the address and the token in the Secret; ` + withToken},
		403: {failure.ErrAuthentication, `the host does not take the message (403, "no service at *** for ***"): check the address and the token in the Secret; ` + withToken},
		404: {failure.ErrNotFound, `the host has no such webhook (404, "no service at *** for ***"): it may have been deleted; check the address in the Secret; ` + run},
		410: {failure.ErrNotFound, `the host has no such webhook (410, "no service at *** for ***"): it may have been deleted; check the address in the Secret; ` + run},
		429: {nil, "the host limits the number of messages"},
		500: {failure.ErrServer, "the host answered 500 Internal Server Error"},
		503: {failure.ErrServer, "the host answered 503 Service Unavailable"},
	} {
		server, _ := serve(t, status, "no service at "+secret+" for a-token\n")
		to := Receiver{Type: Slack, Address: server.URL + secret, Token: "a-token", Auth: transport.Auth{Secret: "acme/chat"}}
		err := Send(t.Context(), loopback, to, Batch{"acme", some, noon})
		if err == nil || want.is != nil && !errors.Is(err, want.is) {
			t.Fatalf("%d: got %v, want %v", status, err, want.is)
		}
		if got := strings.ReplaceAll(err.Error(), server.Listener.Addr().String(), "the host"); got != want.says {
			t.Errorf("%d: got %s, want %s", status, got, want.says)
		}
	}
	server, _ := serve(t, 200, "")
	server.Close()
	if err := Send(t.Context(), loopback, Receiver{Type: Slack, Address: server.URL + secret}, Batch{"acme", some, noon}); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("a server that is down: %v", err)
	}
	for _, address := range []string{"", "file:///etc/passwd", "::", "https:///x", "slack"} {
		want := "the address of the receiver is not an http or https URL: write it as address into the Secret; " + run
		to := Receiver{Type: Slack, Address: address, Auth: transport.Auth{Secret: "acme/chat"}}
		if err := Send(t.Context(), loopback, to, Batch{"acme", some, noon}); !errors.Is(err, failure.ErrInvalid) || err.Error() != want {
			t.Errorf("the address %q: %v", address, err)
		}
	}
}

// TestTheAddressIsThatOfTheRequest: what is for people or a browser is not sent.
func TestTheAddressIsThatOfTheRequest(t *testing.T) {
	for address, want := range map[string]string{
		"https://ann:pass@hooks.example.com/x?a=b#c": "https://hooks.example.com/x?a=b", " http://hooks.example.com/x\n": "http://hooks.example.com/x",
		"ftp://hooks.example.com/x": "", "https:hooks": "",
	} {
		at, err := addressOf(Receiver{Type: Slack, Address: address})
		if (err != nil) != (want == "") || err == nil && at.String() != want {
			t.Errorf("%q: got %v, %v", address, at, err)
		}
	}
}

// TestAPathOfASlashHidesNothing, and any other path is taken for a secret.
func TestAPathOfASlashHidesNothing(t *testing.T) {
	for address, want := range map[string]string{"https://a.example/": "1/2 of it: /x", "https://a.example": "1/2 of it: /x", "https://a.example/x": "1/2 of it: ***"} {
		if got := hide("1/2 of it: /x", Receiver{Address: address}); got != want {
			t.Errorf("%s: got %q", address, got)
		}
	}
}

func TestALimitSaysForHowLong(t *testing.T) {
	server, _ := serve(t, http.StatusTooManyRequests, "")
	var limited *LimitError
	err := Send(t.Context(), loopback, Receiver{Type: Slack, Address: server.URL}, Batch{"acme", some, noon})
	if !errors.As(err, &limited) || limited.RetryAfter() != 2*time.Minute {
		t.Errorf("got %v", err)
	}
}

// TestTheClusterIsNotReached: tenants' administrators name any address.
func TestTheClusterIsNotReached(t *testing.T) {
	server, got := serve(t, http.StatusOK, "")
	err := Send(t.Context(), &transport.Network{}, Receiver{Type: Generic, Address: server.URL}, Batch{"acme", some, noon})
	if !errors.Is(err, failure.ErrInvalid) || got.path != "" {
		t.Errorf("got %v, and the server %+v", err, got)
	}
}
