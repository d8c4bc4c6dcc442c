package subject

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/own"
)

// TestAQuoteIsMaskedBeforeItIsCut cuts the text in the middle of a secret.
func TestAQuoteIsMaskedBeforeItIsCut(t *testing.T) {
	s := (&Subjects{}).New(&v1alpha1.App{})
	s.Hide("hunter22hunter22")
	before := strings.Repeat("x", maxQuoted-8)
	if got := s.Quote(before + "hunter22hunter22"); !strings.Contains(got, before) || strings.Contains(got, "hunt") {
		t.Errorf("got %s", got)
	}
}

func TestAPhaseBeginsOnce(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(100, 0))
	subjects, app := &Subjects{Clock: clock}, &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
	began := clock.Now()
	if got := subjects.New(app).Since("release"); got != began {
		t.Errorf("the phase began at %s, want %s", got, began)
	}
	clock.SetTime(began.Add(time.Minute))
	if got := subjects.New(app).Since("release"); got != began {
		t.Errorf("the same phase began again at %s, want %s", got, began)
	}
	if waited := subjects.New(app).Waited("release"); waited != time.Minute {
		t.Errorf("the time waited is %s, want %s", waited, time.Minute)
	}
	if got := subjects.New(app).Since("health of revision 2"); got != clock.Now() {
		t.Errorf("another phase began at %s, want %s", got, clock.Now())
	}
	subjects.New(app).Settled()
	if got := subjects.New(app).Since("health of revision 2"); got != clock.Now() {
		t.Errorf("the ended phase began at %s, want %s", got, clock.Now())
	}
}

func TestTheEarliestRequeueCounts(t *testing.T) {
	s := (&Subjects{}).New(&v1alpha1.App{})
	for _, after := range []time.Duration{time.Minute, time.Second, time.Hour, 0, -time.Second} {
		s.LookAgain(after)
	}
	if s.Again() != time.Second {
		t.Errorf("the app comes again after %s, want %s", s.Again(), time.Second)
	}
}

func TestAnAnnotationRequestsOncePerValue(t *testing.T) {
	cases := map[string]struct {
		value, handled string
		want           bool
	}{
		"nothing":            {"", "", false},
		"for the first time": {"1", "", true},
		"what was handled":   {"1", "1", false},
		"again":              {"2", "1", true},
		"taken away":         {"", "1", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{meta.ForceRequestAnnotation: c.value, v1alpha1.ResetAnnotation: c.value}}}
			app.Status.LastHandledForceAt, app.Status.LastHandledResetAt = c.handled, c.handled
			s := (&Subjects{}).New(app)
			if s.Forced() != c.want || s.Reset() != c.want {
				t.Errorf("forced is %t, reset %t", s.Forced(), s.Reset())
			}
		})
	}
}

// TestAReconcileIsRequestedOncePerToken: the annotation of a request stays on the App after it was handled.
func TestAReconcileIsRequestedOncePerToken(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		handled     string
		want        bool
	}{
		"no annotation":        {nil, "", false},
		"a new token":          {map[string]string{meta.ReconcileRequestAnnotation: "1"}, "", true},
		"another token":        {map[string]string{meta.ReconcileRequestAnnotation: "2"}, "1", true},
		"a token that is done": {map[string]string{meta.ReconcileRequestAnnotation: "1"}, "1", false},
		"a token taken away":   {nil, "1", false},
	} {
		app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
		app.Status.SetLastHandledReconcileRequest(tc.handled)
		if got := (&Subjects{}).New(app).Requested(); got != tc.want {
			t.Errorf("%s: requested is %t", name, got)
		}
	}
}

func TestTheDeclaredRevisionIsTheCommitOrElseTheGeneration(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
	s := (&Subjects{}).New(app)
	if got := s.DeclaredRevision(); got != "generation 7" {
		t.Errorf("an app of no commit has the revision %q", got)
	}
	app.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:abc"}
	if got := s.DeclaredRevision(); got != "main@sha1:abc" {
		t.Errorf("an app of a commit has the revision %q", got)
	}
}

func TestTheLabelsOfObjectsNameTheOwner(t *testing.T) {
	s := (&Subjects{}).New(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "web"}})
	if s.OfPlatform() {
		t.Error("an app whose project is not known is taken for one of the platform")
	}
	s.Owner = own.Owner{Tenant: "acme", Project: "shop", App: "web"}
	want := map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: "web"}
	if diff := cmp.Diff(want, s.Labels()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s.OfPlatform() {
		t.Error("an app of a tenant is taken for one of the platform")
	}
	if s.Owner.Tenant = v1alpha1.PlatformTenant; !s.OfPlatform() {
		t.Error("an app of the platform is taken for one of a tenant")
	}
	if key := s.Key(); key.Namespace != "kubeop-acme-shop" || key.Name != "web" {
		t.Errorf("the key is %s", key)
	}
}

// TestAShortQuoteIsWhole counts characters, not bytes.
func TestAShortQuoteIsWhole(t *testing.T) {
	s := (&Subjects{}).New(&v1alpha1.App{})
	for text, want := range map[string]string{
		"short":                           "short",
		strings.Repeat("é", maxQuoted):    strings.Repeat("é", maxQuoted),
		strings.Repeat("é", maxQuoted+1):  strings.Repeat("é", maxQuoted-1) + "…",
		strings.Repeat("é", 10*maxQuoted): strings.Repeat("é", maxQuoted-1) + "…",
	} {
		if got := s.Quote(text); got != want {
			t.Errorf("%d characters are quoted as %d", len([]rune(text)), len([]rune(got)))
		}
	}
}

// TestWorkBesideTheReconcileSharesNothingWithIt: neither sees what the other changes, also at the same time.
func TestWorkBesideTheReconcileSharesNothingWithIt(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(100, 0))
	s := (&Subjects{Clock: clock}).New(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{UID: "1", Annotations: map[string]string{"a": "1"}}})
	s.Hide("before")
	began := s.Since("release")
	apart := s.Apart()
	if apart.Since("release") != began || apart.App == s.App || apart.progress == s.progress {
		t.Fatalf("the copy waits since %s; it has the same App: %t, the same phases: %t", apart.Since("release"), apart.App == s.App, apart.progress == s.progress)
	}
	clock.SetTime(began.Add(time.Minute))
	var both sync.WaitGroup
	for _, own := range []struct {
		of         *Subject
		phase, why string
	}{{s, "release", "of the Reconcile"}, {apart, "signatures", "of the work"}} {
		both.Go(func() {
			for range 1000 {
				own.of.Waited(own.phase)
				own.of.App.Status.ObservedTree, own.of.App.Annotations["a"] = own.why, own.why
			}
			own.of.Hide(own.why)
		})
	}
	both.Wait()
	if waited := s.Waited("release"); waited != time.Minute {
		t.Errorf("the release has waited for %s, want %s: work beside it began its phase anew", waited, time.Minute)
	}
	if waited := apart.Waited("signatures"); waited != 0 {
		t.Errorf("the signatures have waited for %s", waited)
	}
	for of, want := range map[*Subject]string{s: "of the Reconcile", apart: "of the work"} {
		if of.App.Status.ObservedTree != want || of.App.Annotations["a"] != want {
			t.Errorf("what is %s has the status %q and the annotation %q", want, of.App.Status.ObservedTree, of.App.Annotations["a"])
		}
		if diff := cmp.Diff([]string{"before", want}, of.Sensitive()); diff != "" {
			t.Errorf("what is %s hides -want +got:\n%s", want, diff)
		}
	}
}

// TestTheStateOfAnAppEndsWithIt: an App with the same name and another UID has a state of its own.
func TestTheStateOfAnAppEndsWithIt(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(100, 0))
	subjects, began := &Subjects{Clock: clock}, clock.Now()
	first := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1"}}
	second := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "2"}}
	subjects.New(first).Since("release")
	clock.SetTime(began.Add(time.Minute))
	if got := subjects.New(second).Waited("release"); got != 0 {
		t.Errorf("another app has waited for %s", got)
	}
	if got := subjects.New(first).Waited("release"); got != time.Minute {
		t.Errorf("the app has waited for %s", got)
	}
	subjects.Forget(first)
	if got := subjects.New(first).Waited("release"); got != 0 {
		t.Errorf("a forgotten app has waited for %s", got)
	}
}

// TestAReleaseIsUninstalledWithoutHooksWhereNoPodIsAdmitted: otherwise the deletion of a tenant that is stopped never ends.
func TestAReleaseIsUninstalledWithoutHooksWhereNoPodIsAdmitted(t *testing.T) {
	for name, c := range map[string]struct{ refused, declared, want bool }{
		"pods are refused": {true, false, true}, "pods are admitted": {false, false, false}, "the app wants none": {false, true, true},
	} {
		declared := v1alpha1.HelmActions{Uninstall: v1alpha1.HelmUninstall{DisableHooks: c.declared}}
		if got := (Holds{PodsRefused: c.refused}).Actions(declared); got.Uninstall.DisableHooks != c.want || declared.Uninstall.DisableHooks != c.declared {
			t.Errorf("%s: without hooks: %t, want %t", name, got.Uninstall.DisableHooks, c.want)
		}
	}
}
