package evaluate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kubeop/kubeop/delivery/release/fault"
)

func TestAnErrorOfRenderingKeepsItsCauseBetweenProcesses(t *testing.T) {
	rendering := fault.Render(errors.New("no"))
	for name, c := range map[string]struct {
		err    error
		cause  string
		is     bool
		render bool
	}{
		"an error of rendering": {rendering, "no", true, true},
		"within another":        {fmt.Errorf("hook a: %w", rendering), "hook a: rendering the chart: no", false, true},
		"another":               {errors.New("no"), "no", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := failedWith(c.err).Failure()
			if got.Error() != c.err.Error() || errors.Is(got, fault.ErrRender) != c.render {
				t.Errorf("got %v", got)
			}
			if is, cause := fault.RenderCause(got); cause.Error() != c.cause || is != c.is {
				t.Errorf("the cause is %v, %t", cause, is)
			}
		})
	}
}
