package step

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// discreetFacts hide a word.
type discreetFacts struct{ noted }

func (*discreetFacts) Mask(text string) string { return strings.ReplaceAll(text, "hunter22", "***") }

func TestMaskedValuesAreInNoStatusOrEvent(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("hunter22"))
	tests := map[string]struct {
		err    error
		reason string
	}{
		"a failure":        {errors.New("password hunter22"), v1alpha1.FailedReason},
		"one with reason":  {Fail("Wrong", errors.New("password hunter22")), "Wrong"},
		"a stop":           {Stop("Wrong", errors.New("password hunter22")), "Wrong"},
		"a wait":           {Wait("Waiting", 1, "for %s", "hunter22"), "Waiting"},
		"one of the API's": {forbidden, v1alpha1.AccessDeniedReason},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, web())
			note := Note{Condition: "Drifted", Status: metav1.ConditionTrue, Reason: "DriftDetected", Message: "hunter22", Event: "Warning"}
			f := &discreetFacts{noted{facts{app: b.app}, note, "said hunter22"}}
			_, err := b.Run(t.Context(), b.app, f, Of("First", f, func(context.Context, *discreetFacts) error { return tc.err }))
			b.read(t, b.app)
			encoded, marshalErr := json.Marshal(b.app)
			if marshalErr != nil {
				t.Fatal(marshalErr)
			}
			text := string(encoded)
			if err != nil {
				text += err.Error()
			}
			for len(b.events.Events) > 0 {
				text += <-b.events.Events
			}
			if strings.Contains(text, "hunter22") || !strings.Contains(text, "***") || !strings.Contains(text, `"reason":"`+tc.reason+`"`) {
				t.Errorf("encoded: %s", text)
			}
		})
	}
}
