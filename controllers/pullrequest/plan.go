package pullrequest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/host"
)

const (
	// patientTries is after how many failed attempts to plan a commit the failure is written to the pull request, in place of a plan.
	patientTries = 3
	// firstRetry and lastRetry are the first and the longest pause before a commit is tried again, which the next fetch does.
	firstRetry = 30 * time.Second
	lastRetry  = time.Hour
)

// Fetched is called after each fetch of a Repository, with the newest commit of what it follows. It asks the Git host for the open pull requests.
func (p *Planner) Fetched(repository *v1alpha1.Repository, commit git.Commit) {
	if !wants(repository) {
		p.Forget(repository.Name)
		return
	}
	branch, _, _ := strings.Cut(commit.Revision, "@")
	p.mu.Lock()
	rec := p.recordOf(repository)
	rec.repository = repository.DeepCopy()
	repository = rec.repository
	p.mu.Unlock()
	var found []host.PullRequest
	message := p.message(repository, 0)
	message.Send = func(ctx context.Context) (err error) {
		found, err = p.list(ctx, repository)
		return err
	}
	message.Done = func(err error) {
		p.update(repository, func(rec *record) { rec.listed(into(found, branch), err, p.Queue) })
		p.next(repository.Name)
	}
	p.Queue.Put(message) // Without room for it, the next fetch asks again.
}

// next begins with the next commit that has no plan, unless one is being planned.
func (p *Planner) next(name string) {
	p.mu.Lock()
	rec := p.records[name]
	var j *job
	if rec != nil && !rec.busy {
		j = rec.unplanned(p.Clock.Now())
	}
	p.mu.Unlock()
	if j != nil {
		p.fetch(j)
	}
}

// fetch fetches the branch of a pull request.
func (p *Planner) fetch(j *job) {
	run := func(ctx context.Context) (err error) {
		source, err := p.Repositories.SignedSource(ctx, j.repository)
		if err != nil {
			return err
		}
		source.Ref = &sourcev1.GitRepositoryRef{Branch: j.of.From}
		if j.commit, err = p.Git.Fetch(ctx, source); err == nil && j.commit.Unsigned != nil {
			err = fmt.Errorf("commit %s: %w", j.commit.Hash, j.commit.Unsigned)
		}
		return err
	}
	p.submit(p.Fetches, pool.Task{
		Source: fmt.Sprintf("pull request %d of %s", j.of.Number, j.repository.UID), Host: transport.HostOf(j.repository.Spec.URL),
		Timeout: j.repository.Spec.Within(), Run: run, Done: func(err error) {
			if err != nil {
				p.failed(j, err)
				return
			}
			p.plan(j)
		},
	}, j)
}

// plan plans the fetched commit.
func (p *Planner) plan(j *job) {
	var comment Comment
	p.submit(p.Plans, pool.Task{
		Source: string(j.repository.UID), Host: "plans", Timeout: limit, // The limit of a host bounds all plans.
		Run: func(ctx context.Context) (err error) {
			comment, err = p.Plan(ctx, j.repository, j.commit)
			return err
		},
		Done: func(err error) {
			if err != nil {
				p.failed(j, err)
				return
			}
			p.write(j, comment)
		},
	}, j)
}

// submit gives a task to a pool.
func (p *Planner) submit(to *pool.Pool, task pool.Task, j *job) {
	task.Tenant, task.Priority = budget.OfRepository(j.repository.Name), pool.Repository
	done := task.Done
	task.Done = func(err error) {
		if !errors.Is(err, pool.ErrCanceled) { // Otherwise the process ends.
			done(err)
		}
	}
	if _, err := to.Submit(task); err != nil {
		task.Done(err)
	}
}

// failed records that a commit could not be fetched or planned. After some attempts, or if only another commit can help, the pull request says so.
func (p *Planner) failed(j *job, err error) {
	why := few.Quote(err.Error())
	final := errors.Is(err, failure.ErrTooLarge) || errors.Is(err, failure.ErrSignature)
	write := false
	p.update(j.repository, func(rec *record) {
		delete(rec.asked, j.of.Number)
		tried := rec.tries[j.of.Number]
		if tried.commit != j.of.Commit {
			tried = try{commit: j.of.Commit}
		}
		tried.failed++
		tried.next = p.Clock.Now().Add(backoff.Between(firstRetry, lastRetry, tried.failed))
		rec.tries[j.of.Number] = tried
		if write = j.commit.Hash != "" && tried.failed >= patientTries || final; write {
			rec.asked[j.of.Number] = j.of.Commit
			return
		}
		rec.busy = false
		rec.set(v1alpha1.PullRequestPlan{Number: j.of.Number, Message: "not planned yet: " + why})
	})
	if !write {
		p.next(j.repository.Name)
		return
	}
	if j.commit.Hash == "" {
		j.commit.Hash, j.commit.Revision = j.of.Commit, j.of.From+"@sha1:"+j.of.Commit
	}
	p.write(j, unplannable(j.repository.Name, why))
}

// unplannable returns the comment on a commit that cannot be planned.
func unplannable(repository, why string) Comment {
	return Comment{
		Summary: "it cannot be planned: " + why,
		Body:    fmt.Sprintf("### kubeop plan for `%s`: it cannot be planned\n\n```\n%s\n```\n", repository, strings.ReplaceAll(why, "```", "'''")),
	}
}

// write gives a plan to the queue, which writes it to the pull request, and goes on with the next commit.
func (p *Planner) write(j *job, comment Comment) {
	message := p.message(j.repository, j.of.Number)
	message.Send = func(ctx context.Context) error {
		git, err := p.host(ctx, j.repository)
		if err != nil {
			return err
		}
		defer git.Close()
		return git.ReplaceComment(ctx, j.of.Number, p.Mark(j.repository.Name), comment.Body)
	}
	message.Done = func(err error) {
		p.update(j.repository, func(rec *record) { rec.written(j, comment, err) })
	}
	p.update(j.repository, func(rec *record) {
		rec.busy = false
		if !rec.stillOpen(j) || !p.Queue.Put(message) { // Without room for it, the next fetch plans it again.
			delete(rec.asked, j.of.Number)
			return
		}
		rec.asked[j.of.Number] = j.commit.Hash
	})
	p.next(j.repository.Name)
}
