package release

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubeop/kubeop/delivery/mask"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/fence"
	"github.com/kubeop/kubeop/delivery/release/manifest"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// session is one action on one release.
type session struct {
	// ctx carries the values of the call that began the action, and ends with nothing.
	ctx   context.Context
	pass  *pass
	plan  decide.Decision
	state decide.State
	// gate is where what was rendered passes.
	gate *manifest.Gate
	// chart is the one to be released, and values are those with which it is.
	chart  *chart.Chart
	values map[string]any
	// plain is what the chart renders to, as a chart that Helm's action installs.
	plain *chart.Chart
	// unanswered are the errors of templates' lookups.
	unanswered []error
	// idle runs what needs no worker without one.
	idle    func(func() error) error
	conn    *cluster.Connection
	config  *action.Configuration
	records *records.Driver
	fence   *fence.Fence
	log     fault.Log
}

// how the action is to be done.
func (s *session) how() v1alpha1.HelmAction {
	if s.plan.Act == decide.Install {
		return s.pass.request.Actions.Install.HelmAction
	}
	return s.pass.request.Actions.Upgrade.HelmAction
}

// look returns the version of a record, nothing when it is gone.
func (s *session) look(ctx context.Context, record string) (string, error) {
	secret, err := s.conn.Secrets.Get(ctx, record, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return secret.ResourceVersion, nil
}

// later says which records Helm is not to write. What an action failed with is known, with its class, only when it has
// ended; and of an uninstallation or a test only the end is worth a write.
func (s *session) later(rel *helm.Release) bool {
	switch s.plan.Act {
	case decide.Uninstall, decide.Probe:
		return rel.Version == s.state.Last().Number
	}
	return rel == s.records.Made && rel.Info.Status == helm.StatusFailed
}

// objects of the release in the cluster.
func (s *session) objects() cluster.Objects {
	return cluster.Objects{Client: s.conn.Client, Release: s.pass.request.key(), App: s.pass.want.App}
}

// guardData fails if what goes with this action owns claims that hold data.
func (s *session) guardData(text string) error {
	var revisions []*helm.Release
	for _, v := range []*decide.Revision{s.state.Deployed(), s.state.Last()} {
		if v != nil && s.records.IsLoaded(v.Number) {
			revisions = append(revisions, s.revision(v.Number))
		}
	}
	return s.objects().GuardData(revisions, text, func() (map[types.UID][]string, error) { return s.pass.request.Policy.Owned(s.ctx) })
}

// revision returns a loaded revision.
func (s *session) revision(number int) *helm.Release { return s.records.Revision(number) }

// end turns the error of an action into its result. Helm's own error is mostly text; those of the client and of storage
// have their types.
func (s *session) end(err error) result {
	switch {
	case s.fence.IsShut():
		return result{err: fence.ErrFenced, world: true}
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
	return result{err: failure, world: s.worlds(err, failure), log: s.log.Last(mask.Of(s.pass.request.Sensitive))}
}

// worlds is whether the failure says nothing about the input.
func (s *session) worlds(err, failure error) bool {
	if s.gate.Unjudged != nil {
		return true
	}
	if errors.Is(failure, fault.ErrRender) || errors.As(failure, new(*fault.NotAllowed)) {
		return false
	}
	if s.gate.Storage != nil || fault.Worldly(err) {
		return true
	}
	return fault.Worldly(s.conn.Client.Faults.All())
}

// explained adds to Helm's summary the errors it swallowed.
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

// needed are the revisions whose payloads an install or upgrade works on: what is deployed, and what the last attempt may
// have left.
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
