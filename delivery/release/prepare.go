package release

import (
	"context"
	"errors"
	"fmt"
	"strings"

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

// prepare has the chart evaluated in a process of its own and makes a chart for Helm's action of what it rendered. The chart's
// CustomResourceDefinitions, those of enabled subcharts, are brought into the cluster before, so that templates can ask for their
// kinds. This process reads of a chart only what the other one has read within its limits.
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

// evaluation is what the action evaluates, the chart's files left out: with the values and for the revision for which Helm would.
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
		in.Previous = s.revision(current.Number).Config
	}
	return in
}

// kept are the values with those of the last release that are to be kept, as Helm adds them.
func (s *session) kept(previous map[string]any) map[string]any {
	values, _ := charts.DeepCopy(s.values).(map[string]any)
	if previous == nil {
		return values
	}
	return chartutil.CoalesceTables(values, previous)
}

// bringKinds brings the chart's CustomResourceDefinitions into the cluster.
func (s *session) bringKinds(ctx context.Context) error {
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
	c, files, err := s.pass.engine.charts.Open(s.pass.request.Input.Chart, s.pass.request.Input.ValuesFiles)
	if err != nil {
		return err
	}
	s.chart, s.values = c, charts.Merge(files, s.pass.request.Input.Values)
	return nil
}

// evaluate has the evaluation done in a process of its own. What was over a limit is remembered, and not evaluated again unless that is
// asked for.
func (s *session) evaluate(ctx context.Context, in evaluate.Input) (*evaluate.Output, error) {
	key, input := s.pass.request.key(), s.pass.want.Trial
	if s.pass.want.Manual.Force || s.pass.want.Manual.Reset {
		if err := s.pass.engine.trials.End(key, input, ""); err != nil {
			return nil, s.unjudge(err)
		}
	}
	if err := s.pass.engine.trials.Check(key, input); err != nil {
		return nil, s.untried(err)
	}
	begun := false
	out, err := s.apart(ctx, in, func() error {
		if begun {
			return nil // Others had a turn meanwhile.
		}
		err := s.pass.engine.trials.Begin(key, input)
		begun = err == nil
		return s.untried(err)
	})
	if !begun {
		return nil, err
	}
	why := ""
	if errors.As(err, new(apart.OverLimit)) {
		why = fault.OneLine(strings.TrimPrefix(err.Error(), fault.ErrRender.Error()+": "))
	}
	if err := s.pass.engine.trials.End(key, input, why); err != nil {
		return nil, s.unjudge(err)
	}
	if err != nil {
		return nil, err
	}
	return out, out.Failure(s.unanswered...)
}

// untried is the reason for which an input is not evaluated.
func (s *session) untried(err error) error {
	if err == nil {
		return nil
	}
	if errors.As(err, new(*trials.Refused)) {
		return fault.Render(err)
	}
	return s.unjudge(err)
}

// apart waits for the tenant's turn and has the evaluation done in another process; begin is called before, each time. A newer input and
// the operator's end stop it. Meanwhile the action has no worker, and the chart is read when its turn has come: so many may wait.
func (s *session) apart(ctx context.Context, in evaluate.Input, begin func() error) (*evaluate.Output, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.pass.slot.Superseded():
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
			in.Files = nil // A chart that has to wait again is not held meanwhile.
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
		return nil, s.unjudge(err)
	}
	return out, nil
}

// evaluationFailed says of an error of an evaluation whose fault it is.
func (s *session) evaluationFailed(err error) error {
	var over apart.OverLimit
	switch {
	case err == nil, errors.Is(err, records.ErrAgain):
		return err
	case errors.As(err, &over):
		return fault.Render(fmt.Errorf("%w; it is not tried again before the chart or its values change", over))
	}
	return s.unjudge(err)
}

// unjudge keeps an error that says nothing about the chart.
func (s *session) unjudge(err error) error {
	s.gate.Unjudged = fmt.Errorf("evaluating the chart: %w", err)
	return s.gate.Unjudged
}

// newLookup returns the handler of one process's lookups. It forgets the errors of an earlier process, which was killed.
func (s *session) newLookup() apart.Handler {
	s.unanswered = nil
	return s.lookup
}

// lookup answers a template's question as the request's user.
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
