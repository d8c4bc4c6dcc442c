package webhooksign

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestTheExampleOfStandardWebhooksIsSignedAsThere: secret, message and signature are those of the test of its reference libraries.
func TestTheExampleOfStandardWebhooksIsSignedAsThere(t *testing.T) {
	header := http.Header{}
	m := Message{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek", At: time.Unix(1614265330, 999), Body: []byte(`{"test": 2432232314}`)}
	if err := m.Sign(header, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"); err != nil {
		t.Fatal(err)
	}
	if got := header.Get("webhook-signature"); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("the signature is %s", got)
	}
	if header.Get("webhook-id") != m.ID || header.Get("webhook-timestamp") != "1614265330" {
		t.Errorf("the headers are %v", header)
	}
}

func TestEachSecretSigns(t *testing.T) {
	first, second := NewSecret(), NewSecret()
	if first == second || len(first) != len("whsec_")+44 {
		t.Fatalf("the secrets are %q and %q", first, second)
	}
	signed := func(secrets ...string) http.Header {
		header := http.Header{}
		if err := (Message{ID: "msg_1", At: time.Unix(1, 0), Body: []byte("{}")}).Sign(header, secrets...); err != nil {
			t.Fatal(err)
		}
		return header
	}
	both := signed(first, second)
	if want := signed(first).Get(HeaderSignature) + " " + signed(second).Get(HeaderSignature); both.Get(HeaderSignature) != want || strings.Count(want, " ") != 1 {
		t.Errorf("the signatures are %q, want %q", both.Get(HeaderSignature), want)
	}
	if want := signed(second).Get(HeaderOwn); both.Get(HeaderOwn) != want || want == signed(first).Get(HeaderOwn) {
		t.Errorf("the own signature is %q, want %q", both.Get(HeaderOwn), want)
	}
}

func TestAnInvalidSecretIsNotRepeated(t *testing.T) {
	for _, secret := range []string{"", "hunter2", "whsec_", "whsec_hunter2!", "SHVudGVyMg=="} {
		err := (Message{ID: "msg_1"}).Sign(http.Header{}, secret)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", secret, err)
		}
	}
}
