package subject

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
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
	for _, after := range []time.Duration{time.Minute, time.Second, time.Hour} {
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
