package release

import (
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
)

// upgrade makes the next revision of a release that was deployed. It runs on no context that could end: Helm's upgrade
// would report failure and go on applying in the background.
func (s *session) upgrade(c *chart.Chart) error {
	u := action.NewUpgrade(s.config)
	u.Namespace = s.request.Namespace
	u.Timeout = s.request.timeout()
	u.SkipCRDs = true
	u.DisableOpenAPIValidation = true
	u.PostRenderer = &s.gate
	// Without it Helm takes the last revision's values when there are none now.
	u.ResetValues = true
	_, err := u.Run(s.request.Name, c, s.request.Values)
	return err
}
