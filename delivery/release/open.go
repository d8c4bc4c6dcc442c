package release

import (
	"context"
	"fmt"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/fence"
	"github.com/kubeop/kubeop/delivery/release/manifest"
	"github.com/kubeop/kubeop/delivery/release/pool"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// open prepares an action. The action may have waited for a worker, so check compares the release with the plan again.
func (p *pass) open(ctx context.Context, at *pool.Worker, plan decide.Decision) (*session, error) {
	s := &session{
		ctx: ctx, pass: p, plan: plan, idle: at.Idle, log: fault.Log{WarningPrefix: cluster.WarningPrefix},
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
	s.setTerms(at)
	return s, nil
}

// setTerms passes the terms of this action to the client.
func (s *session) setTerms(at *pool.Worker) {
	c := s.conn.Client
	how := s.how()
	c.Log = s.logf
	c.Terms = cluster.Terms{Idle: at.Idle, Superseded: s.pass.slot.Superseded(), Force: how.Force, Timeout: s.within(how.Timeout), App: s.pass.want.App, Lenient: how.DisableOpenAPIValidation}
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

// setRan passes to the client which hooks the loaded revisions ran.
func (s *session) setRan() error {
	c := s.conn.Client
	c.Terms.Ran = map[manifest.Identity]bool{}
	for _, h := range s.records.Revisions() {
		for _, hook := range h.Hooks {
			if hook.LastRun.StartedAt.IsZero() {
				continue
			}
			docs, err := manifest.Parse(hook.Manifest)
			if err != nil {
				return fmt.Errorf("reading the hooks of revision %d: %w", h.Version, err)
			}
			for _, u := range manifest.Objects(docs) {
				c.Terms.Ran[c.Release.Identify(u)] = true
			}
		}
	}
	return nil
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
	if err := fault.Join(s.setRan(), s.removeLeftovers(rel.Manifest)); err != nil {
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
	size, err := sizeOf(rel.Manifest)
	if err != nil {
		return err
	}
	bytes += size
	s.gate.Refused = s.pass.request.Policy.Weigh(bytes)
	return s.gate.Refused
}

// sizeOf returns budget.Size of the objects of a manifest, without parsing those that cannot be large.
func sizeOf(text string) (int64, error) {
	if len(text) <= budget.PlainTemplate {
		return int64(len(text)), nil
	}
	docs, err := manifest.Parse(text)
	if err != nil {
		return 0, fmt.Errorf("reading what was rendered: %w", err)
	}
	return budget.Size(manifest.Objects(docs)), nil
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
		keep = append(keep, s.revision(deployed.Number).Manifest)
	}
	return s.conn.Client.Release.RemoveLeftovers([]*helm.Release{s.revision(last.Number)}, keep)
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
	hooks := make([]*helm.Hook, len(rel.Hooks))
	for i, h := range rel.Hooks {
		own := *h // a copy: the earlier revision stays unchanged
		own.LastRun = helm.HookExecution{}
		if own.Manifest, err = manifest.Unstamped(h.Manifest); err != nil {
			return err
		}
		hooks[i] = &own
	}
	rel.Hooks = hooks
	return nil
}
