package controllers

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/plan"
	"github.com/kubeop/kubeop/controllers/plan/render"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// greeting is an app with one ConfigMap.
func greeting(text string) map[string]string {
	const app = "projects/shop/apps/web/"
	return map[string]string{
		app + "app.yaml":           "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\nspec: {type: Raw, raw: {path: manifests}}\n",
		app + "manifests/all.yaml": fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {greeting: %s}}\n", text),
	}
}

// TestABranchHasAPreviewUntilItIsDeleted pushes branches to a tenant's repository. The project itself stays as main declares it throughout.
func TestABranchHasAPreviewUntilItIsDeleted(t *testing.T) {
	n := newTeam(t, "previews")
	files := greeting("main")
	files["kubeop.yaml"] = layoutFile
	files["projects/shop/project.yaml"] = fmt.Sprintf(projectFile, "shop") + "spec:\n  previews: {branches: \"feature-*\", quota: {pods: \"7\"}}\n"
	revision := n.push(files)
	n.ready(n.app("shop", "web"))
	before := n.app("shop", "web")
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(before), before); err != nil {
		t.Fatal(err)
	}

	first := n.repo.PushBranch("feature-a", greeting("one"))
	n.reconcile(n.repository())
	n.greetsIn("shop-pr-feature-a", "one")
	n.ready(n.app("shop-pr-feature-a", "web"))
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace(n.name), Name: "shop-pr-feature-a"}}
	n.ready(project)
	if project.Spec.Quota.Pods().Value() != 7 || project.Spec.Previews != nil || project.Annotations[v1alpha1.BranchAnnotation] != "feature-a" {
		t.Errorf("the project of the preview is %v, %v", project.Annotations, project.Spec)
	}

	n.repo.PushBranch("feature-a", greeting("two"))
	broken := n.repo.PushBranch("feature-b", map[string]string{"projects/shop/apps/web/app.yaml": "kind: nothing\n"})
	n.reconcile(n.repository())
	n.greetsIn("shop-pr-feature-a", "two")
	n.eventually(func() error {
		repository := n.repository()
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(repository), repository); err != nil {
			return err
		}
		for _, p := range repository.Status.Previews {
			if p.Branch == "feature-b" && p.Revision == broken && strings.Contains(p.Message, "projects/shop/apps/web/app.yaml:1:") && strings.Contains(p.Message, "in branch feature-b") {
				return nil
			}
		}
		return fmt.Errorf("the previews are %v", repository.Status.Previews)
	})
	n.synced(revision, metav1.ConditionTrue)

	// A Git host that is away deletes nothing.
	n.repo.Vanish()
	n.reconcile(n.repository())
	n.until(n.repository(), v1alpha1.FetchedCondition, metav1.ConditionFalse, "")
	n.greetsIn("shop-pr-feature-a", "two")
	n.repo.Return()

	n.repo.DeleteBranch("feature-a")
	n.repo.DeleteBranch("feature-b")
	n.reconcile(n.repository())
	n.eventually(func() error {
		for _, name := range []string{"shop-pr-feature-a", "shop-pr-feature-b"} {
			err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.HomeNamespace(n.name), Name: name}, &v1alpha1.Project{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("project %s is still there: %w", name, err)
			}
		}
		return nil
	})
	after := n.app("shop", "web")
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil {
		t.Fatal(err)
	}
	if after.UID != before.UID || after.Generation != before.Generation || after.Annotations[v1alpha1.RevisionAnnotation] != before.Annotations[v1alpha1.RevisionAnnotation] {
		t.Errorf("the app of the project itself is %v, was %v; the preview had %s", after.ObjectMeta, before.ObjectMeta, first)
	}
	n.greetsIn("shop", "main")
}

// greetsIn waits until the ConfigMap of a project has a greeting.
func (n *team) greetsIn(project, want string) {
	n.t.Helper()
	n.eventually(func() error {
		o := &corev1.ConfigMap{}
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(n.name, project), Name: "web"}, o); err != nil {
			return err
		}
		if got := o.Data["greeting"]; got != want {
			return fmt.Errorf("project %s greets %q, want %q", project, got, want)
		}
		return nil
	})
}

// TestAPullRequestHasAPreviewUntilItIsClosed at a Git host like Gitea, which lists the open ones.
func TestAPullRequestHasAPreviewUntilItIsClosed(t *testing.T) {
	n := newTeam(t, "pulls")
	g := newGitHost(t, n)
	n.tenanted(func(s *v1alpha1.TenantSpec) {
		s.Repository.URL = g.URL + "/acme/shop.git"
		s.Repository.CommitStatus = &v1alpha1.CommitStatus{Type: "gitea"}
	})
	files := greeting("main")
	files["projects/shop/project.yaml"] = fmt.Sprintf(projectFile, "shop") + "spec:\n  previews: {pullRequests: true}\n"
	revision := n.push(files)
	n.ready(n.app("shop", "web"))

	n.repo.PushBranch("login", greeting("one"))
	g.opens("12 acme/shop:login", "13 stranger/shop:login")
	n.reconcile(n.repository())
	n.greetsIn("shop-pr-12", "one")
	n.saysOfBranch("login", "the pull request is from a fork")
	n.synced(revision, metav1.ConditionTrue)

	// A Git host whose API is away deletes nothing, and the branch is followed.
	g.refuse(http.StatusServiceUnavailable)
	n.repo.PushBranch("login", greeting("two"))
	n.reconcile(n.repository())
	n.saysOfBranch("", "listing the open pull requests of acme/shop: ", " answered 503")
	n.greetsIn("shop-pr-12", "two")
	g.refuse(0)

	g.opens()
	n.reconcile(n.repository())
	n.gone(&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace(n.name), Name: "shop-pr-12"}})
	n.greetsIn("shop", "main")
}

// TestThePlanOfAPreviewIsWhatThenRuns plans a branch before it matches the pattern of previews.
func TestThePlanOfAPreviewIsWhatThenRuns(t *testing.T) {
	n := newTeam(t, "foreseen")
	files := greeting("main")
	files["projects/shop/project.yaml"] = fmt.Sprintf(projectFile, "shop") + "spec:\n  previews: {branches: \"feature-*\"}\n"
	n.push(files)
	n.ready(n.app("shop", "web"), n.repository())
	n.repo.PushBranch("draft", greeting("draft"))
	planned := func() string {
		t.Helper()
		var lines []string
		made := n.planPreview("draft", "feature-a")
		for _, p := range made.Previews {
			lines = append(lines, p.String())
		}
		for _, c := range made.Changes {
			lines = append(lines, string(c.Action)+" "+c.Object+c.Why)
		}
		for _, a := range made.Apps {
			lines = append(lines, "app "+a.App+a.Failed+a.Unknown)
			for _, c := range a.Changes {
				lines = append(lines, string(c.Action)+" "+c.Object+c.Why)
			}
		}
		return strings.Join(append(lines, made.Problems...), "; ")
	}
	const about = "shop-pr-feature-a, a preview of shop, with the apps: web"
	want := about + "; create Project kubeop-foreseen/shop-pr-feature-a; create App kubeop-foreseen-shop-pr-feature-a/web; " +
		"app foreseen/shop-pr-feature-a/web; create ConfigMap/web"
	if got := planned(); got != want {
		t.Errorf("the plan is %q, want %q", got, want)
	}
	n.repo.PushBranch("feature-a", greeting("draft"))
	n.reconcile(n.repository())
	n.greetsIn("shop-pr-feature-a", "draft")
	n.ready(n.app("shop-pr-feature-a", "web"))
	if got := planned(); got != about {
		t.Errorf("afterwards the plan is %q, want no changes", got)
	}
}

// planPreview plans the preview that a branch of the repository would have under another name, as an administrator.
func (n *team) planPreview(branch, as string) *plan.Plan {
	n.t.Helper()
	auth := transport.Auth{Username: n.repo.User, Password: n.repo.Password}
	store := git.NewStore(n.t.TempDir(), &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	commit, err := store.Fetch(n.t.Context(), git.Source{URL: n.repo.URL, Auth: auth, Ref: &sourcev1.GitRepositoryRef{Branch: branch}})
	if err != nil {
		n.t.Fatal(err)
	}
	repository := n.repository()
	if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(repository), repository); err != nil {
		n.t.Fatal(err)
	}
	scratch := n.t.TempDir()
	planner := &plan.Planner{
		Client: n.admin, Direct: n.admin, Limits: budget.Default(), Clock: clock.RealClock{},
		Connect: func(ctx context.Context, folders plan.Folders) (*plan.Connection, error) {
			local, err := plan.Local(ctx, plan.DryRun(env.Config, true), n.admin, scratch)
			if err != nil {
				return nil, err
			}
			return &plan.Connection{Renderer: render.New(local, folders), Itself: true}, nil
		},
	}
	made, err := planner.PlanPreview(n.t.Context(), repository, plan.Commit{Revision: commit.Revision, Author: commit.Author, Root: commit.Root, Folder: commit.Folder}, as)
	if err != nil {
		n.t.Fatal(err)
	}
	return made
}

// TestThePreviewStatusNamesWhatTheClusterRefusesOfABranch pushes a branch with an app that a policy of the cluster refuses. Main stays
// applied, and so do the other apps of the branch.
func TestThePreviewStatusNamesWhatTheClusterRefusesOfABranch(t *testing.T) {
	n := newTeam(t, "unwanted")
	files := greeting("main")
	files["projects/shop/project.yaml"] = fmt.Sprintf(projectFile, "shop") + "spec:\n  previews: {branches: \"feature-*\"}\n"
	revision := n.push(files)
	n.ready(n.app("shop", "web"))
	n.refuseApp("unwanted")

	app := strings.ReplaceAll(greeting("")["projects/shop/apps/web/app.yaml"], "web", "unwanted")
	n.repo.PushBranch("feature-a", map[string]string{"projects/shop/apps/unwanted/app.yaml": app, "projects/shop/apps/unwanted/manifests/all.yaml": "{}\n"})
	n.reconcile(n.repository())
	n.saysOfBranch("feature-a", "projects/shop/apps/unwanted/app.yaml: in branch feature-a: ", "nobody wants it")
	n.ready(n.repository(), n.app("shop-pr-feature-a", "web"))
	n.synced(revision, metav1.ConditionTrue)
}

// refuseApp creates a policy that refuses the Apps of a name, and waits until it is in force.
func (n *team) refuseApp(name string) {
	n.t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: n.name + ".example.com"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				ResourceNames: []string{name},
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"apps"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "nobody wants it"}},
		},
	}
	n.create(policy)
	n.create(&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	})
	n.denied(func() error {
		app := n.app("shop", name)
		app.Spec.Type = v1alpha1.AppRaw
		app.Spec.Raw = &v1alpha1.RawSource{Path: "manifests"}
		return n.admin.Create(n.t.Context(), app, client.DryRunAll)
	}, "nobody wants it")
}

// saysOfBranch waits until the Repository's status says all this of the preview of a branch.
func (n *team) saysOfBranch(branch string, want ...string) {
	n.t.Helper()
	n.eventually(func() error {
		repository := n.repository()
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(repository), repository); err != nil {
			return err
		}
		for _, p := range repository.Status.Previews {
			missing := slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(p.Message, part) })
			if p.Branch == branch && !missing {
				return nil
			}
		}
		return fmt.Errorf("the previews are %v, want %q of %s", repository.Status.Previews, want, branch)
	})
}
