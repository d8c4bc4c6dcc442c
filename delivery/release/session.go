package release

import (
	"context"
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/release/cause"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/fence"
	"github.com/kubeop/kubeop/delivery/release/manifest"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// idler runs a function without occupying a worker.
type idler = func(func() error) error

// session is one action on one release.
type session struct {
	// ctx has the values of the context that started the action, and is never cancelled.
	ctx   context.Context
	pass  *pass
	plan  decide.Decision
	state decide.State
	// gate checks what was rendered.
	gate *manifest.Gate
	// chart is the chart to release, and values are its values.
	chart  *chart.Chart
	values map[string]any
	// plain holds what the chart renders to, as a chart for Helm's action.
	plain *chart.Chart
	// unanswered are the errors of the templates' lookups.
	unanswered []error
	idle       idler
	conn       *cluster.Connection
	config     *action.Configuration
	records    *records.Driver
	fence      *fence.Fence
	log        fault.Log
}

// how returns how to carry out the action.
func (s *session) how() v1alpha1.HelmAction {
	if s.plan.Act == decide.Install {
		return s.pass.request.Actions.Install.HelmAction
	}
	return s.pass.request.Actions.Upgrade.HelmAction
}

// look returns the version of a record, "" when it is gone.
func (s *session) look(ctx context.Context, record string) (string, error) {
	secret, err := s.conn.Secrets.Get(ctx, record, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading Secret %s: %w", record, err)
	}
	return secret.ResourceVersion, nil
}

// later reports whether Helm must not write this record now. Why an action failed, and the class of that error, is known only at its end;
// and of an uninstall or a test only the end needs a write.
func (s *session) later(rel *helm.Release) bool {
	switch s.plan.Act {
	case decide.Uninstall, decide.Probe:
		return rel.Version == s.state.Last().Number
	}
	return rel == s.records.Made && rel.Info.Status == helm.StatusFailed
}

// guardData returns an error if an object that this action deletes owns claims with data.
func (s *session) guardData(text string) error {
	var revisions []*helm.Release
	for _, v := range []*decide.Revision{s.state.Deployed(), s.state.Last()} {
		if v != nil && s.records.IsLoaded(v.Number) {
			revisions = append(revisions, s.records.Revision(v.Number))
		}
	}
	return s.conn.Client.Release.GuardData(revisions, text, func() (map[types.UID][]string, error) { return s.pass.request.Policy.Owned(s.ctx) })
}

// end turns the error of an action into its result. Helm's own errors are mostly text; those of the client and of the storage have types.
func (s *session) end(err error) result {
	switch {
	case s.fence.IsShut():
		return result{err: fence.ErrFenced, environment: true}
	case errors.Is(err, records.ErrAgain):
		return result{}
	}
	s.gate.Storage = s.records.Broken
	if err == nil {
		err = s.gate.Storage
	}
	if err == nil {
		return result{stored: true}
	}
	failure := s.gate.Classify(s.explained(err), mask.Of(s.pass.request.Sensitive))
	return result{err: failure, environment: s.isEnvironment(err, failure), log: s.log.Last(mask.Of(s.pass.request.Sensitive))}
}

// isEnvironment reports whether the environment caused the failure, not the input.
func (s *session) isEnvironment(err, failure error) bool {
	if s.gate.Unjudged != nil {
		return true
	}
	if errors.Is(failure, fault.ErrRender) || errors.As(failure, new(*fault.NotAllowed)) {
		return false
	}
	return s.gate.Storage != nil || cause.IsEnvironment(err) || cause.IsEnvironment(s.conn.Client.Faults.All())
}

// explained adds the errors that Helm left out of its summary.
func (s *session) explained(err error) error {
	failed := s.conn.Client.DeletionFailed()
	if err == nil || failed == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, failed)
}

func (s *session) logf(format string, args ...any) {
	s.log.Add(fmt.Sprintf(format, args...))
	s.pass.engine.logf(format, args...)
}

// needed returns the revisions that an install or upgrade has to load: the deployed one, and the last attempt, which may have left objects.
func (s *session) needed() []int {
	var out []int
	if deployed := s.state.Deployed(); deployed != nil {
		out = append(out, deployed.Number)
	}
	if last := s.state.Last(); last != nil && (last.Status == helm.StatusFailed || s.plan.Act == decide.Upgrade) {
		out = append(out, last.Number)
	}
	return out
}
