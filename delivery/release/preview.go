package release

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// Preview is what the next install or upgrade of a release would deliver.
type Preview struct {
	// Before are the objects of the deployed revision; none before an install. After are those of the next revision, and Hooks its hooks.
	Before, After, Hooks []*unstructured.Unstructured
}

// Preview renders and checks a release as an install or upgrade would, with a dry run of Helm's action. It writes nothing, so kinds that the
// chart brings itself are not known yet.
func (e *Engine) Preview(ctx context.Context, req Request) (*Preview, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	var s *session
	p, release, err := e.enterSlot(req)
	if err == nil {
		defer release()
		p.dryRun = "server"
		s, err = p.open(ctx, func(work func() error) error { return work() }, decide.Decision{Act: decide.Upgrade})
	}
	if err != nil {
		return nil, fault.Brief(fault.Plain(err, mask.Of(req.Sensitive)))
	}
	if s.state.Deployed() == nil {
		s.plan.Act = decide.Install
		s.setTerms()
	}
	preview, err := s.preview(ctx)
	return preview, fault.Brief(s.end(err).err)
}

func (s *session) preview(ctx context.Context) (*Preview, error) {
	if err := s.records.Load(s.needed()...); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	next, err := s.apply()
	if err != nil {
		return nil, err
	}
	if err := s.gate.PassHooks(next.Hooks); err != nil {
		return nil, err
	}
	out := &Preview{}
	if out.Hooks, err = manifest.HookObjects(next.Hooks); err != nil {
		return nil, err
	}
	e, req := s.pass.engine, &s.pass.request
	if out.After, err = e.objects(req, next); err != nil {
		return nil, err
	}
	if deployed := s.state.Deployed(); deployed != nil {
		out.Before, err = e.objects(req, s.records.Revision(deployed.Number))
	}
	return out, err
}
