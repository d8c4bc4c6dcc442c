package release

import (
	"maps"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/manifest"
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
		return err
	}
	if text != target.Labels[decide.ContentLabel] {
		s.pass.slot.memory.Distrust(s.plan.To, s.records.VersionOf(s.plan.To))
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

// readmit has the objects of an earlier revision pass the gate once more. What the app changes after rendering is in them
// already; what kubeop puts on them is taken off, as it would be refused.
func (s *session) readmit(rel *helm.Release) error {
	s.gate.AsChanged()
	bare, err := unstamped(rel.Manifest)
	if err != nil {
		return err
	}
	if rel.Manifest, err = s.gate.Pass(bare); err != nil {
		return err
	}
	hooks := make([]*helm.Hook, len(rel.Hooks))
	for i, h := range rel.Hooks {
		own := *h // the earlier revision keeps its own
		own.LastRun = helm.HookExecution{}
		if own.Manifest, err = unstamped(h.Manifest); err != nil {
			return err
		}
		hooks[i] = &own
	}
	rel.Hooks = hooks
	return nil
}

// unstamped is a manifest without the labels of kubeop, on objects and on the templates in them.
func unstamped(text string) (string, error) {
	docs, err := manifest.Parse(text)
	if err != nil {
		return "", err
	}
	for _, u := range manifest.Objects(docs) {
		unstamp(u.Object)
	}
	return manifest.Write(docs)
}

func unstamp(node map[string]any) {
	if metadata, ok := node["metadata"].(map[string]any); ok {
		if labels, ok := metadata["labels"].(map[string]any); ok {
			maps.DeleteFunc(labels, func(k string, _ any) bool { return strings.HasPrefix(k, v1alpha1.Group+"/") })
		}
	}
	for _, child := range node {
		if inner, ok := child.(map[string]any); ok {
			unstamp(inner)
		}
	}
}
