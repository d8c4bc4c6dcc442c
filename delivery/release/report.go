package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/kube"
	helm "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// report tells how the release is.
func (p *pass) report(ctx context.Context, s state, d decision) (Outcome, error) {
	out := Outcome{
		Attempts:  d.attempts,
		RetryAt:   d.until,
		Held:      d.act == withheld,
		Why:       cmp.Or(d.why, p.slot.ended.why),
		Ended:     p.slot.ended.at,
		Stuck:     d.stuck,
		Revisions: s.statuses(),
	}
	if err := p.reportObjects(ctx, s, &out); err != nil {
		return Outcome{}, err
	}
	if d.act == settled {
		p.slot.settle(p.want.trial)
	} else if err := p.reportFailure(ctx, s, d, &out); err != nil {
		return Outcome{}, err
	}
	out.Test, out.TestWhy = p.testResult(s)
	out.History = p.slot.memory.history(s)
	for i := range out.History {
		told := &out.History[i]
		told.Digest, told.ValuesDigest = p.request.seal.Of(told.Digest), p.request.seal.Of(told.ValuesDigest)
	}
	out.Release = p.info(s, out.History)
	return out, nil
}

func (p *pass) info(s state, history []v1alpha1.ReleaseSnapshot) Info {
	last := s.last()
	if last == nil {
		return Info{}
	}
	i := Info{Name: p.request.Name, Revision: last.number, Status: last.status.String(), Digest: last.digest}
	if len(history) > 0 && history[0].Revision == last.number {
		i.Chart, i.AppVersion = history[0].Chart+"-"+history[0].ChartVersion, history[0].AppVersion
	}
	return i
}

func (p *pass) testResult(s state) (test, why string) {
	last := s.last()
	if last == nil || last.test != testFailed {
		if last != nil {
			test = last.test
		}
		return test, ""
	}
	if c := p.slot.cause; c.act == probe && c.trial == p.want.trial && c.err != nil {
		why = c.err.Error()
	}
	return last.test, why
}

// reportObjects tells the objects of the deployed revision, unless the caller knows them.
func (p *pass) reportObjects(ctx context.Context, s state, out *Outcome) error {
	deployed := s.deployed()
	if deployed == nil {
		return nil
	}
	out.Deployed, out.Content, out.Installed = deployed.number, p.request.seal.Of(deployed.content), deployed.action == actionInstall
	switch {
	case p.request.knows(deployed):
		p.slot.applied = applied{}
	case p.slot.applied.revision == deployed.number:
		out.Objects, out.Shared, out.Log = p.slot.applied.objects, p.slot.applied.shared, p.slot.applied.log
	default:
		rel, err := p.read(ctx, deployed.number)
		if err != nil {
			return err
		}
		if !deployed.ours {
			return nil // what a person released passed no gate; it gives way to this input as soon as that succeeds
		}
		if err := mustBeGenuine(rel); err != nil {
			return err
		}
		objects, shared, err := p.engine.manifestObjects(rel)
		if err != nil {
			return err
		}
		out.Shared = shared
		for _, u := range objects {
			out.Objects = append(out.Objects, appliedAs(u, nil))
		}
	}
	return nil
}

func (p *pass) read(ctx context.Context, number int) (*helm.Release, error) {
	conn, err := p.engine.dial(p.request)
	if err != nil {
		return nil, err
	}
	rel, _, err := conn.store(p.request.Name, &p.slot.memory, p.engine.opts.Now).read(ctx, number)
	return rel, err
}

// manifestObjects are the objects of a revision that are no hooks, those of its namespace, with it, and those that are
// cluster-scoped. What has another namespace is no app's, whatever a record says.
func (e *Engine) manifestObjects(rel *helm.Release) (own []*unstructured.Unstructured, shared []Shared, err error) {
	docs, err := parse(rel.Manifest)
	if err != nil {
		return nil, nil, fmt.Errorf("reading revision %d: %w", rel.Version, err)
	}
	for _, u := range objectsOf(docs) {
		kind := u.GroupVersionKind()
		mapping, err := e.opts.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil && !meta.IsNoMatchError(err) {
			return nil, nil, fmt.Errorf("finding the scope of %s/%s: %w", u.GetKind(), u.GetName(), err)
		}
		if err == nil && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			_, policy := u.GetAnnotations()[kube.ResourcePolicyAnno]
			shared = append(shared, Shared{Ref: Ref{kind, "", u.GetName()}, Kept: policy})
			continue
		}
		if u.GetNamespace() == "" {
			u.SetNamespace(rel.Namespace)
		}
		if u.GetNamespace() == rel.Namespace {
			own = append(own, u)
		}
	}
	return own, shared, nil
}

// deployedObjects are those of a revision that this action deployed, as the API server answered.
func (s *session) deployedObjects(rel *helm.Release) applied {
	wanted, shared, err := s.engine.manifestObjects(rel)
	if err != nil {
		return applied{} // it is read again, and the error told, by who wants to know
	}
	own := s.objects()
	sent := map[identity]Applied{}
	if c, ok := s.config.KubeClient.(*helmClient); ok {
		sent = c.sent
	}
	out := applied{revision: rel.Version, shared: shared}
	for _, u := range wanted {
		a := appliedAs(u, nil)
		a.Live = sent[own.identify(u)].Live
		out.objects = append(out.objects, a)
	}
	return out
}

// reportFailure tells why this input failed, and what became of it.
func (p *pass) reportFailure(ctx context.Context, s state, d decision, out *Outcome) error {
	if c := p.slot.cause; c.err == nil || c.trial != p.want.trial {
		var err error
		if p.slot.cause, err = p.recall(ctx, s.failure(p.want.trial)); err != nil {
			return err
		}
	}
	out.Failed, out.World, out.Log = p.slot.cause.err, p.slot.cause.world, p.slot.cause.log
	var err error
	out.Remediation, err = p.remediation(ctx, s, d)
	return err
}

// recall reads why a revision failed that another process made. It has only the text.
func (p *pass) recall(ctx context.Context, r *revision) (attempt, error) {
	a := attempt{trial: p.want.trial, err: errors.New("it failed before; the record that tells why is gone")}
	if r == nil {
		return a, nil
	}
	rel, err := p.read(ctx, r.number)
	if err != nil {
		return a, err
	}
	a.err, a.world, a.at = brief(plain(errors.New(rel.Info.Description), p.request.Sensitive)), r.fault == faultWorld, r.since
	return a, nil
}

// remediation tells what was done, or is being tried in vain, about this input.
func (p *pass) remediation(ctx context.Context, s state, d decision) (*Remediation, error) {
	if d.act == withheld {
		for i := range slices.Backward(s) {
			switch r := &s[i]; {
			case r.held != p.want.trial:
			case r.action == actionUninstall:
				return &Remediation{Kind: v1alpha1.RemediationUninstall}, nil
			case r.action == actionRollback:
				return &Remediation{Kind: v1alpha1.RemediationRollback, To: r.to}, nil
			}
		}
		return nil, nil
	}
	if !d.mends {
		return nil, nil
	}
	r := &Remediation{Kind: v1alpha1.RemediationUninstall, To: d.to, Err: p.slot.last.err}
	if d.to > 0 {
		r.Kind = v1alpha1.RemediationRollback
	}
	if last := s.last(); r.Err == nil && last.status == helm.StatusFailed && last.action == actionRollback {
		a, err := p.recall(ctx, last)
		if err != nil {
			return nil, err
		}
		r.Err, p.slot.last = a.err, attempt{act: rollback, trial: p.want.trial, err: a.err, world: a.world, at: a.at}
	}
	return r, nil
}
