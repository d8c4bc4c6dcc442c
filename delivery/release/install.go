package release

import (
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
)

// install makes the first revision, or the next one of a release that never was deployed. Replace is what the latter
// needs: the new revision adopts what the failed ones made, and unlike an upgrade runs the install hooks, which may be
// what failed. Nothing is uninstalled before, so a volume that a half-working attempt filled stays.
func (s *session) install(c *chart.Chart) error {
	i := action.NewInstall(s.config)
	i.ReleaseName = s.request.Name
	i.Namespace = s.request.Namespace
	i.Timeout = s.request.timeout()
	i.Replace = true
	i.SkipCRDs = true
	i.DisableOpenAPIValidation = true
	i.PostRenderer = &s.gate
	_, err := i.Run(c, s.request.Values)
	return err
}
