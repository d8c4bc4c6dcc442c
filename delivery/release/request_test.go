package release

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
)

// TestADangerousRequestIsRefused before anything is read or started: without a user, for example, the operator itself would act.
func TestADangerousRequestIsRefused(t *testing.T) {
	whole := Request{App: app, Name: "shop", Namespace: "team", User: "system:serviceaccount:team:kubeop-deployer", Policy: Policy{
		Admit:   func([]*unstructured.Unstructured) error { return nil },
		Refused: func(error) bool { return true },
		Owned:   func(context.Context) (map[types.UID][]string, error) { return nil, nil },
	}}
	if err := whole.check(); err != nil {
		t.Fatalf("nothing is missing: %v", err)
	}
	e, _ := unconnected(1)
	e.dial = func(Request) (*cluster.Connection, error) {
		t.Error("it is connected")
		return nil, errors.New("no cluster")
	}
	const manual = "the release is to be forced or reset, and Manual.ID does not say for which request"
	for name, test := range map[string]struct {
		change func(*Request)
		want   string
	}{
		"no name":                  {func(r *Request) { r.Name = "" }, "the release has no name or namespace"},
		"no namespace":             {func(r *Request) { r.Namespace = "" }, "the release has no name or namespace"},
		"no user":                  {func(r *Request) { r.User = "" }, "the release has no user to impersonate"},
		"no claims":                {func(r *Request) { r.Policy.Owned = nil }, "the release does not know what owns claims"},
		"no admission":             {func(r *Request) { r.Policy.Admit = nil }, "the release has no admission"},
		"no refusals":              {func(r *Request) { r.Policy.Refused = nil }, "the release does not know which errors of admission are refusals"},
		"a force without its name": {func(r *Request) { r.Manual.Force = true }, manual},
		"a reset without its name": {func(r *Request) { r.Manual.Reset = true }, manual},
	} {
		req, ctx := whole, t.Context()
		test.change(&req)
		for method, call := range map[string]func() error{
			"Reconcile":  func() error { _, err := e.Reconcile(ctx, req); return err },
			"Uninstall":  func() error { _, err := e.Uninstall(ctx, req); return err },
			"Drift":      func() error { _, err := e.Drift(ctx, req, nil, true); return err },
			"MarkFailed": func() error { _, err := e.MarkFailed(ctx, req, "x"); return err },
			"Preview":    func() error { _, err := e.Preview(ctx, req); return err },
			"Test":       func() error { _, err := e.Test(ctx, req); return err },
		} {
			if err := call(); err == nil || err.Error() != test.want {
				t.Errorf("%s, %s: got %v, want %s", name, method, err, test.want)
			}
		}
	}
}

// TestARevisionIsKnownByItsContent: after an uninstall, the numbers begin anew.
func TestARevisionIsKnownByItsContent(t *testing.T) {
	recorded := Recorded{Revision: 3, Content: "c", Proven: true}
	revision := func(number int, content string) decide.Revision {
		r := decide.Revision{Number: number}
		r.Content = content
		return r
	}
	for name, test := range map[string]struct {
		recorded      Recorded
		of            decide.Revision
		known, proven bool
	}{
		"this very one":    {recorded, revision(3, "c"), true, true},
		"not seen healthy": {Recorded{Revision: 3, Content: "c"}, revision(3, "c"), true, false},
		"another number":   {recorded, revision(4, "c"), false, false},
		"another content":  {recorded, revision(3, "d"), false, false},
		"nothing recorded": {Recorded{}, revision(3, "c"), false, false},
	} {
		r := &Request{Recorded: test.recorded}
		if r.knows(&test.of) != test.known || r.proven(&test.of) != test.proven {
			t.Errorf("%s: known %t, proven %t", name, r.knows(&test.of), r.proven(&test.of))
		}
	}
}

// TestTheLongestTimeoutDecidesWhenALockIsAbandoned: a revision counts as abandoned after the longest timeout that one of the actions has,
// so that no action is taken for dead while it still may run.
func TestTheLongestTimeoutDecidesWhenALockIsAbandoned(t *testing.T) {
	hour := &metav1.Duration{Duration: time.Hour}
	tests := map[string]struct {
		timeout time.Duration
		set     func(*v1alpha1.HelmActions)
		want    time.Duration
	}{
		"nothing is set":                    {0, func(*v1alpha1.HelmActions) {}, cluster.DefaultTimeout},
		"that of the app":                   {time.Minute, func(*v1alpha1.HelmActions) {}, time.Minute},
		"the install's is longer":           {time.Minute, func(a *v1alpha1.HelmActions) { a.Install.Timeout = hour }, time.Hour},
		"the upgrade's is longer":           {time.Minute, func(a *v1alpha1.HelmActions) { a.Upgrade.Timeout = hour }, time.Hour},
		"the uninstall's is longer":         {time.Minute, func(a *v1alpha1.HelmActions) { a.Uninstall.Timeout = hour }, time.Hour},
		"the test's is longer":              {time.Minute, func(a *v1alpha1.HelmActions) { a.Test.Timeout = hour }, time.Hour},
		"the app's is longer than an own's": {2 * time.Hour, func(a *v1alpha1.HelmActions) { a.Install.Timeout = hour }, 2 * time.Hour},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &Request{Timeout: test.timeout}
			test.set(&r.Actions)
			if got := r.longest(); got != test.want {
				t.Errorf("the longest is %s, want %s", got, test.want)
			}
		})
	}
}
