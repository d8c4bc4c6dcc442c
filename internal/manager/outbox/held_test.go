package outbox

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/store"
)

// another returns keys that encrypted nothing.
func another(t *testing.T) *kms.Keys {
	t.Helper()
	line, err := kms.NewKey("another")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := kms.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestAWebhookIsNotAtFaultIfItsSecretCannotBeDecrypted: for days nothing is parked, and then messages are tried for a day as others are. The manager says what is missing.
func TestAWebhookIsNotAtFaultIfItsSecretCannotBeDecrypted(t *testing.T) {
	for name, c := range map[string]struct {
		keys *kms.Keys
		err  error
		why  string
	}{
		"the file has another key": {another(t), nil, `h/1 of webhook-secret, of key "k"`},
		"there is no file":         {nil, errors.New("no file"), "no file"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			r := receive(t, func(_ string, n int) int {
				if n == 1 {
					return http.StatusServiceUnavailable
				}
				return http.StatusOK
			})
			s.hook("h", "acme", r.URL)
			s.happens("acme", "app/acme/shop/web", "m1")
			s.happens("acme", "app/acme/shop/web", "m2")
			by := s.sender()
			keys := by.Keys
			by.Keys = func() (*kms.Keys, error) { return c.keys, c.err }
			for start := s.clock(); s.clock().Sub(start) < 72*time.Hour; s.pass(10 * time.Minute) {
				s.run(by)
			}
			s.run(by)
			found, err := s.store.ListDeliveries(t.Context(), "h", store.Waiting, 0, 10)
			if err != nil || len(found) != 2 || found[1].Attempts != 0 || !strings.Contains(found[1].Answer, "cannot decrypt") || len(r.ids()) != 0 {
				t.Fatalf("%v: it got %q, and for it wait %+v", err, r.ids(), found)
			}
			if err := by.Check(t.Context()); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("the manager says %v", err)
			}
			by.Keys = keys
			s.pass(heldRest)
			s.run(by)
			if got := s.states("h"); !slices.Equal(got, []string{"m1 waiting 1", "m2 waiting 0"}) {
				t.Errorf("after an attempt that failed they are %q", got)
			}
			s.pass(time.Minute)
			s.run(by)
			if got := s.states("h"); !slices.Equal(got, []string{"m1 delivered 2", "m2 delivered 1"}) {
				t.Errorf("in the end they are %q", got)
			}
			if err := by.Check(t.Context()); err != nil {
				t.Errorf("the manager still says %v", err)
			}
			if events, err := s.store.ListEvents(t.Context(), "acme", 0, 10); err != nil || len(events) != 0 {
				t.Errorf("%v: the events are %+v", err, events)
			}
		})
	}
}

// TestAWebhookThatGetsNothingAnyMoreIsNotReportedForEver: it was disabled, or its messages are gone.
func TestAWebhookThatGetsNothingAnyMoreIsNotReportedForEver(t *testing.T) {
	s := newStage(t)
	s.hook("h", "acme", "https://hooks.example.com")
	s.happens("acme", "app/acme/shop/web", "m1")
	by := s.sender()
	missing := another(t)
	by.Keys = func() (*kms.Keys, error) { return missing, nil }
	s.run(by)
	s.pass(heldFor)
	if err := by.Check(t.Context()); err == nil {
		t.Error("it is not reported")
	}
	s.pass(time.Second)
	if err := by.Check(t.Context()); err != nil {
		t.Errorf("it is reported: %v", err)
	}
}
