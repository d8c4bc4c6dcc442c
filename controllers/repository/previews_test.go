package repository

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/credentials"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/gitops/preview"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// withPreview is the tree of main, with the project shop, and the preview of the branch x, which has the apps web and api.
func (c *cluster) withPreview(main *tree.Tree) (both *tree.Tree, status v1alpha1.PreviewStatus) {
	c.t.Helper()
	branch := inMemory(acmeFiles(map[string]string{"web": nginx, "api": nginx}))
	read, err := c.Tree.ReadPreview(branch, main.Scope, tree.Preview{
		Project: preview.Object(&v1alpha1.Project{Spec: v1alpha1.ProjectSpec{Previews: &v1alpha1.ProjectPreviews{}}}, "shop-pr-x"),
		Origin:  tree.Origin{Of: "shop", Branch: "x", Revision: "x@sha1:1", Author: "Bob"}, Adapt: func(*v1alpha1.App) {},
	}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return main.With([]*tree.Project{read}), v1alpha1.PreviewStatus{Project: "shop-pr-x", PreviewOf: "shop", Branch: "x", Revision: "x@sha1:1"}
}

// TestARefusedPreviewIsNoProblemOfItsCommit: status.previews has the refusal, and the preview is tried again.
func TestARefusedPreviewIsNoProblemOfItsCommit(t *testing.T) {
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.AppKind).GroupKind()
	for name, c := range map[string]struct {
		of   string
		err  error
		file string
		want string
		// again: only a later try shows whether it is still refused. waits: the apps have no namespace.
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
			there := []client.Object{acme(), namespace("kubeop-acme"), namespace("kubeop-acme-shop")}
			if !c.waits {
				there = append(there, namespace("kubeop-acme-shop-pr-x")) // Before the watch begins, which would show it later.
			}
			k := reading(t, there...)
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

// TestAnObjectOfAPreviewIsOfItsBranch: its revision and its author are those of the branch, not of the commit.
func TestAnObjectOfAPreviewIsOfItsBranch(t *testing.T) {
	k := reading(t)
	both, _ := k.withPreview(declaring(t, "shop/web"))
	s := k.scope(both)
	s.commit.Author = "Ann"
	for path, want := range map[string]string{"acme/shop/web": "main@sha1:2 Ann", "acme/shop-pr-x/web": "x@sha1:1 Bob"} {
		if got := s.origin(ref(path)).Revision + " " + s.origin(ref(path)).Author; got != want {
			t.Errorf("%s is of %s, want %s", path, got, want)
		}
	}
}

// TestTheErrorNamesWhatListingPullRequestsNeeds, without asking any Git host.
func TestTheErrorNamesWhatListingPullRequestsNeeds(t *testing.T) {
	k := newCluster(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: "git"}, Data: map[string][]byte{"username": []byte("x"), "password": []byte("y")}})
	k.credentials = credentials.Cache{Reader: k.api, Metadata: k.api, Named: func(context.Context, string) bool { return true }, Clock: k.clock}
	k.Network = &transport.Network{}
	for name, c := range map[string]struct {
		spec v1alpha1.RepositorySpec
		want []string
	}{
		"no Secret": {v1alpha1.RepositorySpec{URL: "https://github.com/acme/shop"}, []string{"holds no token", "secretRef"}},
		"an unknown type": {v1alpha1.RepositorySpec{URL: "https://code.example.com/acme/shop", SecretRef: &v1alpha1.LocalSecretReference{Name: "git"}},
			[]string{"code.example.com does not say which Git host it is", "commitStatus of the repository names its type"}},
		"no such Secret": {v1alpha1.RepositorySpec{URL: "https://github.com/acme/shop", SecretRef: &v1alpha1.LocalSecretReference{Name: "none"}}, []string{"none", "does not exist"}},
	} {
		_, err := k.pullRequests(t.Context(), &v1alpha1.Repository{Spec: c.spec})
		for _, part := range c.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, want %q in it", name, err, part)
			}
		}
	}
}
