package repository

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/preview"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// withPreview is the tree of main, with the project shop, and the preview of the branch x, which has the apps web and api.
func (c *cluster) withPreview(main *tree.Tree) (both *tree.Tree, status v1alpha1.PreviewStatus) {
	c.t.Helper()
	branch := inMemory(files(map[string]string{"web": nginx, "api": nginx}))
	read, err := c.Tree.ReadPreview(branch, main.Scope, tree.Preview{
		Project: preview.Object(&v1alpha1.Project{Spec: v1alpha1.ProjectSpec{Previews: &v1alpha1.ProjectPreviews{}}}, "shop-pr-x"),
		Origin:  tree.Origin{Of: "shop", Branch: "x", Revision: "x@sha1:1"}, Adapt: func(*v1alpha1.App) {},
	}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return main.With([]*tree.Project{read}), v1alpha1.PreviewStatus{Project: "shop-pr-x", PreviewOf: "shop", Branch: "x", Revision: "x@sha1:1"}
}

// TestWhatTheClusterRefusesOfAPreviewIsNoProblemOfTheCommit: it is in status.previews, and tried again.
func TestWhatTheClusterRefusesOfAPreviewIsNoProblemOfTheCommit(t *testing.T) {
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.AppKind).GroupKind()
	for name, c := range map[string]struct {
		of   string
		err  error
		file string
		want string
		// again: only a later try can tell whether it is still refused. waits: the apps have no namespace.
		again, waits bool
	}{
		"nothing":              {},
		"an invalid app":       {of: "api", err: apierrors.NewInvalid(kind, "api", nil), want: "projects/shop/apps/api/app.yaml: in branch x: App.paas.kubeop.io \"api\" is invalid"},
		"beside a file":        {of: "api", err: apierrors.NewInvalid(kind, "api", nil), file: "a file is wrong", want: "a file is wrong; projects/shop/apps/api/app.yaml: in branch x: "},
		"a forbidden app":      {of: "api", err: apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("apps").GroupResource(), "api", errors.New("no")), want: "App/api: apps.paas.kubeop.io \"api\" is forbidden: no", again: true},
		"an invalid project":   {of: "shop-pr-x", err: apierrors.NewInvalid(kind, "shop-pr-x", nil), want: "projects/shop/project.yaml: App.paas.kubeop.io \"shop-pr-x\" is invalid", waits: true, again: true},
		"a project that waits": {want: "App kubeop-acme-shop-pr-x/api waits for its namespace, or for one of its name to be gone: `kubectl describe project shop-pr-x -n kubeop-acme` says why (and 1 more)", waits: true, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			k := reading(t, acme(), namespace("kubeop-acme"), namespace("kubeop-acme-shop"))
			if !c.waits {
				k.create(namespace("kubeop-acme-shop-pr-x"))
			}
			k.refuses = map[string]error{c.of: c.err}
			both, status := k.withPreview(declaring(t, "shop/web"))
			s, end := k.pass(nil, both, "main@sha1:1")
			k.clock.Step(stuck)
			s.previews.Status = []v1alpha1.PreviewStatus{{Branch: "y", Message: "it is old"}, status}
			s.previews.Status[1].Message = c.file
			if end != "done" || s.problemCount() != 0 {
				t.Errorf("the pass is %s, with %d problems", end, s.problemCount())
			}
			if end := steptest.Outcome(t, k.collect(t.Context(), s)); end != "done" {
				t.Errorf("afterwards it is %s", end)
			}
			got := s.previewStatuses(k.clock.Now())
			if got[0].Message != "it is old" || !strings.HasPrefix(got[1].Message, c.want) || c.want == "" && got[1].Message != "" {
				t.Errorf("the previews are %v, want %q", got, c.want)
			}
			if again := s.previewsLeft(); again != c.again {
				t.Errorf("tried again: %t, want %t", again, c.again)
			}
			if s.previews.Status[1].Message != c.file {
				t.Errorf("the previews that were read are now %v", s.previews.Status)
			}
		})
	}
}
