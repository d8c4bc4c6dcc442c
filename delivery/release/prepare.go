package release

import (
	"context"
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/chartutil"
	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/release/charts"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/evaluate"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/records"
	"github.com/kubeop/kubeop/delivery/trials"
)

// prepare evaluates the chart in a process of its own and makes a chart for Helm's action from the result. It first installs the
// CustomResourceDefinitions of the chart and of its enabled subcharts, so that templates can look up their kinds. This process reads of a
// chart only what the other process has read within its limits.
func (s *session) prepare(ctx context.Context) error {
	in := s.evaluation()
	in.Capabilities = s.config.Capabilities
	out, err := s.evaluate(ctx, in)
	if err == nil && out.Kinds {
		if err := s.bringKinds(ctx); err != nil {
			return err
		}
		in.KindsThere, in.Capabilities = true, s.config.Capabilities
		out, err = s.evaluate(ctx, in)
	}
	if err != nil {
		return err
	}
	if err := s.readChart(); err != nil {
		return err
	}
	if s.plain, err = evaluate.Plain(s.chart, out.Templates); err != nil {
		return err
	}
	return chartutil.ProcessDependenciesWithMerge(s.chart, s.kept(in.Previous))
}

// evaluation returns the input of the evaluation without the chart's files: the same values and the same revision as Helm would use.
func (s *session) evaluation() evaluate.Input {
	in := evaluate.Input{
		ValuesFiles: s.pass.request.Input.ValuesFiles, Values: s.pass.request.Input.Values, SkipSchema: s.pass.request.Actions.Install.DisableSchemaValidation,
		Release: chartutil.ReleaseOptions{Name: s.pass.request.Name, Namespace: s.pass.request.Namespace, Revision: 1, IsInstall: true},
	}
	if s.plan.Act != decide.Upgrade {
		return in
	}
	in.SkipSchema = s.pass.request.Actions.Upgrade.DisableSchemaValidation
	in.Release.IsInstall, in.Release.IsUpgrade = false, true
	last := s.state.Last()
	if last == nil {
		return in
	}
	in.Release.Revision = last.Number + 1
	if s.pass.request.Actions.Upgrade.PreserveValues {
		current := last
		if deployed := s.state.Deployed(); deployed != nil && last.Status != helm.StatusDeployed {
			current = deployed
		}
		in.Previous = s.records.Revision(current.Number).Config
	}
	return in
}

// kept returns the values together with those of the last release that are to be kept, merged as Helm does.
func (s *session) kept(previous map[string]any) map[string]any {
	values, _ := charts.DeepCopy(s.values).(map[string]any)
	if previous == nil {
		return values
	}
	return chartutil.CoalesceTables(values, previous)
}

// bringKinds installs the chart's CustomResourceDefinitions.
func (s *session) bringKinds(ctx context.Context) error {
	if s.pass.dryRun != "" {
		return nil
	}
	if err := s.readChart(); err != nil {
		return err
	}
	whole, err := charts.Resolve(s.chart, s.values)
	if err != nil {
		return err
	}
	if err := s.conn.Client.InstallCRDs(ctx, whole, s.how().CRDs); err != nil {
		return err
	}
	s.config.Capabilities, err = s.conn.Kinds.Capabilities()
	return err
}

// readChart reads the chart and its values in this process.
func (s *session) readChart() error {
	if s.chart != nil {
		return nil
	}
	in := s.pass.request.Input
	var err error
	s.chart, s.values, err = s.pass.engine.charts.Open(in.Chart, in.ValuesFiles, in.Values)
	return err
}

// evaluate evaluates the chart in a process of its own. An input that exceeded a limit is recorded and not evaluated again, unless a person
// requests it.
func (s *session) evaluate(ctx context.Context, in evaluate.Input) (*evaluate.Output, error) {
	key, input := s.pass.request.key(), s.pass.want.Trial
	if s.pass.want.Manual.Force || s.pass.want.Manual.Reset {
		if err := s.pass.engine.trials.End(key, input, ""); err != nil {
			return nil, s.notTheChart(err)
		}
	}
	if err := s.pass.engine.trials.Check(key, input); err != nil {
		return nil, s.notEvaluated(err)
	}
	begun := false
	out, err := s.apart(ctx, in, func() error {
		if begun {
			return nil // It was preempted and starts again.
		}
		err := s.pass.engine.trials.Begin(key, input)
		begun = err == nil
		return s.notEvaluated(err)
	})
	if !begun {
		return nil, err
	}
	why := ""
	if over := apart.OverLimit(nil); errors.As(err, &over) {
		why = fault.OneLine(notTriedAgain(over).Error())
	}
	if err := s.pass.engine.trials.End(key, input, why); err != nil {
		return nil, s.notTheChart(err)
	}
	if err != nil {
		return nil, err
	}
	return out, out.Failure(s.unanswered...)
}

// notEvaluated returns the error of an input that is not evaluated.
func (s *session) notEvaluated(err error) error {
	if err == nil {
		return nil
	}
	if errors.As(err, new(*trials.Refused)) {
		return fault.Render(err)
	}
	return s.notTheChart(err)
}

// apart waits for the tenant's turn and evaluates in another process; begin is called before each try. A newer input and the end of the
// operator cancel it. While it waits the action occupies no worker, and it reads the chart only when its turn has come, so many actions can
// wait.
func (s *session) apart(ctx context.Context, in evaluate.Input, begin func() error) (*evaluate.Output, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	superseded := s.pass.slot.Superseded() // Of this action: when the goroutine runs, the slot may have the next one.
	go func() {
		select {
		case <-superseded:
		case <-s.pass.engine.pool.Stopping():
		case <-ctx.Done():
		}
		cancel(records.ErrAgain)
	}()
	tenant := s.pass.request.tenant()
	var answer []byte
	err := s.idle(func() error {
		return s.pass.engine.opts.Apart.InTurn(ctx, tenant, func(ctx context.Context) (err error) {
			s.unanswered, s.gate.Unjudged = nil, nil
			if err := begin(); err != nil {
				return err
			}
			if in.Files, err = s.pass.engine.charts.Files(s.pass.request.Input.Chart); err != nil {
				return err
			}
			input, err := in.Message()
			in.Files = nil // An action that has to wait again does not keep the chart in memory.
			if err != nil {
				return fault.Render(err)
			}
			answer, err = s.pass.engine.opts.Apart.Do(ctx, apart.Call{Name: evaluate.Function, Function: evaluate.Chart, Tenant: tenant, Input: input, NewHandler: s.newLookup})
			return s.evaluationFailed(err)
		})
	})
	if err != nil {
		return nil, err
	}
	out := &evaluate.Output{}
	if err := evaluate.Unpack(answer, out); err != nil {
		return nil, s.notTheChart(err)
	}
	return out, nil
}

// evaluationFailed classifies an error of an evaluation: caused by the input or by the environment.
func (s *session) evaluationFailed(err error) error {
	var over apart.OverLimit
	switch {
	case err == nil, errors.Is(err, records.ErrAgain):
		return err
	case errors.As(err, &over):
		return fault.Render(notTriedAgain(over))
	}
	return s.notTheChart(err)
}

// notTriedAgain is the error of an input that exceeded a limit.
func notTriedAgain(over apart.OverLimit) error {
	return fmt.Errorf("%w; it is not tried again before the chart or its values change", over)
}

// notTheChart records an error that was not caused by the chart.
func (s *session) notTheChart(err error) error {
	s.gate.Unjudged = fmt.Errorf("evaluating the chart: %w", err)
	return s.gate.Unjudged
}

// newLookup returns the handler of one process's lookups. It forgets the errors of an earlier process, which was killed.
func (s *session) newLookup() apart.Handler {
	s.unanswered = nil
	return s.lookup
}

// lookup answers a template's lookup as the request's user.
func (s *session) lookup(_ context.Context, question []byte) ([]byte, error) {
	config, err := s.conn.Getter.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	found, err := evaluate.Answer(config, question)
	if err != nil {
		s.unanswered = append(s.unanswered, err)
	}
	return found, err
}
