package stage

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUntilWaitsForTheLookToSucceed(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	never := errors.New("two of three")
	tests := map[string]struct {
		ctx   context.Context
		look  func(n int) error
		looks int
		want  []string
	}{
		"ends with the first look without an error": {look: func(n int) error {
			if n < 3 {
				return never
			}
			return nil
		}, looks: 3},
		"returns what it waited for and the last error": {look: func(int) error { return never }, want: []string{"three pods", "two of three", "not within"}},
		"does not look again after a final error": {look: func(int) error { return Final(never) }, looks: 1,
			want: []string{"three pods", "two of three"}},
		"ends when the caller does": {ctx: cancelled, look: func(int) error { return never }, looks: 1,
			want: []string{"three pods", "context canceled"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.ctx == nil {
				test.ctx = t.Context()
			}
			looks := 0
			err := Until(test.ctx, 4*pollInterval, "three pods", func(context.Context) error {
				looks++
				return test.look(looks)
			})
			if test.looks > 0 && looks != test.looks {
				t.Errorf("it looked %d times, want %d", looks, test.looks)
			}
			if (err == nil) != (test.want == nil) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not contain %q", err, part)
				}
			}
		})
	}
}

func TestDescribeNamesTheFailedStep(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "R", Message: message}
	}
	tests := map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"nothing yet": {want: "no conditions yet"},
		"the failed step": {
			conditions: []metav1.Condition{condition("Ready", "False", "summary"), condition("Fetched", "True", ""), condition("Synced", "False", "why")},
			want:       "Synced=False R: why"},
		"the summary, if no step fails": {conditions: []metav1.Condition{condition("Ready", "True", "done")}, want: "Ready=True R: done"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := describe(test.conditions); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestGetReturnsTheAnswerOrItsStatus(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.Error(w, "no such page", http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte("hello\n"))
	}))
	defer server.Close()
	if got, err := Get(t.Context(), server.URL+"/"); got != "hello" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := Get(t.Context(), server.URL+"/else"); err == nil || !strings.Contains(err.Error(), "404 Not Found: no such page") {
		t.Errorf("got %v", err)
	}
}

func TestRunHidesArguments(t *testing.T) {
	const secret = "tiger-in-the-tank"
	_, err := run(t.Context(), []string{"PASSWORD=" + secret}, "sh", "-c", "echo complaint >&2; exit 3", secret)
	if err == nil || !strings.Contains(err.Error(), "complaint") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v, want the complaint and the exit status", err)
	}
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("the error holds an argument: %v", err)
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := run(ctx, nil, "sleep", "30"); err == nil {
		t.Error("want an error")
	}
}
