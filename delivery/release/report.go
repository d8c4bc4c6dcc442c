package release

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// Outcome is the result of Reconcile.
type Outcome struct {
	// Running is true while an action is queued or running. Action is its name, such as "upgrading", and Why its reason if the reason is
	// not obvious: revisions made by hand, another name. Notify is called when it ends. Besides these only Accepted is set. Why is also set
	// beside Failed when a person has made a revision by hand since.
	Running bool
	// Queued: the action still waits for a worker.
	Queued bool
	Action string
	Why    string
	// Ended is when this process last ended an action on the release; Why is then the reason for that action. Zero while an action runs.
	Ended time.Time
	// Accepted: the manual request Request.Manual.ID was carried out. Either a revision records it, or there was nothing to do, or the
	// input failed before there was a revision.
	Accepted bool
	// Release is the newest revision.
	Release Info
	// Deployed is the newest deployed revision.
	Deployed Deployed
	// Failed is why the last attempt at this input failed: ErrRender, *NotAllowed, or any other error. Nil: the release is deployed with
	// this input.
	Failed error
	// Environment: the failure was caused by the environment and not by the input, so the input is retried without limit.
	Environment bool
	// Remediation is what was done, or is being tried, after the input failed; nil for nothing.
	Remediation *Remediation
	// Retry is when the failed input, or its remediation, is tried again.
	Retry Retry
	// Log holds the last lines that Helm logged in the failed action, or the API server's warnings about the action that made
	// Deployed.Objects; at most ten lines, masked. Only the process that ran the action has them.
	Log []string
	// Test is how the tests of the newest revision ended.
	Test Test
	// Records are the revisions of the release.
	Records Records
}

// Deployed is the newest deployed revision.
type Deployed struct {
	// Revision is its number, zero when there is none. Content is the digest of what the revision holds and of when the release was
	// installed; empty when kubeop did not make it.
	Revision int
	Content  string
	// Installed: the revision was made by an install. It is kept even if it does not become healthy, because there is no earlier revision
	// to return to.
	Installed bool
	// Objects of the revision, with their namespace, without hooks. Nil when Request.Recorded is about that revision.
	Objects []cluster.Applied
	// Shared are its cluster-scoped objects; nil when Objects is nil. An upgrade deletes those that left the chart, except definitions and
	// those that the user may no longer delete. So an object that a caller recorded before and that is missing here may still exist.
	Shared []cluster.Shared
}

// Retry is how often an attempt failed and when the next one is made.
type Retry struct {
	// Attempts counts the failures in a row.
	Attempts int
	// At is when Reconcile will try again; zero: it will not.
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
	// Snapshots are of the revisions whose records were read since the last Outcome, newest first. Statuses has the status of every
	// existing revision. A snapshot of a revision that is not in Statuses is outdated.
	Snapshots []v1alpha1.ReleaseSnapshot
	Statuses  map[int]string
}

// Remediation is what was done after an input failed too often.
type Remediation struct {
	// Kind is what was done.
	Kind v1alpha1.RemediationStrategy
	// To is the revision that a rollback restored.
	To int
	// Err is why the remediation failed, nil when it succeeded. It is tried again at Outcome.Retry.At.
	Err error
}

// Info describes a revision of a release.
type Info struct {
	Name     string
	Revision int
	// Status is Helm's status, such as "deployed".
	Status string
	// Chart is "name-version". It and AppVersion are empty when the revision's record was not read, because an earlier Outcome's Records
	// had a snapshot of it.
	Chart      string
	AppVersion string
	// Digest of the input it was made from; empty when kubeop did not make it.
	Digest string
}

// report returns the Outcome when no action is running.
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
			return nil // a person's release passed no gate; the next successful release of this input replaces it
		}
		if err := records.CheckGenuine(rel, p.request.App); err != nil {
			return err
		}
		objects, shared, err := cluster.OfRevision(p.engine.opts.Mapper, rel, p.request.platform())
		if err != nil {
			return err
		}
		out.Deployed.Objects, out.Deployed.Shared = cluster.AsApplied(objects, shared, nil)
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

// deployedObjects are the objects of a revision that this action deployed, as the API server returned them.
func (s *session) deployedObjects(rel *helm.Release) applied {
	wanted, shared, err := cluster.OfRevision(s.pass.engine.opts.Mapper, rel, s.pass.request.platform())
	if err != nil {
		return applied{} // it is read again, and the error reported, by the next report
	}
	out := applied{revision: rel.Version}
	out.objects, out.shared = cluster.AsApplied(wanted, shared, s.conn.Client)
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
	out.Failed, out.Environment, out.Log = p.slot.Memory.cause.Err, p.slot.Memory.cause.Environment, p.slot.Memory.cause.Log
	var err error
	out.Remediation, err = p.remediation(ctx, s, d)
	return err
}

// recall reads why a revision of another process failed. Only the text is left.
func (p *pass) recall(ctx context.Context, r *decide.Revision) (decide.Attempt, error) {
	a := decide.Attempt{Trial: p.want.Trial, Err: errors.New("it failed before; the record with the reason is gone")}
	if r == nil {
		return a, nil
	}
	rel, err := p.read(ctx, r.Number)
	if err != nil {
		return a, err
	}
	a.Err, a.Environment, a.At = fault.Brief(fault.Plain(errors.New(rel.Info.Description), mask.Of(p.request.Sensitive))), r.Fault == decide.FaultEnvironment, r.Since
	return a, nil
}

// remediation returns what was done about this input, or is being tried without success so far.
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
	if !d.Remediates {
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
		r.Err, p.slot.Memory.last = a.Err, decide.Attempt{Act: decide.Rollback, Trial: p.want.Trial, Err: a.Err, Environment: a.Environment, At: a.At}
	}
	return r, nil
}
