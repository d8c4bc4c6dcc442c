package release

import (
	"context"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/fence"
	"github.com/kubeop/kubeop/delivery/release/manifest"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// open prepares an action. The action may have waited for a worker, so check compares the release with the plan again.
func (p *pass) open(ctx context.Context, idle idler, plan decide.Decision) (*session, error) {
	s := &session{
		ctx: ctx, pass: p, plan: plan, idle: idle, log: fault.Log{WarningPrefix: cluster.WarningPrefix},
		gate: manifest.NewGate(p.request.Policy.Admit, p.request.Policy.Refused, p.request.Input.PostRenderers, p.request.Input.CommonMetadata),
	}
	s.fence = fence.New(p.engine.opts.Now, s.look)
	req := p.request
	req.fence = s.fence
	var err error
	if s.conn, err = p.engine.dial(req); err != nil {
		return nil, err
	}
	if s.state, err = p.engine.index(ctx, p.request); err != nil {
		return nil, err
	}
	s.records = records.NewDriver(ctx, p.engine.records(s.conn, p.request, &p.slot.Memory.records), s.fence, s.state)
	s.records.Callbacks = records.Callbacks{Create: s.beforeCreate, Weigh: s.weigh, Later: s.later, Proven: p.want.Proven}
	if s.config, err = s.conn.Configuration(s.records); err != nil {
		return nil, err
	}
	s.config.Log = s.logf
	s.setTerms()
	return s, nil
}

// setTerms passes the terms of this action to the client.
func (s *session) setTerms() {
	c := s.conn.Client
	how := s.how()
	c.Log = s.logf
	c.Terms = cluster.Terms{Idle: s.idle, Superseded: s.pass.slot.Superseded(), Force: how.Force, Timeout: s.within(how.Timeout), App: s.pass.want.App, Lenient: how.DisableOpenAPIValidation}
	c.Terms.TakeOwnership = how.TakeOwnership && (s.plan.Act == decide.Install || s.plan.Act == decide.Upgrade)
	last := s.state.Last()
	c.Terms.ReadFirst = c.Terms.TakeOwnership || last != nil && last.Status != helm.StatusDeployed
	if last == nil {
		return
	}
	c.Terms.Wary = last.Status == helm.StatusFailed && (s.plan.Act == decide.Rollback || s.state.Deployed() == nil)
	// Objects of a failed attempt differ from what the deployed revision declares.
	changes := s.plan.Act == decide.Upgrade || s.plan.Act == decide.Uninstall
	if changes && last.Status == helm.StatusDeployed && s.pass.request.knows(last) {
		c.Terms.Unmoved = s.pass.request.Recorded.Unmoved
	}
}

// beforeCreate runs after rendering and before the first write. If it returns nil, the revision is recorded as ours.
func (s *session) beforeCreate(rel *helm.Release) error {
	if s.plan.Act == decide.Rollback {
		if err := s.readmit(rel); err != nil {
			return err
		}
	}
	if s.plain != nil {
		rel.Chart = s.chart // So that the helm command shows the chart that was released.
	}
	if err := s.gate.PassHooks(rel.Hooks); err != nil {
		return err
	}
	if err := s.guardData(rel.Manifest); err != nil {
		return err
	}
	var err error
	s.conn.Client.Terms.Ran, err = manifest.Ran(s.records.Revisions(), s.conn.Client.Release.Identify)
	if err := fault.Join(err, s.removeLeftovers(rel.Manifest)); err != nil {
		return err
	}
	surplus := s.state.Surplus(maxHistory-1, s.pass.want.Proven, s.pass.want.Trusts)
	if err := s.records.Drop(s.ctx, surplus); err != nil {
		return err
	}
	return s.mark(rel)
}

// weigh refuses a new revision if its manifests, and as many records of its size as are kept, exceed a limit.
func (s *session) weigh(rel *helm.Release, record int) error {
	if s.plan.Act == decide.Rollback || s.pass.request.Policy.Weigh == nil {
		return nil
	}
	bytes := int64(maxHistory) * int64(record)
	for _, hook := range rel.Hooks {
		bytes += int64(len(hook.Manifest))
	}
	size, err := manifest.Size(rel.Manifest)
	if err != nil {
		return err
	}
	bytes += size
	s.gate.Refused = s.pass.request.Policy.Weigh(bytes)
	return s.gate.Refused
}

// mark labels a new revision as ours.
func (s *session) mark(rel *helm.Release) error {
	text, err := decide.Content(rel)
	if err != nil {
		return fault.Render(err)
	}
	rel.Labels = decide.NewLabels(rel, text, &s.pass.want, &s.plan)
	if id := s.pass.request.Manual.ID; id != "" {
		rel.Labels[decide.RequestLabel] = decide.LabelValue(id)
	}
	return nil
}

// removeLeftovers deletes objects that the last failed attempt made and that neither the deployed revision nor the new manifest has. Helm
// compares only with the deployed revision and would keep them. Leftovers of earlier attempts were deleted when the last attempt began.
func (s *session) removeLeftovers(manifest string) error {
	last := s.state.Last()
	if last == nil || last.Status != helm.StatusFailed {
		return nil
	}
	keep := []string{manifest}
	if deployed := s.state.Deployed(); deployed != nil {
		keep = append(keep, s.records.Revision(deployed.Number).Manifest)
	}
	return s.conn.Client.Release.RemoveLeftovers([]*helm.Release{s.records.Revision(last.Number)}, keep)
}

// readmit passes the objects of an earlier revision through the gate again. They already contain the app's changes; kubeop's own labels are
// removed first, because the gate refuses them.
func (s *session) readmit(rel *helm.Release) error {
	s.gate.AsChanged()
	bare, err := manifest.Unstamped(rel.Manifest)
	if err != nil {
		return err
	}
	if rel.Manifest, err = s.gate.Pass(bare); err != nil {
		return err
	}
	rel.Hooks, err = manifest.UnstampedHooks(rel.Hooks)
	return err
}
