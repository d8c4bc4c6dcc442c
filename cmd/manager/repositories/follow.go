package repositories

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/progress"
	"github.com/kubeop/kubeop/internal/manager/writes"
)

// reaching is a question: whether a revision of a repository has a commit.
type reaching struct{ repository, revision, commit string }

const (
	// lookBack is among how many of the newest commits one is looked for.
	lookBack = 1000
	// attempts is how often the log is read while others push.
	attempts = 3
	// maxReached bounds the memory of answers.
	maxReached = 10_000
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
	_, read, _ := strings.Cut(p.repository.Status.LastAttemptedRevision, "@sha1:")
	if read == commit {
		return true, nil
	}
	question := reaching{p.repository.Name, read, commit}
	r.mu.Lock()
	reached, known := r.reached[question]
	r.mu.Unlock()
	if known {
		return reached, nil
	}
	// Its credentials are read for the log alone, so it does not matter who may write.
	to, err := r.open(ctx, of, true)
	if err != nil {
		return false, err
	}
	for range attempts {
		if reached, err = to.leads(ctx, commit, read); !errors.Is(err, git.ErrMoved) {
			break
		}
	}
	switch {
	case errors.Is(err, errUnknown):
		return false, problem.New(problem.NotFound, fmt.Sprintf("None of the last %d commits of the repository is this one.", lookBack))
	case err != nil:
		return false, to.failed(ctx, err, nil)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.reached) >= maxReached {
		clear(r.reached)
	}
	r.reached[question] = reached
	return reached, nil
}

// errUnknown means that a branch does not have a commit.
var errUnknown = errors.New("the branch does not have the commit")

// leads reports whether a commit of the branch leads to a later one; "" for none.
func (p *place) leads(ctx context.Context, commit, to string) (bool, error) {
	newest, err := p.remote.Fetch(ctx)
	if err != nil {
		return false, err
	}
	all, err := p.remote.Messages(ctx, newest, "", lookBack)
	if err != nil {
		return false, err
	}
	if _, has := all[commit]; !has {
		return false, errUnknown
	}
	if to == "" || newest.Hash == commit {
		return false, nil
	}
	later, err := p.remote.Messages(ctx, newest, commit, lookBack)
	_, is := later[to]
	return is, err
}
