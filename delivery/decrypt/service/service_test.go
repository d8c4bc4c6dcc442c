package service

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/message"
)

func TestOnlyServicesWithCredentialsAreReached(t *testing.T) {
	all := map[string][]byte{AWS: []byte("x"), GCP: []byte("x"), Azure: []byte("x"), Vault: []byte("x")}
	only := map[string][]byte{Vault: []byte("x"), VaultAddress: []byte("https://vault.example.com:8200/\n")}
	const decrypts = "/v1/transit/decrypt/shop"
	tests := map[string]struct {
		data        map[string][]byte
		method, url string
		may         bool
	}{
		"AWS KMS":                     {all, "POST", "https://kms.eu-west-1.amazonaws.com/", true},
		"AWS KMS in China":            {all, "POST", "https://kms.cn-north-1.amazonaws.com.cn/", true},
		"AWS STS":                     {all, "POST", "https://sts.eu-west-1.amazonaws.com/", true},
		"another service of AWS":      {all, "PUT", "https://s3.eu-west-1.amazonaws.com/bucket", false},
		"a name that ends so":         {all, "POST", "https://kms.evil.com/.amazonaws.com/", false},
		"a region with a host in it":  {all, "POST", "https://kms.x.evil.com/.amazonaws.com", false},
		"AWS at another port":         {all, "POST", "https://kms.eu-west-1.amazonaws.com:8443/", false},
		"AWS without credentials":     {only, "POST", "https://kms.eu-west-1.amazonaws.com/", false},
		"GCP KMS":                     {all, "POST", "https://cloudkms.googleapis.com/v1/a:decrypt", true},
		"GCP's tokens":                {all, "POST", "https://oauth2.googleapis.com/token", true},
		"GCP's storage":               {all, "GET", "https://storage.googleapis.com/a", false},
		"GCP's metadata":              {all, "GET", "http://169.254.169.254/computeMetadata/v1/", false},
		"Azure Key Vault":             {all, "POST", "https://shop.vault.azure.net/keys/a/b/decrypt", true},
		"Azure's hardware modules":    {all, "POST", "https://shop.managedhsm.azure.net/keys/a/b/decrypt", true},
		"Azure for governments":       {all, "POST", "https://shop.vault.usgovcloudapi.net/keys/a/b/decrypt", true},
		"Azure's login":               {all, "POST", "https://login.microsoftonline.com/x/oauth2/v2.0/token", true},
		"Azure's login in China":      {all, "POST", "https://login.chinacloudapi.cn/x/oauth2/v2.0/token", true},
		"another login":               {all, "POST", "https://login.evil.com/x/oauth2/v2.0/token", false},
		"a vault below a vault":       {all, "POST", "https://a.b.vault.azure.net/keys", false},
		"Azure's metadata":            {all, "GET", "https://169.254.169.254/metadata/identity/oauth2/token", false},
		"Vault":                       {all, "PUT", "https://vault.example.com:8200" + decrypts, true},
		"Vault in a namespace":        {all, "PUT", "https://vault.example.com/v1/acme/transit/decrypt/shop", true},
		"Vault without TLS":           {all, "PUT", "http://vault.example.com:8200" + decrypts, false},
		"Vault's decrypt, but read":   {all, "GET", "https://vault.example.com:8200" + decrypts, false},
		"Vault's encrypt":             {all, "PUT", "https://vault.example.com:8200/v1/transit/encrypt/shop", false},
		"Vault's decrypt, and more":   {all, "PUT", "https://vault.example.com:8200" + decrypts + "/more", false},
		"Vault's secrets":             {all, "GET", "https://vault.example.com:8200/v1/secret/data/shop", false},
		"Vault by another way":        {all, "PUT", "https://vault.example.com:8200/v1/transit/decrypt/../../auth/decrypt/x", false},
		"Vault with a question":       {all, "PUT", "https://vault.example.com:8200" + decrypts + "?a=b", false},
		"Vault with a user":           {all, "PUT", "https://me:secret@vault.example.com:8200" + decrypts, false},
		"the Vault of the Secret":     {only, "PUT", "https://vault.example.com:8200" + decrypts, true},
		"another Vault":               {only, "PUT", "https://vault.evil.com:8200" + decrypts, false},
		"the Vault at another port":   {only, "PUT", "https://vault.example.com" + decrypts, false},
		"Vault without a token":       {map[string][]byte{AWS: []byte("x")}, "PUT", "https://vault.example.com:8200" + decrypts, false},
		"no address":                  {all, "PUT", "https:///v1/transit/decrypt/shop", false},
		"nothing with no credentials": {nil, "GET", "https://kms.eu-west-1.amazonaws.com/", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			to, err := NewProxy(nil, tc.data, time.Now).allowed(tc.method, tc.url)
			if may := err == nil; may != tc.may {
				t.Errorf("got %v, %v", to, err)
			}
		})
	}
}

// vaultAt is a server that stands for Vault, the data of a Secret for it, and a Client with the operator's guard.
func vaultAt(t *testing.T, allowed bool, answer http.HandlerFunc) (string, map[string][]byte, Client) {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	network := &transport.Network{}
	if allowed {
		network.Allowed = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	client := func(origin *url.URL, ca []byte) (*http.Client, error) {
		return transport.NewClient(network, transport.Auth{CA: ca}, origin)
	}
	return server.URL + "/v1/transit/decrypt/shop", map[string][]byte{Vault: []byte("token"), CA: ca}, client
}

// put asks by way of a Transport, as a process does.
func put(p *Proxy, at string) (string, error) {
	client := &http.Client{Transport: Transport{Ask: func(question []byte) ([]byte, error) { return p.Do(context.Background(), question) }}}
	request, err := http.NewRequest(http.MethodPut, at, strings.NewReader("question"))
	if err != nil {
		return "", err
	}
	request.Header.Set("X-Vault-Token", "token")
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.Header.Get("X-Is") + string(body), err
}

func TestARequestIsMadeForTheProcess(t *testing.T) {
	at, data, client := vaultAt(t, true, func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		out.Header().Set("X-Is", r.Header.Get("X-Vault-Token")+": ")
		_, _ = out.Write(append([]byte("answer to "), body...))
	})
	if got, err := put(NewProxy(client, data, time.Now), at); err != nil || got != "token:answer to question" {
		t.Errorf("got %q, %v", got, err)
	}
	delete(data, CA)
	if _, err := put(NewProxy(client, data, time.Now), at); err == nil || !strings.Contains(err.Error(), "add the authority as ca.crt to the Secret") {
		t.Errorf("without the authority: %v", err)
	}
}

func TestTheGuardOfTheOperatorHolds(t *testing.T) {
	at, data, client := vaultAt(t, false, func(http.ResponseWriter, *http.Request) { t.Error("it is reached") })
	if _, err := put(NewProxy(client, data, time.Now), at); err == nil || !strings.Contains(err.Error(), "which no source may reach") {
		t.Errorf("got %v", err)
	}
}

func TestRedirectsAndLongAnswersAreRefused(t *testing.T) {
	at, data, client := vaultAt(t, true, func(out http.ResponseWriter, r *http.Request) {
		http.Redirect(out, r, "https://evil.example.com", http.StatusTemporaryRedirect)
	})
	if _, err := put(NewProxy(client, data, time.Now), at); err == nil || !strings.Contains(err.Error(), "it redirects, which is not followed") {
		t.Errorf("redirected: %v", err)
	}
	at, data, client = vaultAt(t, true, func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write(make([]byte, maxAnswerBytes+1)) })
	if _, err := put(NewProxy(client, data, time.Now), at); err == nil || !strings.Contains(err.Error(), "its answer is too long") {
		t.Errorf("too long: %v", err)
	}
}

func TestAnAnswerAsLongAsItMayBe(t *testing.T) {
	at, data, client := vaultAt(t, true, func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write(make([]byte, maxAnswerBytes)) })
	if got, err := put(NewProxy(client, data, time.Now), at); err != nil || len(got) != maxAnswerBytes {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	at, data, client = vaultAt(t, true, func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Length", "100")
		_, _ = out.Write([]byte("torn"))
	})
	if got, err := put(NewProxy(client, data, time.Now), at); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an answer that breaks off: %q, %v", got, err)
	}
}

// TestAnAnswerThatStallsIsNotAwaited: its headers and a part of its body came in time.
func TestAnAnswerThatStallsIsNotAwaited(t *testing.T) {
	ended := make(chan struct{})
	at, data, client := vaultAt(t, true, func(out http.ResponseWriter, _ *http.Request) {
		_, _ = out.Write([]byte("torn"))
		_ = http.NewResponseController(out).Flush()
		<-ended
	})
	defer close(ended)
	slow := NewProxy(client, data, time.Now)
	slow.left = 300 * time.Millisecond
	const want = "it gave no answer in time: key services have 10s for all files of an app"
	if got, err := put(slow, at); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %q, %v; want %s", got, err, want)
	}
}

func TestErrorsNameTheHostAndNoURL(t *testing.T) {
	at, data, client := vaultAt(t, false, func(http.ResponseWriter, *http.Request) { t.Error("it is reached") })
	question, err := message.Write(request{Method: http.MethodPut, URL: at})
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewProxy(client, data, time.Now).Do(t.Context(), question)
	if err == nil || !strings.HasPrefix(err.Error(), "asking "+to.Host+": ") || strings.Contains(err.Error(), "transit") {
		t.Errorf("got %v", err)
	}
	broken := errors.New("no certificate in PEM")
	refuses := func(*url.URL, []byte) (*http.Client, error) { return nil, broken }
	if _, err := NewProxy(refuses, data, time.Now).Do(t.Context(), question); !errors.Is(err, broken) {
		t.Errorf("without a client: %v", err)
	}
}

type torn struct{}

func (torn) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAProcessSeesWhatItCannotSendOrRead(t *testing.T) {
	asked := 0
	through := Transport{Ask: func([]byte) ([]byte, error) { asked++; return []byte("no message"), nil }}
	request, err := http.NewRequest(http.MethodPut, "https://vault.example.com", torn{})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := through.RoundTrip(request); !errors.Is(err, io.ErrUnexpectedEOF) || asked > 0 {
		t.Errorf("a body that cannot be read: %v, %v after %d questions", answer, err, asked)
	}
	request.Body = nil
	if answer, err := through.RoundTrip(request); err == nil || !strings.HasPrefix(err.Error(), "reading an answer: ") {
		t.Errorf("an answer that is none: %v, %v", answer, err)
	}
}

func TestTheRequestsAndTheTimeOfAnAppAreBounded(t *testing.T) {
	var passed atomic.Int64
	at, data, client := vaultAt(t, true, func(http.ResponseWriter, *http.Request) { passed.Add(int64(maxTime / 4)) })
	slow := NewProxy(client, data, func() time.Time { return time.Unix(0, passed.Load()) })
	for range 4 {
		if _, err := put(slow, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := put(slow, at); err == nil || !strings.Contains(err.Error(), "together took more than 10s") {
		t.Errorf("got %v", err)
	}
	many := NewProxy(client, data, func() time.Time { return time.Time{} })
	many.requests = maxRequests - 1
	if _, err := put(many, at); err != nil {
		t.Errorf("the last request that is allowed: %v", err)
	}
	if _, err := put(many, at); err == nil || !strings.Contains(err.Error(), "may be called 200 times") {
		t.Errorf("got %v", err)
	}
	ended := make(chan struct{})
	at, data, client = vaultAt(t, true, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	})
	defer close(ended)
	silent := NewProxy(client, data, time.Now)
	silent.left = 300 * time.Millisecond
	if _, err := put(silent, at); err == nil || !strings.Contains(err.Error(), "it gave no answer in time") {
		t.Errorf("got %v", err)
	}
	for size, says := range map[int]string{maxRequestBytes: "reading a request: ", maxRequestBytes + 1: "the request is too long"} {
		if _, err := NewProxy(client, data, time.Now).Do(t.Context(), make([]byte, size)); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("a request of %d bytes: %v", size, err)
		}
	}
}

// TestAQuestionPastTheLimitsIsRefused: it is short, and its headers would be many times as large in memory.
func TestAQuestionPastTheLimitsIsRefused(t *testing.T) {
	client := func(*url.URL, []byte) (*http.Client, error) { return nil, errors.New("no network") }
	for values, refused := range map[int]bool{10_000: false, 10_001: true} {
		question, err := message.Write(request{Method: "PUT", URL: "https://vault.example.com/v1/transit/decrypt/shop", Header: http.Header{"A": make([]string, values)}})
		if err != nil || len(question) > maxRequestBytes {
			t.Fatalf("the question has %d bytes, %v", len(question), err)
		}
		_, err = NewProxy(client, map[string][]byte{Vault: []byte("x")}, time.Now).Do(t.Context(), question)
		if got := err != nil && strings.Contains(err.Error(), "exceeded max number of elements 10000"); got != refused {
			t.Errorf("%d values: %v", values, err)
		}
	}
}

func FuzzDo(f *testing.F) {
	question, err := message.Write(request{Method: "PUT", URL: "https://vault.example.com/v1/transit/decrypt/shop"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(question)
	f.Fuzz(func(_ *testing.T, question []byte) {
		client := func(*url.URL, []byte) (*http.Client, error) { return nil, errors.New("no network") }
		_, _ = NewProxy(client, map[string][]byte{Vault: []byte("x")}, time.Now).Do(context.Background(), question)
	})
}

func TestARefusedKeyServiceIsExplained(t *testing.T) {
	data := map[string][]byte{Vault: []byte("x"), VaultAddress: []byte(" https://vault.example.com/ ")}
	long := strings.Repeat("a", 101)
	for at, want := range map[string]string{
		"http://vault.example.com/v1/transit/decrypt/a":  "a key service is called at https:// only",
		"https://vault.example.com/v1/auth/token":        "vault.example.com is no key service for which the Secret has credentials",
		"https://" + long + "/":                          long[1:] + " is no key service for which the Secret has credentials",
		"https://vault.evil.com/v1/transit/decrypt/a":    "vault.evil.com is another Vault than sops.vault-address of the Secret names",
		"https://" + long + "/v1/transit/decrypt/a":      long[1:] + " is another Vault than sops.vault-address of the Secret names",
		"https://vault.example.com/v1/transit/decrypt/a": "<nil>",
	} {
		if _, err := NewProxy(nil, data, time.Now).allowed(http.MethodPut, at); fmt.Sprint(err) != want {
			t.Errorf("%s: got %v, want %s", at, err, want)
		}
	}
}
