package repositories

import (
	"context"
	"fmt"
	"path"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/gitops/commit"
	"github.com/kubeop/kubeop/gitops/files"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/plan"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/manager/filediff"
	"github.com/kubeop/kubeop/internal/manager/writes"
)

// dryRun answers what a commit would do. Nothing is pushed.
func (r *Repositories) dryRun(ctx context.Context, p *place, c writes.Change, request commit.Request) (writes.Written, error) {
	newest, err := p.remote.Fetch(ctx)
	if err != nil {
		return writes.Written{}, p.failed(ctx, err, nil)
	}
	effects := &writes.Plan{Diff: filediff.Diff{Files: []filediff.FileDiff{}}, Objects: []writes.PlannedObject{}, Confirmation: writes.Confirmation{Needed: writes.No}, Unknown: []string{}}
	checked := request.Check
	request.Check = func(before, after *folder.Folder) error {
		if err := checked(before, after); err != nil {
			return err
		}
		return r.describe(ctx, p, effects, [2]*folder.Folder{before, after})
	}
	changed, err := commit.DryRun(newest, request)
	if err == nil && !changed && c.How == writes.Delete {
		err = commit.ErrMissing
	}
	if err != nil {
		return writes.Written{}, p.failed(ctx, err, request.Edits)
	}
	return writes.Written{Commit: newest.Hash, Changed: changed, Repository: p.repository.Name, File: p.path(), Plan: effects}, nil
}

// What a plan does not say.
const (
	unknownObjects = "Which objects the operator makes of this, and whether the API server and the Policies take them: kubeop plan says that, in a clone of the repository."
	unknownQuota   = "Whether quotas fit into the budget of the tenant."
	unknownVolumes = "Which volumes with data are in what is deleted."
)

// describe records what differs between the files before a commit and after it.
func (r *Repositories) describe(ctx context.Context, p *place, effects *writes.Plan, of [2]*folder.Folder) (err error) {
	before, after := of[0], of[1]
	if effects.Diff, err = filediff.Of(ctx, before, after, p.folder()); err != nil {
		return fmt.Errorf("comparing files: %w", err)
	}
	reader, err := r.readerOf(p)
	if err != nil {
		return err
	}
	scope := tree.Scope{Repository: p.repository.Name, Tenant: p.repository.Spec.Tenant, Path: p.folder()}
	was := reader.Read(files.Of(before), scope, nil)
	is := reader.Read(files.Of(after), scope, was)
	weighed := weighing{was: was, clusters: p.placement.Tenant, commit: plan.Commit{Apps: map[string]int{}}}
	quotas := false
	tree.Changes(was, is, func(ref identity.Ref) {
		_, had := was.Find(ref)
		_, has := is.Find(ref)
		action := "change"
		switch {
		case !had:
			action = "create"
		case !has:
			action = "delete"
			weighed.lose(ref)
		default:
			weighed.move(ref, is)
		}
		quotas = quotas || ref.Kind() == v1alpha1.ProjectKind && has
		effects.Objects = append(effects.Objects, writes.PlannedObject{Kind: ref.Kind(), Name: ref.Path(), Action: action})
	})
	effects.Confirmation = weighed.confirmation(is)
	effects.Unknown = append(effects.Unknown, unknownObjects)
	if quotas {
		effects.Unknown = append(effects.Unknown, unknownQuota)
	}
	if weighed.volumes {
		effects.Unknown = append(effects.Unknown, unknownVolumes)
	}
	return nil
}

// weighing finds out whether a person would have to confirm deletions, of which moves to another cluster are some, by the rules of the operator and without what is in the cluster.
type weighing struct {
	was    *tree.Tree
	commit plan.Commit
	// volumes: what is deleted may have some.
	volumes bool
	// clusters are those of the tenant whose own repository it is, as its Tenant names them.
	clusters []string
	// elsewhere: the projects of the tenant that name no cluster move, and another repository declares them.
	elsewhere bool
}

// lose adds an object that would be deleted.
func (w *weighing) lose(ref identity.Ref) {
	loss := plan.Loss{Ref: ref}
	w.was.Walk(func(n tree.Node) bool {
		in := n.Ref()
		if in.App != "" && in != ref && (in.Parent() == ref || in.Parent().Parent() == ref) {
			loss.Apps++
		}
		return true
	})
	w.volumes = w.volumes || !ref.OneFile()
	w.commit.Losses = append(w.commit.Losses, loss)
}

// confirmation says whether it would be needed.
func (w *weighing) confirmation(is *tree.Tree) writes.Confirmation {
	switch {
	case len(w.commit.Losses) == 0 && w.elsewhere:
		return writes.Confirmation{Needed: writes.Perhaps, Why: "if its repository has projects that name no cluster, because these move to another one"}
	case len(w.commit.Losses) == 0:
		return writes.Confirmation{Needed: writes.No}
	}
	w.was.Walk(func(n tree.Node) bool {
		if n.Ref().App != "" {
			w.commit.Apps[n.Ref().Tenant]++
		}
		return true
	})
	w.commit.Emptied = true
	is.Walk(func(tree.Node) bool {
		w.commit.Emptied = false
		return false
	})
	if verdict := w.commit.Weigh(""); len(verdict.Held) > 0 {
		return writes.Confirmation{Needed: writes.Yes, Why: verdict.Why}
	}
	for _, l := range w.commit.Losses {
		if l.Ref.App == "" {
			return writes.Confirmation{Needed: writes.Perhaps, Why: "if it has volumes with data"}
		}
	}
	return writes.Confirmation{Needed: writes.No}
}

// folderOf is the folder of an object, from the root of the repository.
func (p *place) folderOf() string { return path.Dir(p.path()) }
