package step

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// noted are facts with a condition beside the steps' and details of a failure.
type noted struct {
	facts
	note    Note
	details string
}

func (n *noted) Notes() []Note   { return []Note{n.note} }
func (n *noted) Details() string { return n.details }

func TestSoonWritesNothing(t *testing.T) {
	b := newFixture(t, web())
	if _, err := b.run(t, Stop("Wrong", errors.New("no"))); err != nil {
		t.Fatal(err)
	}
	b.read(t, b.app)
	before, events := b.app.Status.DeepCopy(), len(b.events.Events)
	result, err := b.run(t, nil, Soon(2*time.Second), errors.New("must not run"))
	if err != nil || result.RequeueAfter != 2*time.Second {
		t.Errorf("got %+v and %v", result, err)
	}
	b.read(t, b.app)
	if diff := cmp.Diff(before, &b.app.Status); diff != "" || b.patches != 1 || len(b.events.Events) != events {
		t.Errorf("%d patches, %d events, status changed:\n%s", b.patches, len(b.events.Events)-events, diff)
	}
}

func TestANoteSetsItsConditionAndReportsAChange(t *testing.T) {
	b := newFixture(t, web())
	run := func(n Note) {
		t.Helper()
		f := &noted{facts: facts{app: b.app}, note: n}
		if _, err := b.Run(t.Context(), b.app, f, Of("First", f, func(context.Context, *noted) error { return nil })); err != nil {
			t.Fatal(err)
		}
		b.read(t, b.app)
	}
	drifted := Note{Condition: "Drifted", Status: metav1.ConditionTrue, Reason: "DriftDetected", Message: "spec.replicas", Event: "Warning"}
	run(drifted)
	want := []string{"Ready=True Succeeded", "Drifted=True DriftDetected", "First=True Succeeded"}
	if diff := cmp.Diff(want, conditionTexts(b.app)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if got, want := <-b.events.Events, "Warning DriftDetected spec.replicas"; got != want {
		t.Errorf("the event says %q, want %q in it", got, want)
	}
	run(drifted)
	if len(b.events.Events) != 0 {
		t.Errorf("the same is reported again: %q", <-b.events.Events)
	}
	run(Stays("Drifted"))
	if diff := cmp.Diff(want, conditionTexts(b.app)); diff != "" {
		t.Errorf("conditions that stay (-want +got):\n%s", diff)
	}
	run(Note{Condition: "Drifted"})
	if diff := cmp.Diff([]string{"Ready=True Succeeded", "First=True Succeeded"}, conditionTexts(b.app)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// eager are facts that want to be looked at again soon.
type eager struct{ facts }

func (*eager) Again() time.Duration { return 7 * time.Second }

func TestAStoppedObjectIsReconciledWhenTheScopeIsDue(t *testing.T) {
	for name, outcome := range map[string]error{"well": nil, "stopped": Stop("Wrong", errors.New("no"))} {
		b := newFixture(t, web())
		f := &eager{facts{app: b.app}}
		result, err := b.Run(t.Context(), b.app, f, Of("First", f, func(context.Context, *eager) error { return outcome }))
		if err != nil || result.RequeueAfter != 7*time.Second {
			t.Errorf("%s: looks again after %s, %v", name, result.RequeueAfter, err)
		}
	}
}

func TestDetailsAreInTheEventOnly(t *testing.T) {
	b := newFixture(t, web())
	f := &noted{facts: facts{app: b.app}, details: "line 1\nline 2"}
	stop := func(context.Context, *noted) error { return Stop(v1alpha1.UpgradeFailedReason, errors.New("no")) }
	if _, err := b.Run(t.Context(), b.app, f, Of("First", f, stop)); err != nil {
		t.Fatal(err)
	}
	if got := <-b.events.Events; got != "Warning UpgradeFailed no\nline 1\nline 2" {
		t.Errorf("the event says %q", got)
	}
	b.read(t, b.app)
	for _, c := range b.app.Status.Conditions {
		if strings.Contains(c.Message, "line") {
			t.Errorf("%s says %q", c.Type, c.Message)
		}
	}
}

// headed are facts with something to say in front of Ready's message.
type headed struct {
	facts
	heading string
}

func (h *headed) Heading() string { return h.heading }

func TestAHeadingIsInFrontOfReadyAndInNoEvent(t *testing.T) {
	b := newFixture(t, web())
	run := func(heading string, outcome error) string {
		t.Helper()
		f := &headed{facts: facts{app: b.app}, heading: heading}
		if _, err := b.Run(t.Context(), b.app, f, Of("First", f, func(context.Context, *headed) error { return outcome })); err != nil {
			t.Fatal(err)
		}
		b.read(t, b.app)
		return conditions.GetMessage(b.app, v1alpha1.ReadyCondition)
	}
	stop := Stop(v1alpha1.UpgradeFailedReason, errors.New("no"))
	for _, c := range []struct {
		heading string
		outcome error
		want    string
	}{
		{"", stop, "no"}, {"Refused; ", stop, "Refused; no"}, {"Refused; ", stop, "Refused; no"}, {"", stop, "no"},
		{"Refused; ", Wait("Later", time.Second, "later"), "Refused; later"},
	} {
		if got := run(c.heading, c.outcome); got != c.want {
			t.Errorf("Ready says %q, want %q", got, c.want)
		}
	}
	if n := len(b.events.Events); n != 1 {
		t.Errorf("%d events, want the one failure", n)
	}
	if got := <-b.events.Events; got != "Warning UpgradeFailed no" {
		t.Errorf("the event says %q", got)
	}
}

// TestAFailureHasOneEventUntilItChanges: neither a heading nor a restart makes it new, and a text that ends like the last one is another failure.
func TestAFailureHasOneEventUntilItChanges(t *testing.T) {
	b := newFixture(t, web())
	run := func(heading, why string) {
		t.Helper()
		f := &headed{facts: facts{app: b.app}, heading: heading}
		if _, err := b.Run(t.Context(), b.app, f, Of("First", f, func(context.Context, *headed) error { return Stop("Wrong", errors.New(why)) })); err != nil {
			t.Fatal(err)
		}
		b.read(t, b.app)
	}
	run("", "reading: no")
	run("Refused; ", "reading: no")
	b.Runner = &Runner{Client: b.Client, Events: b.Events, Clock: b.Clock}
	run("Refused; ", "reading: no")
	run("", "no")
	close(b.events.Events)
	var got []string
	for e := range b.events.Events {
		got = append(got, e)
	}
	if diff := cmp.Diff([]string{"Warning Wrong reading: no", "Warning Wrong no"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
