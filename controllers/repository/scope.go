package repository

import (
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/jitter"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/preview"
	"github.com/kubeop/kubeop/controllers/repository/upstream"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/freeze"
	"github.com/kubeop/kubeop/gitops/plan"
	"github.com/kubeop/kubeop/gitops/tree"
)

const (
	// maxProblems and maxHeld bound the lists in the status.
	maxProblems = 20
	maxHeld     = 50
)

// scope holds the facts of one Reconcile.
type scope struct {
	repository *v1alpha1.Repository
	// commit is set by fetch.
	commit git.Commit
	acceptance
	// progress and the content are set by sync, and verdict if objects left the tree.
	progress *progress
	content
	verdict plan.Verdict
	// weighed: verdict is of this pass. synced: no object of the commit waits or failed in the cluster; otherwise again is when to retry.
	weighed, synced bool
	again           time.Duration
	// unfinished: the pass ended before the commit was applied as far as possible.
	unfinished bool
	// valid is set by checkProblems: the whole commit is applied.
	valid bool
	// usages are the usages of tenants, including objects about to be applied, counted once in a pass.
	usages map[string]*usage.Usage
	// allotments say which projects of the commit fit into the budgets of their tenants.
	allotments map[string]plan.Allotment
	// every is the pause between two polls.
	every time.Duration
	beside
}

// beside is what the status has beside the steps: conditions, the statuses of commits that the Git host shows, and the plans of pull requests.
type beside struct {
	notes    []step.Note
	reported []v1alpha1.ReportedStatus
	plans    []v1alpha1.PullRequestPlan
}

// content is what was read of the commit and of the branches with previews.
type content struct {
	// cluster is the name of this cluster.
	cluster  string
	found    *tree.Tree
	previews preview.Result
	// unapplied are the objects of previews that could not be applied in this pass.
	unapplied failures
}

// acceptance is set by accept.
type acceptance struct {
	// source of the commit.
	source string
	// held is a newer commit that is not accepted, and unaccepted why.
	held       string
	unaccepted error
	// waits is the held commit if only a freeze holds it, and hold is the freeze.
	waits git.Commit
	hold  *freeze.Hold
}

func newScope(repository *v1alpha1.Repository) *scope {
	every := repository.GetSchedule().Every()
	return &scope{repository: repository, every: every, usages: map[string]*usage.Usage{}, allotments: map[string]plan.Allotment{}}
}

// Notes returns the conditions besides those of the steps.
func (s *scope) Notes() []step.Note { return s.notes }

// Record writes the results into the status.
func (s *scope) Record() {
	status := &s.repository.Status
	status.CommitStatuses, status.Plans = s.reported, s.plans
	if s.held != "" {
		status.HeldRevision, status.HeldUntil = s.held, nil
	}
	if s.hold != nil && !s.hold.ByAdministrators() {
		status.HeldUntil = &metav1.Time{Time: s.hold.Until}
	}
	if s.commit.Revision == "" {
		return
	}
	status.LastAttemptedRevision = s.commit.Revision
	if s.unaccepted == nil {
		status.Source, status.HeldRevision, status.HeldUntil = s.source, "", nil
	}
	if s.found == nil {
		return
	}
	status.Cluster, status.ProjectsElsewhere = s.cluster, s.found.ProjectsElsewhere()
	status.Problems = few.Lines(s.problems(maxProblems+1), s.problemCount(), maxProblems)
	status.Previews = s.previews.Status
	if s.weighed {
		status.Held, status.HeldToken = few.Lines(s.verdict.Lines, len(s.verdict.Lines), maxHeld), ""
		if len(s.verdict.Held) > 0 {
			status.HeldToken = s.verdict.Token
		}
	}
	if s.valid {
		status.LastAppliedRevision = s.commit.Revision
		status.AppliedSource = upstream.Place(s.repository)
	}
}

// Again implements step.Sooner: it is the interval at the latest, because the runner does not know its default.
func (s *scope) Again() time.Duration {
	return backoff.Sooner(s.again, jitter.JitteredIntervalDuration(s.every))
}

// Summary is Ready's message.
func (s *scope) Summary() string {
	c := s.found.Counts()
	summary := fmt.Sprintf("%s, %s", few.Count(c.Projects, "project"), few.Count(c.Apps, "app"))
	if s.repository.Spec.Tenant == "" {
		summary = few.Count(c.Tenants, "tenant") + ", " + summary
	}
	if n := s.found.ProjectsElsewhere(); n > 0 {
		summary += fmt.Sprintf("; %s on other clusters", few.Count(n, "project"))
	}
	return fmt.Sprintf("Synced %s: %s", few.ShortRevision(s.commit.Revision), summary)
}

// reached says how far the commit has been applied.
func (s *scope) reached() string {
	all, left := s.found.Counts().Apps, 0
	for _, ref := range s.progress.pending.All() {
		if ref.App != "" {
			left++
		}
	}
	return fmt.Sprintf("syncing %s: %s of %s declared", s.commit.Revision, few.Number(max(all-left, 0)), few.Count(all, "app"))
}
