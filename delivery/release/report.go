package release

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kubeop/kubeop/delivery/mask"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// Outcome is what Reconcile found.
type Outcome struct {
	// Running is true while an action is queued or under way, Action being what it does, such as "upgrading", and Why the reason,
	// where that is not plain: revisions made by hand, another name. Notify follows. Accepted is set beside it; nothing else is. Why is
	// also set beside Failed when a person has made a revision by hand since.
	Running bool
	// Queued: it still waits for a worker.
	Queued bool
	Action string
	Why    string
	// Ended is when this process last ended an action on the release, and Why then the reason for it, while none is under way.
	Ended time.Time
	// Accepted: what Request.Manual.ID stands for was done. A revision records it, or there was nothing to do, or it failed because
	// of the input before it came to a revision.
	Accepted bool
	// Release is the newest revision.
	Release Info
	// Deployed is the newest deployed revision.
	Deployed Deployed
	// Failed is why the last attempt at this input failed: ErrRender, *NotAllowed, or anything else. Nil: the release is
	// deployed with this input.
	Failed error
	// World: the failure says nothing about the input, which is tried again for ever.
	World bool
	// Remediation is what was done, or is being tried, about the failed input; nil for nothing.
	Remediation *Remediation
	// Retry is when the failed input, or its remediation, is tried again.
	Retry Retry
	// Log holds Helm's last lines about the failed action, or the API server's warnings about the one that made Deployed.Objects, at
	// most ten, masked. Only the process that ran it has them.
	Log []string
	// Test is how the tests of the newest revision ended.
	Test Test
	// Records are the revisions there are.
	Records Records
}

// Deployed is the newest deployed revision.
type Deployed struct {
	// Revision is its number, zero when there is none, and Content the digest of what it holds and when the release was
	// installed; empty when kubeop did not make it.
	Revision int
	Content  string
	// Installed: the revision was made by an install, which is kept even when it does not become healthy: there is nothing to
	// return to.
	Installed bool
	// Objects of the revision, with their namespace; hooks are not among them. Nil when Request.Recorded is of that revision.
	Objects []cluster.Applied
	// Shared are its cluster-scoped objects, nil as Objects are. An upgrade deletes those that left the chart, except definitions and
	// what the user may not delete any more: what a caller recorded before and does not find here may still exist.
	Shared []cluster.Shared
}

// Retry is how often an attempt failed and when the next is made.
type Retry struct {
	// Attempts counts the failures in a row.
	Attempts int
	// At is when Reconcile will try again; zero when it will not.
	At time.Time
	// Held: this input failed too often and is not tried again until it changes, or Force or Reset is requested.
	Held bool
}

// Test is how the tests of a revision ended.
type Test struct {
	// Result is "Succeeded" or "Failed", or empty; Why is why they failed.
	Result, Why string
}

// Records are the revisions of a release.
type Records struct {
	// Snapshots are of the revisions whose records were at hand since the last Outcome, newest first, and Statuses holds the status
	// of every revision there is. A snapshot of a revision that is not in Statuses is of the past.
	Snapshots []v1alpha1.ReleaseSnapshot
	Statuses  map[int]string
}

// Remediation is what follows an input that failed too often.
type Remediation struct {
	// Kind is what was done.
	Kind v1alpha1.RemediationStrategy
	// To is the revision that a rollback returned to.
	To int
	// Err is why it failed, nil when it succeeded. It is tried again at Outcome.Retry.At.
	Err error
}

// Info describes a revision of a release.
type Info struct {
	Name     string
	Revision int
	// Status is Helm's word for it, such as "deployed".
	Status string
	// Chart is "name-version". It and AppVersion are empty when the revision's record was not read: a snapshot of it was in
	// an earlier Outcome's Records.
	Chart      string
	AppVersion string
	// Digest of the input it was made from; empty when kubeop did not make it.
	Digest string
}

// report is the Outcome when no action is under way.
func (p *pass) report(ctx context.Context, s decide.State, d decide.Decision) (Outcome, error) {
	out := Outcome{
		Retry:   Retry{Attempts: d.Attempts, At: d.Until, Held: d.Act == decide.Withheld},
		Why:     cmp.Or(d.Why, p.slot.Memory.ended.why),
		Ended:   p.slot.Memory.ended.at,
		Records: Records{Statuses: s.Statuses()},
	}
	if err := p.reportObjects(ctx, s, &out); err != nil {
		return Outcome{}, err
	}
	if d.Act == decide.Settled {
		p.slot.Memory.settle(p.want.Trial)
	} else if err := p.reportFailure(ctx, s, d, &out); err != nil {
		return Outcome{}, err
	}
	out.Test = p.testResult(s)
	out.Records.Snapshots = p.slot.Memory.records.History(s)
	for i := range out.Records.Snapshots {
		snapshot := &out.Records.Snapshots[i]
		snapshot.Digest, snapshot.ValuesDigest = p.request.seal.Of(snapshot.Digest), p.request.seal.Of(snapshot.ValuesDigest)
	}
	out.Release = p.info(s, out.Records.Snapshots)
	return out, nil
}

func (p *pass) info(s decide.State, history []v1alpha1.ReleaseSnapshot) Info {
	last := s.Last()
	if last == nil {
		return Info{}
	}
	i := Info{Name: p.request.Name, Revision: last.Number, Status: last.Status.String(), Digest: last.Digest}
	if len(history) > 0 && history[0].Revision == last.Number {
		i.Chart, i.AppVersion = history[0].Chart+"-"+history[0].ChartVersion, history[0].AppVersion
	}
	return i
}

func (p *pass) testResult(s decide.State) (t Test) {
	last := s.Last()
	if last == nil {
		return t
	}
	if t.Result = last.Test; t.Result != decide.TestFailed {
		return t
	}
	if c := p.slot.Memory.cause; c.Act == decide.Probe && c.Trial == p.want.Trial && c.Err != nil {
		t.Why = c.Err.Error()
	}
	return t
}

// reportObjects reports the objects of the deployed revision, unless the caller knows them.
func (p *pass) reportObjects(ctx context.Context, s decide.State, out *Outcome) error {
	deployed := s.Deployed()
	if deployed == nil {
		return nil
	}
	out.Deployed = Deployed{Revision: deployed.Number, Content: p.request.seal.Of(deployed.Content), Installed: deployed.Action == decide.ActionInstall}
	switch {
	case p.request.knows(deployed):
		p.slot.Memory.applied = applied{}
	case p.slot.Memory.applied.revision == deployed.Number:
		out.Deployed.Objects, out.Deployed.Shared, out.Log = p.slot.Memory.applied.objects, p.slot.Memory.applied.shared, p.slot.Memory.applied.log
	default:
		rel, err := p.read(ctx, deployed.Number)
		if err != nil {
			return err
		}
		if !deployed.Ours {
			return nil // what a person released passed no gate; it gives way to this input as soon as that succeeds
		}
		if err := decide.CheckGenuine(rel); err != nil {
			return err
		}
		objects, shared, err := cluster.OfRevision(p.engine.opts.Mapper, rel)
		if err != nil {
			return err
		}
		out.Deployed.Shared = shared
		for _, u := range objects {
			out.Deployed.Objects = append(out.Deployed.Objects, cluster.AppliedAs(u, nil))
		}
	}
	return nil
}

func (p *pass) read(ctx context.Context, number int) (*helm.Release, error) {
	conn, err := p.engine.dial(p.request)
	if err != nil {
		return nil, err
	}
	rel, _, err := p.engine.records(conn, p.request, &p.slot.Memory.records).Read(ctx, number)
	return rel, err
}

// deployedObjects are those of a revision that this action deployed, as the API server answered.
func (s *session) deployedObjects(rel *helm.Release) applied {
	wanted, shared, err := cluster.OfRevision(s.pass.engine.opts.Mapper, rel)
	if err != nil {
		return applied{} // it is read again, and the error reported, by the next report
	}
	own := s.objects()
	sent := s.conn.Client.Sent
	out := applied{revision: rel.Version, shared: shared}
	for _, u := range wanted {
		a := cluster.AppliedAs(u, nil)
		a.Live = sent[own.Identify(u)].Live
		out.objects = append(out.objects, a)
	}
	return out
}

// reportFailure reports why this input failed, and its remediation.
func (p *pass) reportFailure(ctx context.Context, s decide.State, d decide.Decision, out *Outcome) error {
	if c := p.slot.Memory.cause; c.Err == nil || c.Trial != p.want.Trial {
		var err error
		if p.slot.Memory.cause, err = p.recall(ctx, s.Failure(p.want.Trial)); err != nil {
			return err
		}
	}
	out.Failed, out.World, out.Log = p.slot.Memory.cause.Err, p.slot.Memory.cause.World, p.slot.Memory.cause.Log
	var err error
	out.Remediation, err = p.remediation(ctx, s, d)
	return err
}

// recall reads why a revision failed that another process made. It has only the text.
func (p *pass) recall(ctx context.Context, r *decide.Revision) (decide.Attempt, error) {
	a := decide.Attempt{Trial: p.want.Trial, Err: errors.New("it failed before; the record that tells why is gone")}
	if r == nil {
		return a, nil
	}
	rel, err := p.read(ctx, r.Number)
	if err != nil {
		return a, err
	}
	a.Err, a.World, a.At = fault.Brief(fault.Plain(errors.New(rel.Info.Description), mask.Of(p.request.Sensitive))), r.Fault == decide.FaultWorld, r.Since
	return a, nil
}

// remediation is what was done, or is being tried in vain, about this input.
func (p *pass) remediation(ctx context.Context, s decide.State, d decide.Decision) (*Remediation, error) {
	if d.Act == decide.Withheld {
		for i := range slices.Backward(s) {
			switch r := &s[i]; {
			case r.Held != p.want.Trial:
			case r.Action == decide.ActionUninstall:
				return &Remediation{Kind: v1alpha1.RemediationUninstall}, nil
			case r.Action == decide.ActionRollback:
				return &Remediation{Kind: v1alpha1.RemediationRollback, To: r.To}, nil
			}
		}
		return nil, nil
	}
	if !d.Mends {
		return nil, nil
	}
	r := &Remediation{Kind: v1alpha1.RemediationUninstall, To: d.To, Err: p.slot.Memory.last.Err}
	if d.To > 0 {
		r.Kind = v1alpha1.RemediationRollback
	}
	if last := s.Last(); r.Err == nil && last.Status == helm.StatusFailed && last.Action == decide.ActionRollback {
		a, err := p.recall(ctx, last)
		if err != nil {
			return nil, err
		}
		r.Err, p.slot.Memory.last = a.Err, decide.Attempt{Act: decide.Rollback, Trial: p.want.Trial, Err: a.Err, World: a.World, At: a.At}
	}
	return r, nil
}
