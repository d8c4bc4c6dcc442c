package release

import (
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
)

// upgrade makes the next revision of a release that was deployed. It runs on no context that could end: Helm's upgrade
// would report failure and go on applying in the background.
func (s *session) upgrade(c *chart.Chart) error {
	how := s.pass.request.Actions.Upgrade
	u := action.NewUpgrade(s.config)
	u.Namespace = s.pass.request.Namespace
	u.Timeout = s.within(how.Timeout)
	u.SkipCRDs = true
	u.DisableHooks = how.DisableHooks
	u.Wait = s.pass.request.Actions.Wait && !how.DisableWait
	u.WaitForJobs = !how.DisableWaitForJobs
	u.SkipSchemaValidation = how.DisableSchemaValidation
	u.Force = how.Force
	u.CleanupOnFail = how.CleanupOnFail
	u.PostRenderer = s.gate
	// Without either Helm takes the last revision's values when there are none now.
	u.ResetThenReuseValues = how.PreserveValues
	u.ResetValues = !how.PreserveValues
	_, err := u.Run(s.pass.request.Name, c, s.values)
	return err
}
