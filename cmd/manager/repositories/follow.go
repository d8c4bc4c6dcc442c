package repositories

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/progress"
	"github.com/kubeop/kubeop/internal/manager/writes"
)

const (
	// lookBack is among how many of the newest commits one is looked for.
	lookBack = 1000
	// lookEvery is how often the log is read for commits of which nothing is known.
	lookEvery = 5 * time.Second
	// attempts is how often the log is read while others push.
	attempts = 3
)

// object is one of those that repositories declare.
type object interface {
	client.Object
	GetReconcileStatus() *v1alpha1.ReconcileStatus
}

// Progress implements writes.Repositories.
func (r *Repositories) Progress(ctx context.Context, of writes.Object, commit string, sees writes.Sees) (progress.Report, error) {
	p, err := r.find(ctx, of)
	if err != nil {
		return progress.Report{}, err
	}
	reached, err := r.reaches(ctx, p, of, commit)
	if err != nil {
		return progress.Report{}, err
	}
	now := newObject(p.ref)
	err = r.Objects.Get(ctx, p.ref.Key(), now)
	switch {
	case apierrors.IsNotFound(err):
		now = nil
	case err != nil:
		return progress.Report{}, fmt.Errorf("reading %s: %w", p.ref, err)
	}
	c := progress.Commit{Hash: commit, Reached: reached, File: p.path(), Object: p.ref.String(), Quiet: p.ofPlatform() && !sees.Platform || !sees.Tenant}
	return progress.Of(c, p.repository, now), nil
}

func newObject(ref identity.Ref) object {
	switch {
	case ref.App != "":
		return &v1alpha1.App{}
	case ref.Project != "":
		return &v1alpha1.Project{}
	}
	return &v1alpha1.Tenant{}
}

// reaches reports whether the operator has read a repository at a commit, or at a later one. The log of the repository says which is later, so it is asked once for each revision.
func (r *Repositories) reaches(ctx context.Context, p *place, of writes.Object, commit string) (bool, error) {
	read := v1alpha1.CommitOf(p.repository.Status.LastAttemptedRevision)
	if read == commit {
		return true, nil
	}
	question := containment{p.repository.Name, read, commit}
	if reached, known := r.cache.contains(question); known {
		return reached, nil
	}
	// Its credentials are read for the log alone, so it does not matter who may write.
	to, err := r.open(ctx, of, true)
	if err != nil {
		return false, err
	}
	reached, err := r.ask(ctx, to, question)
	switch {
	case errors.Is(err, errUnknown):
		return false, problem.New(problem.NotFound, fmt.Sprintf("None of the last %d commits of the repository is this one.", lookBack))
	case err != nil:
		return false, to.failed(ctx, err, nil)
	}
	r.cache.keepContains(question, reached)
	return reached, nil
}

// ask reads the log. For commits of which nothing is known, which anyone can invent, it is read at lookEvery only, by one at a time.
func (r *Repositories) ask(ctx context.Context, to *place, q containment) (reached bool, err error) {
	if has, _ := r.cache.hasCommit(q.repository, q.commit); !has {
		unlock, err := r.asking.Lock(ctx, q.repository)
		if err != nil {
			return false, err
		}
		defer unlock()
		if has, read := r.cache.hasCommit(q.repository, q.commit); !has && r.clock.Since(read) < lookEvery {
			return false, errUnknown
		}
	}
	for range attempts {
		var log map[string]string
		reached, log, err = to.leads(ctx, q.commit, q.revision)
		if log != nil {
			r.cache.keepCommits(q.repository, log, r.clock.Now())
		}
		if !errors.Is(err, git.ErrMoved) {
			break
		}
	}
	return reached, err
}

// errUnknown means that a branch does not have a commit.
var errUnknown = errors.New("the branch does not have the commit")

// leads reports whether a commit of the branch leads to a later one, "" for none, and returns the log that was read.
func (p *place) leads(ctx context.Context, commit, to string) (later bool, log map[string]string, err error) {
	newest, err := p.remote.Fetch(ctx)
	if err != nil {
		return false, nil, err
	}
	if log, err = p.remote.Messages(ctx, newest, "", lookBack); err != nil {
		return false, nil, err
	}
	if _, has := log[commit]; !has {
		return false, log, errUnknown
	}
	if to == "" || newest.Hash == commit {
		return false, log, nil
	}
	since, err := p.remote.Messages(ctx, newest, commit, lookBack)
	_, is := since[to]
	return is, log, err
}
