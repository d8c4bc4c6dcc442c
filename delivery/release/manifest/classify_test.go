package manifest

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/delivery/mask"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubeop/kubeop/delivery/release/cause"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

func TestErrorsOfTheInputNameThePlaceAndTheRemedy(t *testing.T) {
	tests := map[string]struct{ err, want string }{
		"a template": {
			`template: web/templates/a.yaml:3:7: executing "web/templates/a.yaml" at <.Values.a.b>: nil pointer evaluating interface {}.b`,
			"rendering the chart: web/templates/a.yaml:3:7: at <.Values.a.b>: nil pointer evaluating interface {}.b; set the value above it in spec.helm.values of app.yaml, or in a file of spec.helm.valuesFiles, or have the template test it with \"if\"",
		},
		"a template in another": {
			`template: web/templates/a.yaml:1:3: executing "web/templates/a.yaml" at <include "x" .>: error calling include: template: web/templates/_h.tpl:2:4: executing "x" at <fail "no">: error calling fail: no`,
			`rendering the chart: web/templates/a.yaml:1:3: at <include "x" .>: error calling include: web/templates/_h.tpl:2:4: at <fail "no">: error calling fail: no`,
		},
		"a schema": {
			"values don't meet the specifications of the schema(s) in the following chart(s):\nweb:\n- at '/replicas': got string, want integer\n- at '/color': 'x1' does not match pattern\n",
			"rendering the chart: values don't meet the specifications of the schema(s) in the following chart(s): web: at '/replicas': got string, want integer; at '/color': 'x1' does not match pattern; values.schema.json of the chart says so: correct these values in spec.helm.values of app.yaml, or in a file of spec.helm.valuesFiles",
		},
		"a list": {"2 errors occurred:\n\t* one\n\t* two\n\n", "rendering the chart: 2 errors occurred: one; two"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := (&Gate{}).Classify(errors.New(test.err), mask.Of(nil))
			if !errors.Is(got, fault.ErrRender) || got.Error() != test.want {
				t.Errorf("got  %v\nwant %s", got, test.want)
			}
		})
	}
}

func TestAnErrorOfRenderingSaysOnceThatItIs(t *testing.T) {
	const secret = "hunter22"
	for name, err := range map[string]error{
		"with a secret":    fault.Render(errors.New("template: no " + secret)),
		"without a secret": fault.Render(errors.New("no ***")),
	} {
		got := (&Gate{}).Classify(err, func(text string) string { return strings.ReplaceAll(text, secret, "***") })
		if !errors.Is(got, fault.ErrRender) || got.Error() != "rendering the chart: no ***" {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestARecordThatIsTooLargeForASecretIsTooLarge(t *testing.T) {
	for _, storage := range []error{tooLargeForASecret(), apierrors.NewRequestEntityTooLargeError("limit is 3145728")} {
		got := (&Gate{Rendered: true, Storage: storage}).Classify(errors.New("no"), mask.Of(nil))
		if !errors.Is(got, fault.ErrTooLarge) || !errors.Is(got, fault.ErrRender) {
			t.Errorf("the record: %v", got)
		}
	}
	if err := (&Gate{}).Classify(nil, mask.Of(nil)); err != nil {
		t.Errorf("a success is %v", err)
	}
}

// TestARecordThatNoPolicyCouldJudgeIsNotTooLarge: the API server refuses it as invalid, too, and may accept it a moment later.
func TestARecordThatNoPolicyCouldJudgeIsNotTooLarge(t *testing.T) {
	refusal := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422,
		Message: "secrets \"a\" is forbidden: ValidatingAdmissionPolicy 'b' denied request: failed to configure policy: failed to find resource referenced by paramKind"}}
	if got := (&Gate{Rendered: true, Storage: refusal}).Classify(refusal, mask.Of(nil)); errors.Is(got, fault.ErrTooLarge) || errors.Is(got, fault.ErrRender) || !cause.IsEnvironment(got) {
		t.Errorf("got %v", got)
	}
}

func tooLargeForASecret() error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "sh.helm.release.v1.web.v1", field.ErrorList{field.TooLong(field.NewPath("data"), "", 1<<20)})
}
