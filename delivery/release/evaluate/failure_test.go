package evaluate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/internal/testenv/sources"
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

// TestAPanicOfHelmIsAnErrorOfTheChart: unusual charts make Helm panic, and the process has other charts to evaluate.
func TestAPanicOfHelmIsAnErrorOfTheChart(t *testing.T) {
	in := &Input{Files: []*loader.BufferedFile{{Name: "Chart.yaml", Data: []byte(sources.ChartYAML)}}}
	_, err := in.run(nobodyAsked, func(text string) {
		if strings.HasPrefix(text, "reading the values") {
			panic("a nil map")
		}
	})
	if err == nil || !strings.Contains(err.Error(), "evaluating the chart: Helm panicked: a nil map") {
		t.Errorf("got %v", err)
	}
}

func nobodyAsked([]byte) ([]byte, error) { return nil, errors.New("no lookup is expected") }
