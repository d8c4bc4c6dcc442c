package release

import (
	"helm.sh/helm/v3/pkg/action"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// rollback returns to an earlier revision. It first checks that the record still has the content that kubeop recorded, because people and
// programs of the namespace can write the records. The objects are then checked like those of a new chart.
func (s *session) rollback() error {
	needed := append(s.needed(), s.state.Last().Number, s.plan.To)
	if err := s.records.Load(needed...); err != nil {
		return err
	}
	target := s.records.Revision(s.plan.To)
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
	r.Timeout = s.limit("upgrade", how.Timeout)
	r.DisableHooks = how.DisableHooks
	r.Wait = s.pass.request.Actions.Wait && !how.DisableWait
	r.WaitForJobs = !how.DisableWaitForJobs
	r.Force = how.Force
	r.CleanupOnFail = how.CleanupOnFail
	return r.Run(s.pass.request.Name)
}
