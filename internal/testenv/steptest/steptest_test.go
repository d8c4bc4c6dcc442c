package steptest

import (
	"errors"
	"testing"
	"time"

	"github.com/kubeop/kubeop/controllers/step"
)

func TestOutcomeSaysHowEachKindOfStepEnds(t *testing.T) {
	no := errors.New("no")
	for want, err := range map[string]error{
		"done":                               nil,
		"skipped":                            step.Skip(),
		"soon, after 2s":                     step.Soon(2 * time.Second),
		"waits NotYet: rain, after 3s":       step.Wait("NotYet", 3*time.Second, "rain"),
		"stopped Wrong: no":                  step.Stop("Wrong", no),
		"failed Away: no":                    step.Fail("Away", no),
		"failed Failed: no":                  no,
		"failed Away: no, after 5s":          step.FailAfter("Away", 5*time.Second, no),
		"later steps run; failed Away: no":   step.GoOn(step.Fail("Away", no)),
		"later steps run; stopped Away: no":  step.GoOn(step.Stop("Away", no)),
		"later steps run; failed Failed: no": step.Degrade(no),
	} {
		if got := Outcome(t, err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
