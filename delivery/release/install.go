package release

import (
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// install makes the first revision, or the next one of a release that was never deployed. The latter needs Replace: the new revision adopts
// what the failed ones made and, unlike an upgrade, runs the install hooks, which may be what failed. Nothing is uninstalled first, so a
// volume that a partly successful attempt filled is kept.
func (s *session) install(c *chart.Chart) (*helm.Release, error) {
	how := s.pass.request.Actions.Install
	i := action.NewInstall(s.config)
	i.ReleaseName = s.pass.request.Name
	i.Namespace = s.pass.request.Namespace
	i.Timeout = s.limit("install", how.Timeout)
	i.Replace = true
	i.SkipCRDs = true
	i.DisableHooks = how.DisableHooks
	i.Wait = s.pass.request.Actions.Wait && !how.DisableWait
	i.WaitForJobs = !how.DisableWaitForJobs
	i.SkipSchemaValidation = how.DisableSchemaValidation
	i.PostRenderer = s.gate
	i.DryRunOption = s.pass.dryRun
	return i.Run(c, s.values)
}

// within returns the timeout of an action: its own, or the request's.
func (s *session) within(own *metav1.Duration) time.Duration {
	return ptr.Deref(own, metav1.Duration{Duration: s.pass.request.timeout()}).Duration
}

// limit is within for messages, too: they name the field of the App that sets the timeout.
func (s *session) limit(action string, own *metav1.Duration) time.Duration {
	s.conn.Client.Terms.TimeoutField = "spec.timeout"
	if own != nil {
		s.conn.Client.Terms.TimeoutField = "spec.helm." + action + ".timeout"
	}
	return s.within(own)
}

// upgrade makes the next revision of a deployed release. Its context is never cancelled: Helm's upgrade would report a failure and go on
// applying in the background.
func (s *session) upgrade(c *chart.Chart) (*helm.Release, error) {
	how := s.pass.request.Actions.Upgrade
	u := action.NewUpgrade(s.config)
	u.Namespace = s.pass.request.Namespace
	u.Timeout = s.limit("upgrade", how.Timeout)
	u.SkipCRDs = true
	u.DisableHooks = how.DisableHooks
	u.Wait = s.pass.request.Actions.Wait && !how.DisableWait
	u.WaitForJobs = !how.DisableWaitForJobs
	u.SkipSchemaValidation = how.DisableSchemaValidation
	u.Force = how.Force
	u.CleanupOnFail = how.CleanupOnFail
	u.PostRenderer = s.gate
	// If neither is set, Helm takes the last revision's values when the new ones are empty.
	u.ResetThenReuseValues = how.PreserveValues
	u.ResetValues = !how.PreserveValues
	u.DryRunOption = s.pass.dryRun
	return u.Run(s.pass.request.Name, c, s.values)
}
