package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	helm "helm.sh/helm/v3/pkg/release"
)

// prepare has the chart evaluated in a process of its own and makes a chart for Helm's action of what it rendered. The chart's
// CustomResourceDefinitions, those of enabled subcharts, are brought into the cluster before, so that templates can ask for their
// kinds. This process reads of a chart only what the other one has read within its limits.
func (s *session) prepare(ctx context.Context) error {
	files, err := s.engine.charts.files(s.request.Chart)
	if err != nil {
		return err
	}
	in := s.evaluation(files)
	if slices.ContainsFunc(files, func(f *loader.BufferedFile) bool { return strings.HasPrefix(inItsChart(f.Name), "crds/") }) {
		if err := s.bringKinds(ctx, in); err != nil {
			return err
		}
	}
	in.Capabilities = s.config.Capabilities
	templates, err := s.evaluate(ctx, in)
	if err != nil {
		return err
	}
	if err := s.readChart(); err != nil {
		return err
	}
	if s.plain, err = plainChart(s.chart, templates); err != nil {
		return err
	}
	return chartutil.ProcessDependenciesWithMerge(s.chart, s.kept(in.Previous))
}

// evaluation is what the action evaluates: with the values and for the revision for which Helm would.
func (s *session) evaluation(files []*loader.BufferedFile) evaluation {
	in := evaluation{
		Files: files, ValuesFiles: s.request.ChartValuesFiles, Values: s.request.Values, SkipSchema: s.request.Actions.Install.DisableSchemaValidation,
		Release: chartutil.ReleaseOptions{Name: s.request.Name, Namespace: s.request.Namespace, Revision: 1, IsInstall: true},
	}
	if s.plan.act != upgrade {
		return in
	}
	in.SkipSchema = s.request.Actions.Upgrade.DisableSchemaValidation
	in.Release.IsInstall, in.Release.IsUpgrade = false, true
	last := s.state.last()
	if last == nil {
		return in
	}
	in.Release.Revision = last.number + 1
	if s.request.Actions.Upgrade.PreserveValues {
		current := last
		if deployed := s.state.deployed(); deployed != nil && last.status != helm.StatusDeployed {
			current = deployed
		}
		in.Previous = s.revision(current.number).Config
	}
	return in
}

// kept are the values with those of the last release that are to be kept, as Helm adds them.
func (s *session) kept(previous map[string]any) map[string]any {
	values, _ := deepCopy(s.values).(map[string]any)
	if previous == nil {
		return values
	}
	return chartutil.CoalesceTables(values, previous)
}

// bringKinds brings the chart's CustomResourceDefinitions into the cluster.
func (s *session) bringKinds(ctx context.Context, in evaluation) error {
	in.NoTemplates = true
	if _, err := s.evaluate(ctx, in); err != nil {
		return err
	}
	if err := s.readChart(); err != nil {
		return err
	}
	whole, err := resolved(s.chart, s.values)
	if err != nil {
		return err
	}
	if err := s.engine.installCRDs(ctx, s.conn, whole, s.how().CRDs); err != nil {
		return err
	}
	s.config.Capabilities, err = s.engine.capabilities()
	return err
}

// readChart reads the chart and its values in this process.
func (s *session) readChart() error {
	if s.chart != nil {
		return nil
	}
	c, files, err := s.engine.chart(s.request.Chart, s.request.ChartValuesFiles)
	if err != nil {
		return err
	}
	s.chart, s.values = c, layered(files, s.request.Values)
	return nil
}

// evaluate returns the rendered templates. What was over a limit is remembered, and not evaluated again unless that is asked for.
func (s *session) evaluate(ctx context.Context, in evaluation) (map[string]string, error) {
	key, input := s.request.key(), s.want.trial
	if s.want.force || s.want.reset {
		if err := s.engine.trials.end(key, input, ""); err != nil {
			return nil, s.unjudge(err)
		}
	}
	if err := s.engine.trials.begin(key, input); err != nil {
		if errors.Is(err, ErrRender) {
			return nil, err
		}
		return nil, s.unjudge(err)
	}
	out, err := s.apart(ctx, in)
	why := ""
	if errors.As(err, new(overLimit)) {
		why = strings.TrimPrefix(err.Error(), ErrRender.Error()+": ")
	}
	if err := s.engine.trials.end(key, input, why); err != nil {
		return nil, s.unjudge(err)
	}
	if err != nil {
		return nil, err
	}
	return out.Templates, out.failure(s.unanswered...)
}

// overLimit is an error of Options.Evaluate that says that the input takes more than it may.
type overLimit interface {
	error
	OverLimit()
}

// apart has the evaluation done in another process. A newer input and the operator's end stop it.
func (s *session) apart(ctx context.Context, in evaluation) (*evaluated, error) {
	input, err := marshal(in)
	if err != nil {
		return nil, renderError(err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.slot.superseded:
		case <-s.engine.running.Done():
		case <-ctx.Done():
		}
		cancel(errAgain)
	}()
	answer, err := s.engine.evaluateIn(ctx, cmp.Or(s.request.Tenant, s.request.App.Namespace), input, s.lookup)
	var over overLimit
	switch {
	case errors.Is(err, errAgain):
		return nil, errAgain
	case errors.As(err, &over):
		return nil, renderError(fmt.Errorf("%w; it is not tried again before the chart or its values change", over))
	case err != nil:
		return nil, s.unjudge(err)
	}
	out := &evaluated{}
	if err := unmarshal(answer, out); err != nil {
		return nil, s.unjudge(err)
	}
	return out, nil
}

// evaluateIn is Options.Evaluate, or this process.
func (e *Engine) evaluateIn(ctx context.Context, tenant string, input []byte, ask func(context.Context, []byte) ([]byte, error)) ([]byte, error) {
	if e.opts.Evaluate != nil {
		return e.opts.Evaluate(ctx, tenant, input, ask)
	}
	return Evaluate(input, func(question []byte) ([]byte, error) { return ask(ctx, question) }, func(string) {})
}

// unjudge keeps an error that says nothing about the chart.
func (s *session) unjudge(err error) error {
	s.unjudged = fmt.Errorf("evaluating the chart: %w", err)
	return s.unjudged
}
