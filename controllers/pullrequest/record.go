package pullrequest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/host"
	gitreport "github.com/kubeop/kubeop/gitops/report"
)

// record is what is known of the pull requests of one Repository.
type record struct {
	uid        types.UID
	repository *v1alpha1.Repository
	// open are the open pull requests into the branch that the Repository follows, as listed last.
	open []host.PullRequest
	// plans are for the status.
	plans []v1alpha1.PullRequestPlan
	// asked are the commits that are being planned, or whose plan is being written, by number.
	asked map[int]string
	// busy: a commit is being fetched or planned.
	busy bool
	// tries are the failed attempts to plan a commit, by number.
	tries map[int]try
	// troubles are the failures of requests to the Git host, by the number of the pull request, or 0 for the list of pull requests.
	troubles map[int]trouble
	// answered: the Git host listed pull requests since the start. reported: the status has the condition, or may have it since before the start.
	answered, reported bool
	// secrets are the versions of the Secrets with the credentials.
	secrets string
}

// try counts the attempts to plan a commit that failed, and says when the next one is.
type try struct {
	commit string
	failed int
	next   time.Time
}

// recordOf returns the record of a Repository, which begins with what its status says. The lock is held.
func (p *Planner) recordOf(repository *v1alpha1.Repository) *record {
	rec := p.records[repository.Name]
	if rec == nil || rec.uid != repository.UID {
		rec = &record{
			uid: repository.UID, repository: repository.DeepCopy(), plans: slices.Clone(repository.Status.Plans),
			asked: map[int]string{}, tries: map[int]try{}, troubles: map[int]trouble{}, reported: true,
		}
		if p.records == nil {
			p.records = map[string]*record{}
		}
		p.records[repository.Name] = rec
	}
	return rec
}

// of returns the record of a Repository if it is still the same one. The lock is held.
func (p *Planner) of(repository *v1alpha1.Repository) *record {
	if rec := p.records[repository.Name]; rec != nil && rec.uid == repository.UID {
		return rec
	}
	return nil
}

// Forget drops a Repository that wants no plans any more.
func (p *Planner) Forget(name string) {
	p.mu.Lock()
	rec := p.records[name]
	delete(p.records, name)
	p.mu.Unlock()
	if rec != nil {
		p.Queue.DropAll(keyOf(rec.uid, 0))
	}
}

// update changes the record of a Repository if it is still the same one, and reconciles the Repository if its status changes.
func (p *Planner) update(repository *v1alpha1.Repository, change func(*record)) {
	p.mu.Lock()
	rec := p.of(repository)
	if rec == nil {
		p.mu.Unlock()
		return
	}
	plans, note := slices.Clone(rec.plans), rec.note()
	change(rec)
	slices.SortFunc(rec.plans, func(a, b v1alpha1.PullRequestPlan) int { return a.Number - b.Number })
	now := rec.note()
	changed := !slices.Equal(plans, rec.plans) || now.Status != "" && now != note || now.Status == "" && !now.Stays && rec.reported
	p.mu.Unlock()
	if changed {
		p.Wake(types.NamespacedName{Name: repository.Name})
	}
}

// set replaces what the status says of a pull request.
func (rec *record) set(plan v1alpha1.PullRequestPlan) {
	rec.plans = append(slices.DeleteFunc(rec.plans, func(was v1alpha1.PullRequestPlan) bool { return was.Number == plan.Number }), plan)
}

// planned reports whether a pull request has the plan of its newest commit.
func (rec *record) planned(open host.PullRequest) bool {
	return slices.ContainsFunc(rec.plans, func(plan v1alpha1.PullRequestPlan) bool {
		return plan.Number == open.Number && isOf(v1alpha1.CommitOf(plan.Revision), open.Commit)
	})
}

// isOf reports whether a hash is that of a pull request's commit, which the host may have shortened.
func isOf(hash, commit string) bool { return commit != "" && strings.HasPrefix(hash, commit) }

// wants reports whether the pull requests of a Repository are planned: it follows a branch, not a tag or a commit.
func wants(repository *v1alpha1.Repository) bool {
	ref := repository.Spec.Ref
	return repository.Spec.Previews == v1alpha1.PreviewsPlan && (ref == nil || ref.Tag == "" && ref.SemVer == "" && ref.Name == "" && ref.Commit == "")
}

// StatusOf returns the condition PlanCommentFailed and the plans of a Repository's pull requests, for its status. secrets are the versions of the
// Secrets that the Repository names: when they change, what failed is tried again.
func (p *Planner) StatusOf(repository *v1alpha1.Repository, secrets string) (step.Note, []v1alpha1.PullRequestPlan) {
	if !wants(repository) {
		p.Forget(repository.Name)
		return step.Note{Condition: v1alpha1.PlanCommentFailedCondition}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	rec := p.recordOf(repository)
	if was := rec.secrets; was != secrets {
		rec.secrets = secrets
		if was != "" {
			p.Queue.Hurry(keyOf(rec.uid, 0))
		}
	}
	note := rec.note()
	if !note.Stays {
		rec.reported = note.Status != ""
	}
	return note, slices.Clone(rec.plans)
}

// keyOf is the key of messages about a pull request of a Repository; with 0, it is the beginning of them all.
func keyOf(uid types.UID, number int) string {
	if number == 0 {
		return "pull request " + string(uid) + " "
	}
	return fmt.Sprintf("pull request %s %d", uid, number)
}

// fromFork is what the status says of a pull request from a fork.
const fromFork = "not planned: it comes from another repository, where anybody may write, and its content would be rendered in the cluster"

// listed records the open pull requests. Closed ones leave the status, and those from a fork only get a word there.
func (rec *record) listed(open []host.PullRequest, err error, queue *gitreport.Queue) {
	rec.answered = true
	rec.trouble(0, err)
	if err != nil {
		return
	}
	rec.open = open
	still := map[int]bool{0: true}
	for _, one := range open {
		still[one.Number] = true
		if one.Fork {
			rec.set(v1alpha1.PullRequestPlan{Number: one.Number, Message: fromFork})
		}
	}
	rec.plans = slices.DeleteFunc(rec.plans, func(plan v1alpha1.PullRequestPlan) bool { return !still[plan.Number] })
	for number := range rec.asked {
		if !still[number] {
			queue.Drop(keyOf(rec.uid, number))
			delete(rec.asked, number)
		}
	}
	keep(rec.tries, still)
	keep(rec.troubles, still)
}

// keep drops what is known of pull requests that are closed.
func keep[V any](of map[int]V, still map[int]bool) {
	for number := range of {
		if !still[number] {
			delete(of, number)
		}
	}
}

// job is the plan of one commit of a pull request.
type job struct {
	repository *v1alpha1.Repository
	of         host.PullRequest
	commit     git.Commit
}

// unplanned takes the first pull request whose newest commit has to be planned; nil if there is none. The lock is held.
func (rec *record) unplanned(now time.Time) *job {
	for _, open := range rec.open {
		tried := rec.tries[open.Number]
		if open.Fork || rec.planned(open) || isOf(rec.asked[open.Number], open.Commit) || tried.commit == open.Commit && now.Before(tried.next) {
			continue
		}
		rec.busy, rec.asked[open.Number] = true, open.Commit
		return &job{repository: rec.repository, of: open}
	}
	return nil
}

// stillOpen reports whether a pull request is open. Its newest commit is then the one that was fetched, which may be newer than the list.
func (rec *record) stillOpen(j *job) bool {
	at := -1
	for i, open := range rec.open {
		if open.Number == j.of.Number {
			at = i
		}
	}
	if at >= 0 && rec.open[at].Commit == j.of.Commit {
		rec.open[at].Commit = j.commit.Hash
	}
	return at >= 0
}

// written records whether the Git host took a plan.
func (rec *record) written(j *job, comment Comment, err error) {
	if rec.asked[j.of.Number] != j.commit.Hash {
		return // It was closed, or has a newer commit.
	}
	rec.trouble(j.of.Number, err)
	plan := v1alpha1.PullRequestPlan{Number: j.of.Number, Message: comment.Summary}
	switch {
	case err == nil:
		plan.Revision = j.commit.Revision
		delete(rec.asked, j.of.Number)
		delete(rec.tries, j.of.Number)
	case rec.troubles[j.of.Number].reported():
		plan.Message += "; it could not be written to the pull request: " + few.Quote(err.Error())
	default:
		return
	}
	rec.set(plan)
}
