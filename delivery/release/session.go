package release

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
)

// session is one action on one release.
type session struct {
	gate
	request Request
	digest  string
	holder  string
	attempt int
	config  *action.Configuration
	records *records
}

// open prepares an action. attempt is its number at this input, from 1.
func (e *Engine) open(ctx context.Context, req Request, digest string, attempt int) (*session, error) {
	conn, err := e.dial(req)
	if err != nil {
		return nil, err
	}
	s := &session{request: req, digest: digest, holder: e.opts.Holder, attempt: attempt}
	s.admit = req.Admit
	s.records = &records{
		Driver: conn.secrets(ctx),
		create: s.beforeCreate,
		failed: func(err error) { s.storage = err },
	}
	s.config, err = e.configuration(conn, s.records)
	return s, err
}

// history reads the release's records. Helm sees this same history in the rest of the session.
func (s *session) history() (state, error) { return read(s.config.Releases, s.request.Name) }

// deliver loads the chart, runs the action, and says whether a revision was recorded.
func (s *session) deliver(a act) (stored bool, err error) {
	defer recovered(string(a), &err)
	loaded, err := s.request.Chart.load()
	if err != nil {
		return false, err
	}
	s.chart = loaded
	err = s.run(a, loaded)
	return s.records.created, s.classify(err, s.request.Sensitive)
}

func (s *session) run(a act, c *chart.Chart) (err error) {
	defer recovered(string(a), &err)
	if a == upgrade {
		return s.upgrade(c)
	}
	return s.install(c)
}

// beforeCreate stands between rendering and the first write. Once it has passed, the revision is recorded as ours.
func (s *session) beforeCreate(history state, r *helm.Release) error {
	if err := s.passHooks(r.Hooks); err != nil {
		return err
	}
	if err := s.removeLeftovers(history, r.Manifest); err != nil {
		return err
	}
	for _, old := range history.surplus(maxHistory - 1) {
		if _, err := s.records.Delete(keyOf(old.record)); err != nil {
			return fmt.Errorf("removing revision %d from the history: %w", old.number, err)
		}
	}
	labels := map[string]string{}
	maps.Copy(labels, r.Labels)
	labels[appLabel] = labelValue(s.request.App.Name)
	labels[digestLabel] = s.digest
	labels[holderLabel] = s.holder
	labels[attemptLabel] = strconv.Itoa(s.attempt)
	labels[revisionLabel] = strconv.Itoa(r.Version)
	r.Labels = labels
	return nil
}

// removeLeftovers deletes what failed attempts made and neither the deployed revision nor the new manifest has. Helm
// compares only with the deployed revision and would leave it behind.
func (s *session) removeLeftovers(history state, manifest string) error {
	failures := history.failures()
	if len(failures) == 0 {
		return nil
	}
	keep := []string{manifest}
	if deployed := history.deployed(); deployed != nil {
		keep = append(keep, deployed.record.Manifest)
	}
	return s.objects().removeLeftovers(failures, keep)
}

func (s *session) objects() objects {
	return objects{client: s.config.KubeClient, release: s.request.key()}
}

// explained adds to Helm's summary the errors it swallowed.
func (s *session) explained(err error) error {
	if c, ok := s.config.KubeClient.(*helmClient); ok && err != nil && c.deletionFailed() != nil {
		return fmt.Errorf("%w: %w", err, c.deletionFailed())
	}
	return err
}
