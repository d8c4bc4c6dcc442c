package step

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/kube"
)

// TestARefusedApplyStopsOnlyIfNoRetryHelps: of several errors, one that may pass is enough to try again.
func TestARefusedApplyStopsOnlyIfNoRetryHelps(t *testing.T) {
	foreign, away := errors.New("belongs to another"), errors.New("away")
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "one", nil)
	unguarded := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422, Message: "ValidatingAdmissionPolicy 'kubeop-guardrails-deny' with binding " +
		"'kubeop-guardrails-deny' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"}}
	unread := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422, Message: "ValidatingAdmissionPolicy 'a' with binding 'a' denied request: " +
		"failed to configure binding: Get \"https://127.0.0.1/apis/paas.kubeop.io/v1alpha1/namespaces/kubeop-acme-shop/guardrails/kubeop\": context deadline exceeded"}}
	unserved := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422, Message: "ValidatingAdmissionPolicy 'a' denied request: " +
		"failed to configure policy: failed to find resource referenced by paramKind: 'paas.kubeop.io/v1alpha1, Kind=Guardrails'"}}
	for name, c := range map[string]struct {
		err         error
		stops, fail bool
	}{
		"none":               {nil, false, false},
		"invalid":            {invalid, true, false},
		"a bad request":      {apierrors.NewBadRequest("no"), true, false},
		"without guardrails": {unguarded, false, true},
		"unknown guardrails": {unserved, false, true},
		"guardrails unread":  {unread, false, true},
		"of another":         {fmt.Errorf("ConfigMap/one: %w", foreign), true, false},
		"no answer":          {away, false, true},
		"several that stop":  {errors.Join(invalid, fmt.Errorf("two: %w", foreign)), true, false},
		"one of two may end": {errors.Join(invalid, away), false, true},
		"the first may end":  {errors.Join(away, invalid), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := Refused("R", c.err, foreign)
			if got := Fails(err); got != c.fail {
				t.Errorf("it is tried again: %t, want %t: %v", got, c.fail, err)
			}
			reason, is := Failure(err)
			if is != (c.stops || c.fail) || is && reason != "R" || !c.stops && !c.fail && err != nil {
				t.Errorf("got %v with reason %q", err, reason)
			}
			if c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("%v does not wrap %v", err, c.err)
			}
		})
	}
}

func TestAWaitAndAStopAreNoFailures(t *testing.T) {
	for name, c := range map[string]struct {
		err          error
		waits, fails bool
	}{
		"nothing":      {nil, false, false},
		"a wait":       {Wait("R", time.Second, "w"), true, false},
		"a quiet wait": {WaitQuietly(0, Quiet, time.Second, errors.New("w")), true, false},
		"a stop":       {Stop("R", errors.New("s")), false, false},
		"a failure":    {Fail("R", errors.New("f")), false, true},
		"any error":    {errors.New("e"), false, true},
	} {
		if waits := c.err != nil && Waits(c.err); waits != c.waits || Fails(c.err) != c.fails {
			t.Errorf("%s: waits %t, fails %t", name, waits, Fails(c.err))
		}
	}
}

// TestALaterStepRunsAfterAnErrorThatGoesOn: GoOn is reported by Ready, unless a later step fails, Degrade is not, and Skip leaves the condition.
func TestALaterStepRunsAfterAnErrorThatGoesOn(t *testing.T) {
	away := errors.New("no answer")
	for name, c := range map[string]struct {
		first, second error
		want          []string
		ready         string
		after         time.Duration
		err           error
	}{
		"a failure": {first: GoOn(Fail("Away", away)), want: []string{"Reconciling=True ProgressingWithRetry", "Ready=False Away", "First=False Away", "Second=True Succeeded"}, ready: "no answer", err: away},
		"a failure that is looked at again": {first: GoOn(FailAfter("Away", 4*time.Second, away)), after: 4 * time.Second,
			want: []string{"Reconciling=True ProgressingWithRetry", "Ready=False Away", "First=False Away", "Second=True Succeeded"}, ready: "no answer"},
		"a failure before another": {first: GoOn(Fail("Away", away)), second: Wait("NotYet", 3*time.Second, "waits"), after: 3 * time.Second,
			want: []string{"Reconciling=True Progressing", "Ready=Unknown NotYet", "First=False Away", "Second=Unknown NotYet"}, ready: "waits"},
		"with more words": {first: Add(GoOn(FailAfter("Away", 4*time.Second, away)), "see the host"), after: 4 * time.Second,
			want: []string{"Reconciling=True ProgressingWithRetry", "Ready=False Away", "First=False Away", "Second=True Succeeded"}, ready: "no answer; see the host"},
		"degraded, with more words": {first: Add(Degrade(Fail("Away", away)), "see the host"), after: 10 * time.Minute,
			want: []string{"Ready=True Succeeded", "First=False Away", "Second=True Succeeded"}, ready: "Applied main@sha1:1"},
		"a stop with more words": {first: Add(Stop("Wrong", away), "see the host"), after: 10 * time.Minute,
			want: []string{"Stalled=True Wrong", "Ready=False Wrong", "First=False Wrong", "Second=Unknown Progressing"}, ready: "no answer; see the host"},
		"left out": {first: Skip(), want: []string{"Ready=True Succeeded", "Second=True Succeeded"}, ready: "Applied main@sha1:1", after: 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, web())
			result, err := b.run(t, c.first, c.second)
			if !errors.Is(err, c.err) || c.err == nil && err != nil {
				t.Errorf("got error %v, want %v", err, c.err)
			}
			if d := result.RequeueAfter - c.after; d < -c.after/10 || d > c.after/10 {
				t.Errorf("looks again after %s, want about %s", result.RequeueAfter, c.after)
			}
			if diff := cmp.Diff(c.want, conditionTexts(b.app)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if got := conditions.GetMessage(b.app, v1alpha1.ReadyCondition); got != c.ready {
				t.Errorf("Ready says %q, want %q", got, c.ready)
			}
		})
	}
}

// TestAFailureThatReadyReportsIsOneEvent, although a condition of a step that may be degraded is False, too.
func TestAFailureThatReadyReportsIsOneEvent(t *testing.T) {
	b := newFixture(t, web())
	f := &facts{app: b.app, revision: "main@sha1:1"}
	step := Of(v1alpha1.SourceReadyCondition, f, func(context.Context, *facts) error {
		return GoOn(FailAfter("FetchFailed", time.Second, errors.New("no answer")))
	})
	if _, err := b.Run(t.Context(), b.app, f, step); err != nil {
		t.Fatal(err)
	}
	if got := b.eventTexts(); strings.Count(got, "no answer") != 1 {
		t.Errorf("the events are %q", got)
	}
}

func TestAnErrorOfAStepSaysHowTheStepEnds(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		ended bool
	}{
		"a stop": {Stop("R", errors.New("s")), true}, "a failure around a wait": {fmt.Errorf("app web: %w", Wait("R", time.Second, "w")), true}, "any error": {errors.New("e"), false}, "nothing": {nil, false},
	} {
		if Ended(c.err) != c.ended {
			t.Errorf("%s: %t", name, !c.ended)
		}
	}
}

// TestRepeatEndsWithTheFirstAnswerThatDoesNotWait, or with what is waited for when the time is over.
func TestRepeatEndsWithTheFirstAnswerThatDoesNotWait(t *testing.T) {
	failure := errors.New("no")
	for name, end := range map[string]error{"done": nil, "failed": failure} {
		calls := 0
		err := Repeat(t.Context(), time.Millisecond, time.Millisecond, func() error {
			if calls++; calls < 3 {
				return Wait("R", time.Second, "waits")
			}
			return end
		})
		if calls != 3 || !errors.Is(err, end) {
			t.Errorf("%s: %v after %d calls", name, err, calls)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := Repeat(ctx, time.Millisecond, time.Millisecond, func() error {
		cancel()
		return Wait("R", time.Second, "waits for it")
	})
	if err == nil || err.Error() != "waits for it" {
		t.Errorf("when the time is over: %v", err)
	}
}

// TestThePausesOfRepeatDouble up to the longest.
func TestThePausesOfRepeatDouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), []time.Duration(nil)
		err := Repeat(t.Context(), 50*time.Millisecond, time.Second, func() error {
			if calls = append(calls, time.Since(began)/time.Millisecond); len(calls) < 9 {
				return Wait("R", time.Second, "waits")
			}
			return nil
		})
		if diff := cmp.Diff([]time.Duration{0, 50, 150, 350, 750, 1550, 2550, 3550, 4550}, calls); diff != "" || err != nil {
			t.Errorf("%v; calls after milliseconds -want +got:\n%s", err, diff)
		}
	})
}

// TestADegradedStepIsAnEventOnce: Ready does not report it, so the event does, whatever the step's condition is, and however the later steps end.
func TestADegradedStepIsAnEventOnce(t *testing.T) {
	away, refused := Degrade(Fail("Away", errors.New("no answer"))), Degrade(Stop("Refused", errors.New("not allowed")))
	for name, c := range map[string]struct {
		condition string
		// first are what the two steps of a Reconcile return, then those of the next one.
		first, then [2]error
		want        string
	}{
		"the source of an app":              {v1alpha1.SourceReadyCondition, [2]error{away}, [2]error{away}, "Warning Away no answer"},
		"the registries of a project":       {v1alpha1.RegistriesReadyCondition, [2]error{refused}, [2]error{refused}, "Warning Refused not allowed"},
		"any other condition":               {"Any", [2]error{away}, [2]error{away}, "Warning Away no answer"},
		"a later step waits, then succeeds": {"Any", [2]error{away, Wait("NotYet", time.Second, "waits")}, [2]error{away}, "Warning Away no answer"},
		"a later step fails, too": {"Any", [2]error{away, Stop("Wrong", errors.New("no"))}, [2]error{away, Stop("Wrong", errors.New("no"))},
			"Warning Wrong no\nWarning Away no answer"},
		"another failure follows":      {"Any", [2]error{away}, [2]error{refused}, "Warning Away no answer\nWarning Refused not allowed"},
		"it waits":                     {"Any", [2]error{Degrade(Wait("NotYet", time.Second, "waits"))}, [2]error{Degrade(Wait("NotYet", time.Second, "waits"))}, ""},
		"a failure that Ready reports": {"Any", [2]error{GoOn(Stop("Wrong", errors.New("no")))}, [2]error{GoOn(Stop("Wrong", errors.New("no")))}, "Warning Wrong no"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, web())
			for _, ends := range [][2]error{c.first, c.then} {
				f := &facts{app: b.app, revision: "main@sha1:1"}
				steps := []Step{Of(c.condition, f, func(context.Context, *facts) error { return ends[0] }), Of("Later", f, func(context.Context, *facts) error { return ends[1] })}
				if _, err := b.Run(t.Context(), b.app, f, steps...); err != nil {
					t.Fatal(err)
				}
				b.read(t, b.app)
			}
			if diff := cmp.Diff(c.want, b.eventTexts()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAStatusThatTheAPIServerFindsTooLargeIsSaidInAnother: what was reported before stays, so that it is as large as before.
func TestAStatusThatTheAPIServerFindsTooLargeIsSaidInAnother(t *testing.T) {
	for name, refusal := range map[string]error{
		"the API server": apierrors.NewRequestEntityTooLargeError("limit is 3145728"), "etcd": &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "etcdserver: request is too large"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, web())
			refused := false
			b.Client = interceptor.NewClient(b.Client.(client.WithWatch), interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
					if !refused {
						refused = true
						return refusal
					}
					return c.SubResource(sub).Patch(ctx, o, p, opts...)
				},
			})
			if _, err := b.run(t, nil); !errors.Is(err, errTooLarge) || !errors.Is(err, refusal) {
				t.Errorf("got %v", err)
			}
			if b.read(t, b.app); conditions.GetReason(b.app, v1alpha1.ReadyCondition) != v1alpha1.TooLargeReason || b.app.Status.LastAttemptedRevision != "" {
				t.Errorf("the status is %+v", b.app.Status)
			}
			if reason := conditions.GetReason(b.app, meta.ReconcilingCondition); reason != v1alpha1.ProgressingWithRetryReason {
				t.Errorf("it is tried again for the reason %q", reason)
			}
		})
	}
	b := newFixture(t, web())
	b.Client = interceptor.NewClient(b.Client.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errors.New("away")
		},
	})
	if _, err := b.run(t, nil); err == nil || errors.Is(err, errTooLarge) || !strings.Contains(err.Error(), "writing the status: away") {
		t.Errorf("another error: %v", err)
	}
}

func TestASecondSuspensionOfTheSameTimeChangesNothing(t *testing.T) {
	b := newFixture(t, web())
	if err := b.suspended(t.Context(), b.app, " until noon"); err != nil {
		t.Fatal(err)
	}
	conditions.Set(b.app, &metav1.Condition{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "R", Message: "Applied"})
	if err := b.suspended(t.Context(), b.app, " until noon"); err != nil || conditions.GetMessage(b.app, v1alpha1.ReadyCondition) != "Applied" {
		t.Errorf("Ready says %q, %v", conditions.GetMessage(b.app, v1alpha1.ReadyCondition), err)
	}
	if b.patches != 1 {
		t.Errorf("the status was written %d times, want 1", b.patches)
	}
}

// TestAnAnswerThatIsMissingIsNoNewsAboutAFailure that is reported of the present spec.
func TestAnAnswerThatIsMissingIsNoNewsAboutAFailure(t *testing.T) {
	for name, c := range map[string]struct {
		status     metav1.ConditionStatus
		generation int64
		reported   bool
	}{
		"nothing is known":           {"", 0, true},
		"it failed":                  {metav1.ConditionFalse, 3, false},
		"it failed with an old spec": {metav1.ConditionFalse, 2, true},
		"it succeeded":               {metav1.ConditionTrue, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, web(func(a *v1alpha1.App) {
				a.Generation = 3
				if c.status != "" {
					a.Status.Conditions = []metav1.Condition{{Type: "First", Status: c.status, Reason: "R", ObservedGeneration: c.generation}}
				}
			}))
			result, err := b.run(t, Unanswered(LastLook, errors.New("no answer yet")))
			if err != nil || result.RequeueAfter != LastLook {
				t.Errorf("got %+v, %v", result, err)
			}
			if got := conditions.GetMessage(b.app, v1alpha1.ReadyCondition); (got == "no answer yet") != c.reported || (b.patches == 1) != c.reported {
				t.Errorf("Ready says %q after %d writes, want a report: %t", got, b.patches, c.reported)
			}
		})
	}
}

func TestFailingIsWhatMakesAConditionFalse(t *testing.T) {
	no := errors.New("no")
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"success": {nil, false}, "an error": {no, true}, "tried again": {FailAfter("R", time.Second, no), true}, "stopped": {Stop("R", no), true},
		"what was delivered stands": {Degrade(no), true}, "it goes on": {GoOn(no), true}, "it goes on while it waits": {GoOn(Wait("R", time.Second, "later")), false},
		"it waits": {Wait("R", time.Second, "later"), false}, "soon": {Soon(time.Second), false}, "left out": {Skip(), false},
		"no answer yet": {Unanswered(time.Second, no), false}, "no list of a watch yet": {fmt.Errorf("reading: %w", &kube.Unready{}), false},
	} {
		if got := Failing(c.err); got != c.want {
			t.Errorf("%s: failing %t, want %t", name, got, c.want)
		}
	}
}
