package service

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/message"
)

// failing is a RoundTripper that returns an error.
type failing struct{ err error }

// RoundTrip implements http.RoundTripper.
func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.err == nil {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return nil, f.err
}

// TestRequestsThatAreNotMade, and why.
func TestRequestsThatAreNotMade(t *testing.T) {
	away, noClient := errors.New("connection refused"), errors.New("the authority is none")
	asking := func(method, at string) []byte {
		t.Helper()
		question, err := message.Write(request{Method: method, URL: at})
		if err != nil {
			t.Fatal(err)
		}
		return question
	}
	const kms = "https://kms.eu-west-1.amazonaws.com/"
	for name, tc := range map[string]struct {
		question []byte
		client   error
		trip     error
		want     string
	}{
		"no request":           {[]byte("\xff"), nil, away, "reading a request: "},
		"one that is too long": {make([]byte, maxRequestBytes+1), nil, away, "the request is too long"},
		"another host":         {asking("POST", "https://example.com/"), nil, away, "example.com is no key service"},
		"no method":            {asking("a b", kms), nil, away, "asking kms.eu-west-1.amazonaws.com: the URL cannot be requested"},
		"no client":            {asking("POST", kms), noClient, away, "asking kms.eu-west-1.amazonaws.com: the authority is none"},
		"no answer":            {asking("POST", kms), nil, away, "asking kms.eu-west-1.amazonaws.com: connection refused"},
		"no answer in time":    {asking("POST", kms), nil, nil, "asking kms.eu-west-1.amazonaws.com: it gave no answer in time: key services have " + maxTime.String() + " for all files of an app"},
	} {
		t.Run(name, func(t *testing.T) {
			made := 0
			p := NewProxy(func(origin *url.URL, ca []byte) (*http.Client, error) {
				if made++; origin.String() != "https://kms.eu-west-1.amazonaws.com" || string(ca) != "ca" {
					t.Errorf("a client is made of %s with %q", origin, ca)
				}
				return &http.Client{Transport: failing{tc.trip}}, tc.client
			}, map[string][]byte{AWS: []byte("x"), CA: []byte("ca")}, time.Now)
			p.left = 50 * time.Millisecond
			got, err := p.Do(context.Background(), tc.question)
			if got != nil || err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %q, %v, want %s", got, err, tc.want)
			}
			if asked := strings.HasPrefix(tc.want, "asking"); asked != (made == 1) {
				t.Errorf("%d clients were made", made)
			}
		})
	}
}

// TestTheContextOfARequestEndsWithIt, so that nothing of it goes on.
func TestTheContextOfARequestEndsWithIt(t *testing.T) {
	var left context.Context
	p := NewProxy(func(*url.URL, []byte) (*http.Client, error) {
		return &http.Client{Transport: remembering(func(r *http.Request) { left = r.Context() })}, nil
	}, map[string][]byte{AWS: []byte("x")}, time.Now)
	question, err := message.Write(request{Method: "POST", URL: "https://kms.eu-west-1.amazonaws.com/"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Do(t.Context(), question); err == nil {
		t.Error("it succeeds without an answer")
	}
	if left.Err() == nil || t.Context().Err() != nil {
		t.Errorf("afterwards its context has %v, the caller's %v", left.Err(), t.Context().Err())
	}
}

type remembering func(*http.Request)

// RoundTrip implements http.RoundTripper.
func (f remembering) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return nil, errors.New("connection refused")
}
