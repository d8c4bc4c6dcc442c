package pool

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// names returns the names of apps.
func names(apps []types.NamespacedName) string {
	var all []string
	for _, app := range apps {
		all = append(all, app.Name)
	}
	return strings.Join(all, " ")
}

// fullAdmission has a tenant begin as many actions as it may, and these apps wait.
func fullAdmission(t *testing.T, waiting ...string) *admission {
	t.Helper()
	a := &admission{tenants: map[string]*tenant{}}
	for i := range MaxInFlight {
		if !a.admit("acme", types.NamespacedName{Name: fmt.Sprint(i)}) {
			t.Fatalf("action %d of %d is refused", i+1, MaxInFlight)
		}
	}
	for _, name := range waiting {
		if a.admit("acme", types.NamespacedName{Name: name}) {
			t.Fatalf("action %d begins, of %d", MaxInFlight+1, MaxInFlight)
		}
	}
	return a
}

func TestAsManyAppsAreNotifiedAsMayBeginInTheOrderInWhichTheyCame(t *testing.T) {
	for name, c := range map[string]struct {
		ended      int
		want, then string
	}{
		"none has ended": {0, "", "a b c"},
		"one has ended":  {1, "a", "b c"},
		"two have ended": {2, "a b", "c"},
		"more than wait": {4, "a b c", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := fullAdmission(t, "a", "b", "a", "c", "b")
			for range c.ended {
				a.ended("acme")
			}
			if got := names(a.next("acme")); got != c.want {
				t.Errorf("notified are %q, want %q", got, c.want)
			}
			for range MaxInFlight - c.ended {
				a.ended("acme")
			}
			if got := names(a.next("acme")); got != c.then {
				t.Errorf("then %q, want %q", got, c.then)
			}
			if len(a.tenants) > 0 {
				t.Error("a tenant of whom nothing runs or waits is kept")
			}
		})
	}
}

// TestAnAppThatWasNotifiedMayWaitAgain: another one of the tenant may have begun before it.
func TestAnAppThatWasNotifiedMayWaitAgain(t *testing.T) {
	a := fullAdmission(t, "a")
	a.ended("acme")
	if got := names(a.next("acme")); got != "a" {
		t.Fatalf("notified are %q, want %q", got, "a")
	}
	if !a.admit("acme", types.NamespacedName{Name: "faster"}) || a.admit("acme", types.NamespacedName{Name: "a"}) {
		t.Fatal("one place was free")
	}
	a.ended("acme")
	if got := names(a.next("acme")); got != "a" {
		t.Errorf("notified are %q, and a waits for ever, want %q", got, "a")
	}
}

func TestAppsThatWaitAreKeptThoughNothingOfTheirTenantRuns(t *testing.T) {
	var waiting []string
	for i := range MaxInFlight + 2 {
		waiting = append(waiting, fmt.Sprintf("w%d", i))
	}
	a := fullAdmission(t, waiting...)
	for range MaxInFlight {
		a.ended("acme")
	}
	if got, want := names(a.next("acme")), strings.Join(waiting[:MaxInFlight], " "); got != want {
		t.Errorf("notified are %q, want %q", got, want)
	}
	if got, want := names(a.next("acme")), strings.Join(waiting[MaxInFlight:], " "); got != want {
		t.Errorf("then %q, want %q", got, want)
	}
}

func TestTenantsDoNotShareTheirLimit(t *testing.T) {
	a := fullAdmission(t, "a")
	if !a.admit("beta", types.NamespacedName{Name: "b"}) {
		t.Error("another tenant's action is refused")
	}
	if got := a.next("none"); got != nil {
		t.Errorf("of a tenant without actions %v are notified", got)
	}
}

func TestNobodyIsNotifiedWhileTheOperatorStops(t *testing.T) {
	for name, stops := range map[string]bool{"it runs on": false, "it stops": true} {
		t.Run(name, func(t *testing.T) {
			p, notified := newPool(1)
			release := make(chan struct{})
			for i := range MaxInFlight {
				launch(t, p, fmt.Sprint(i), func(*Worker) { <-release })
			}
			waiting := types.NamespacedName{Namespace: "team", Name: "waits"}
			s := p.Slot(waiting)
			s.Lock()
			err := p.Start(t.Context(), s, run(nothing).action(waiting))
			s.Unlock()
			if !errors.Is(err, ErrQueued) {
				t.Fatalf("got %v", err)
			}
			if !stops {
				close(release)
				for <-notified != waiting {
				}
				return
			}
			p.stop()
			close(release)
			if err := p.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			for len(notified) > 0 {
				if <-notified == waiting {
					t.Error("an app is notified for which nothing starts any more")
				}
			}
		})
	}
}
