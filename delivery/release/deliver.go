package release

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// deliver installs, upgrades or rolls back as decided.
func (p *pass) deliver(d decide.Decision) func(context.Context, *place) result {
	return func(ctx context.Context, at *place) (r result) {
		if p.slot.isSuperseded() {
			return result{} // while it was queued
		}
		s, err := p.open(ctx, at, d)
		if err != nil {
			return result{err: err, world: true}
		}
		if now := decide.Next(s.state, p.want); now.Act != d.Act && (now.Act != decide.Vacate || d.Act != decide.Install) || now.To != d.To {
			return result{} // the next pass decides anew
		}
		return s.concluded(s.deliver(ctx))
	}
}

func (s *session) deliver(ctx context.Context) (err error) {
	defer fault.Recovered(string(s.plan.Act), &err)
	if s.plan.Act == decide.Rollback {
		return s.rollback()
	}
	if err := s.records.Load(s.needed()...); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if s.plan.Act == decide.Upgrade {
		return s.upgrade(s.plain)
	}
	return s.install(s.plain)
}

// needed are the revisions whose payloads an install or upgrade works on: what is deployed, and what the last attempt may
// have left.
func (s *session) needed() []int {
	var out []int
	if deployed := s.state.Deployed(); deployed != nil {
		out = append(out, deployed.Number)
	}
	if last := s.state.Last(); last != nil && (last.Status == helm.StatusFailed || s.plan.Act == decide.Upgrade) {
		out = append(out, last.Number)
	}
	return out
}

// beforeCreate stands between rendering and the first write. Once it has passed, the revision is recorded as ours.
func (s *session) beforeCreate(rel *helm.Release) error {
	if s.plan.Act == decide.Rollback {
		if err := s.readmit(rel); err != nil {
			return err
		}
	}
	if s.plain != nil {
		rel.Chart = s.chart // What helm shows of the release is what was released.
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

// weigh asks whether the manifests of a new revision, and as many records of its size as are kept, are too much.
func (s *session) weigh(rel *helm.Release, record int) error {
	if s.plan.Act == decide.Rollback || s.pass.request.Weigh == nil {
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
	s.gate.Refused = s.pass.request.Weigh(bytes)
	return s.gate.Refused
}

// sizeOf is budget.Size of the objects of a manifest, without reading those of which none can be large.
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
		return err
	}
	labels := notOurs(rel.Labels)
	labels[decide.AppLabel] = s.pass.want.App
	labels[decide.HolderLabel] = s.pass.want.Holder
	labels[decide.RevisionLabel] = strconv.Itoa(rel.Version)
	labels[decide.ContentLabel] = text
	labels[decide.AttemptLabel] = strconv.Itoa(s.plan.Attempts + 1)
	labels[decide.DigestLabel], labels[decide.TrialLabel] = s.pass.want.Digest, s.pass.want.Trial
	if s.pass.request.Asked != "" {
		labels[decide.AskedLabel] = decide.LabelValue(s.pass.request.Asked)
	}
	if s.plan.Blame > 0 {
		labels[decide.BlameLabel] = strconv.Itoa(s.plan.Blame)
	}
	switch s.plan.Act {
	case decide.Install:
		labels[decide.ActionLabel] = decide.ActionInstall
	case decide.Rollback:
		target := rel.Labels
		labels[decide.DigestLabel], labels[decide.TrialLabel] = target[decide.DigestLabel], target[decide.TrialLabel]
		labels[decide.ActionLabel], labels[decide.ToLabel], labels[decide.HeldLabel] = decide.ActionRollback, strconv.Itoa(s.plan.To), s.pass.want.Trial
	}
	rel.Labels = labels
	return nil
}

// notOurs returns the labels that are not kubeop's.
func notOurs(labels map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		if !strings.HasPrefix(k, v1alpha1.Group+"/") {
			out[k] = v
		}
	}
	return out
}

// removeLeftovers deletes what the last attempt made, if it failed, and neither the deployed revision nor the new manifest
// has: Helm compares only with the deployed revision and would leave it behind. Earlier attempts' leftovers went when the
// last one began.
func (s *session) removeLeftovers(manifest string) error {
	last := s.state.Last()
	if last == nil || last.Status != helm.StatusFailed {
		return nil
	}
	keep := []string{manifest}
	if deployed := s.state.Deployed(); deployed != nil {
		keep = append(keep, s.revision(deployed.Number).Manifest)
	}
	return s.objects().RemoveLeftovers([]*helm.Release{s.revision(last.Number)}, keep)
}

// concluded records how an install, upgrade or rollback ended, where Helm did not.
func (s *session) concluded(err error) result {
	r := s.end(err)
	made := s.records.Made
	if r.err == nil && made != nil {
		r.applied = s.deployedObjects(made)
		r.applied.log = s.log.of(false, s.pass.request.Sensitive)
	}
	if r.err == nil || made == nil || errors.Is(r.err, fault.ErrFenced) {
		return r
	}
	if made.Info.Status != helm.StatusFailed {
		made.SetStatus(helm.StatusFailed, fmt.Sprintf("Failed %s: %v", s.plan.Act, fault.Brief(err)))
	}
	faulted(made, r.world, s.plan.Blame)
	if err := s.records.Put(made); err != nil {
		// It stays pending, and this process will find that it was its own.
		return result{err: fault.Plain(err, s.pass.request.Sensitive), world: true, log: r.log}
	}
	r.stored = true
	return r
}

// faulted notes whose fault a failure was.
func faulted(rel *helm.Release, world bool, blame int) {
	rel.Labels[decide.FaultLabel] = decide.FaultWorld
	if !world {
		blame++
		rel.Labels[decide.FaultLabel] = decide.FaultInput
	}
	rel.Labels[decide.BlameLabel] = strconv.Itoa(blame)
}
