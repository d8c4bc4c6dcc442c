package repositories

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/internal/manager/filediff"
	"github.com/kubeop/kubeop/internal/manager/history"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/writes"
)

// History implements history.Repositories.
func (r *Repositories) History(ctx context.Context, of history.App, ofPlatform bool) (history.History, error) {
	ref, app := identity.Ref{Tenant: of.Tenant, Project: of.Project, App: of.App}, &v1alpha1.App{}
	err := r.Objects.Get(ctx, ref.Key(), app)
	switch {
	case apierrors.IsNotFound(err):
		return history.History{}, problem.New(problem.NotFound, "")
	case err != nil:
		return history.History{}, fmt.Errorf("reading %s: %w", ref, err)
	}
	answer := history.History{Items: []history.Delivery{}}
	for i := range app.Status.Deliveries {
		answer.Items = append(answer.Items, deliveryOf(&app.Status.Deliveries[i]))
	}
	// Its credentials are read for the log alone, so it does not matter who may write.
	p, err := r.open(ctx, writes.Object(of), true)
	if err == nil && p.ofPlatform() && !ofPlatform {
		answer.Incomplete = "Messages of the platform repository are for administrators."
		return answer, nil
	}
	var log branchLog
	if err == nil {
		log, err = r.log(ctx, p)
	}
	if refused := new(problem.Problem); errors.As(err, &refused) {
		answer.Incomplete = refused.Detail
		return answer, nil
	}
	for i := range answer.Items {
		if c, has := log.commits[answer.Items[i].Commit]; has {
			answer.Items[i].Date, answer.Items[i].Message = c.Time.UTC(), strings.TrimSpace(strings.ToValidUTF8(c.Message, ""))
		}
	}
	return answer, err
}

func deliveryOf(d *v1alpha1.DeliveryRecord) history.Delivery {
	delivery := history.Delivery{
		Commit: d.Commit, Author: d.Author, Revision: d.Revision, Image: d.Image, Release: d.Release, Started: d.StartedAt.UTC(), Result: d.Result, Reason: d.Reason,
	}
	if d.FinishedAt != nil {
		delivery.Finished = d.FinishedAt.UTC()
	}
	return delivery
}

// Diff implements history.Repositories.
func (r *Repositories) Diff(ctx context.Context, of history.App, from, to string, ofPlatform bool) (history.Comparison, error) {
	p, err := r.open(ctx, writes.Object(of), ofPlatform)
	if err != nil {
		return history.Comparison{}, err
	}
	if to == "" {
		newest, err := p.remote.Fetch(ctx)
		if err != nil {
			return history.Comparison{}, p.failed(ctx, err, nil)
		}
		to = newest.Hash
	}
	both, err := r.commitsOf(ctx, p, from, to)
	if err != nil {
		return history.Comparison{}, err
	}
	var sides [2]fs.FS
	found := false
	for i, c := range both {
		dir, err := c.Root.Sub(p.folderOf())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return history.Comparison{}, fmt.Errorf("reading %s: %w", p.folderOf(), err)
		}
		sides[i], found = dir, true
	}
	if !found {
		return history.Comparison{}, problem.New(problem.NotFound, "Neither commit has "+p.folderOf()+".")
	}
	comparison := history.Comparison{From: from, To: to}
	if comparison.Diff, err = filediff.Of(ctx, sides[0], sides[1], p.folderOf()); err != nil {
		return history.Comparison{}, fmt.Errorf("comparing %s: %w", p.folderOf(), err)
	}
	return comparison, nil
}
