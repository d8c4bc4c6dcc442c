package repositories

import (
	"errors"
	"fmt"
	"path"

	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/files"
	"github.com/kubeop/kubeop/gitops/layout"
	"github.com/kubeop/kubeop/gitops/tree"
)

// refusal is why a change is not committed.
type refusal struct{ problems []tree.Problem }

// Error implements error.
func (r *refusal) Error() string { return r.problems[0].String() }

// check refuses a change that makes the changed file, or another file, invalid, as the operator and kubeop validate would find. Files that were invalid
// before do not matter, because they do not prevent a push by hand either. Only kubeop.yaml matters always: while it is missing or invalid, the operator uses
// nothing of the repository, so it would never use the change.
func (r *Repositories) check(p *place, before, after *folder.Folder) error {
	reader, err := r.readerOf(p)
	if err != nil {
		return err
	}
	scope := tree.Scope{Repository: p.repository.Name, Tenant: p.repository.Spec.Tenant, Path: p.folder()}
	was := reader.Read(files.Of(before), scope, r.cache.tree(scope))
	now := reader.Read(files.Of(after), scope, was)
	for _, t := range []*tree.Tree{was, now} {
		if file, err := t.Unread(); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
	}
	r.cache.keepTree(scope, now, r.clock.Now())
	type wrong struct {
		file string
		code code.Code
		why  string
	}
	known := map[wrong]bool{}
	was.All(func(p tree.Problem) bool {
		known[wrong{p.File, p.Code, p.Why}] = true
		return true
	})
	version := path.Join(p.folder(), layout.VersionFile)
	var found []tree.Problem
	now.All(func(problem tree.Problem) bool {
		if problem.File == p.path() || problem.File == version || !known[wrong{problem.File, problem.Code, problem.Why}] {
			found = append(found, problem)
		}
		return len(found) < maxProblems
	})
	if len(found) > 0 {
		return &refusal{found}
	}
	return nil
}

// readerOf returns the reader of a repository. The limits and the clusters for that of a tenant are in its Tenant, as for the operator; in the platform repository each tenant.yaml has them.
func (r *Repositories) readerOf(p *place) (*tree.Reader, error) {
	reader, err := r.reader()
	if err != nil || p.ofPlatform() {
		return reader, err
	}
	reader = reader.Within(reader.Limits.With(&p.limits))
	reader.Placement = p.placement
	return reader, nil
}

// maxProblems is how many problems an answer has.
const maxProblems = 20

func isRefusal(err error) (*refusal, bool) {
	var r *refusal
	is := errors.As(err, &r)
	return r, is
}
