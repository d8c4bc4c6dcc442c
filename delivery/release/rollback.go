package release

import (
	"github.com/kubeop/kubeop/delivery/release/fault"

	"helm.sh/helm/v3/pkg/action"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// rollback returns to an earlier revision, after it was seen to hold what it was recorded with: people and programs of the
// namespace can write the records. Its objects are checked again as those of a new chart are.
func (s *session) rollback() error {
	needed := append(s.needed(), s.state.Last().Number, s.plan.To)
	if err := s.records.Load(needed...); err != nil {
		return err
	}
	target := s.revision(s.plan.To)
	text, err := decide.Content(target)
	if err != nil {
		return fault.Render(err)
	}
	if text != target.Labels[decide.ContentLabel] {
		s.pass.slot.Memory.records.Distrust(s.plan.To, s.records.VersionOf(s.plan.To))
		return records.ErrAgain
	}
	s.chart = target.Chart
	how := s.pass.request.Actions.Upgrade
	r := action.NewRollback(s.config)
	r.Version = s.plan.To
	r.Timeout = s.within(how.Timeout)
	r.DisableHooks = how.DisableHooks
	r.Wait = s.pass.request.Actions.Wait && !how.DisableWait
	r.WaitForJobs = !how.DisableWaitForJobs
	r.Force = how.Force
	r.CleanupOnFail = how.CleanupOnFail
	return r.Run(s.pass.request.Name)
}
