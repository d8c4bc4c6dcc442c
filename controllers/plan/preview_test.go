package plan

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestThePreviewOfABranchIsPlanned as the projects in the cluster want it, beside the previews that run. The commit's own projects are not in the
// plan.
func TestThePreviewOfABranchIsPlanned(t *testing.T) {
	const image = "spec: {type: Image, host: %s, image: {reference: nginx:1, ports: [{name: http, port: 80}]}}\n"
	branch := map[string]string{
		"projects/shop/project.yaml": "", "projects/shop/apps/web/app.yaml": strings.Replace(image, "%s", "shop.example.com", 1),
		"projects/shop/apps/api/app.yaml": "spec: {type: Image, image: {reference: nginx:1}}\n", "projects/other/project.yaml": "",
	}
	parent := func(spec v1alpha1.ProjectPreviews) *v1alpha1.Project {
		p := newProject("shop")
		p.Spec.Previews = &spec
		return p
	}
	running := func(name, branch string) *v1alpha1.Project {
		p := newProject(name)
		p.Spec = v1alpha1.ProjectSpec{DeletionPolicy: v1alpha1.DeletionDelete, Pace: v1alpha1.Pace{Interval: metav1.Duration{Duration: 10 * time.Minute}}}
		p.Annotations = map[string]string{v1alpha1.PreviewOfAnnotation: "shop", v1alpha1.BranchAnnotation: branch}
		return p
	}
	old := newApp("shop-pr-7", "old")
	old.Annotations = running("", "login").Annotations
	for name, tc := range map[string]struct {
		of    string
		there []client.Object
		// files are those of the branch that are not as above.
		files map[string]string
		fails string
		// previews, changes and problems are what the plan has.
		previews, changes, problems []string
	}{
		"a branch": {
			of: "login", there: []client.Object{parent(v1alpha1.ProjectPreviews{Branches: "*", Host: "{branch}-{host}"})},
			previews: []string{"shop-pr-login, a preview of shop, with the apps: api, web at login-shop.example.com"},
			changes:  []string{"create Project kubeop-acme/shop-pr-login", "create App kubeop-acme-shop-pr-login/api", "create App kubeop-acme-shop-pr-login/web"},
		},
		"a pattern that makes one host of all": {
			of: "login", there: []client.Object{parent(v1alpha1.ProjectPreviews{Branches: "*", Host: "{branch}.example.com"})},
			files:    map[string]string{"projects/shop/apps/api/app.yaml": strings.Replace(image, "%s", "api.example.com", 1)},
			previews: []string{"shop-pr-login, a preview of shop, with the apps: api at login.example.com, web at login.example.com"},
			changes:  []string{"create Project kubeop-acme/shop-pr-login", "create App kubeop-acme-shop-pr-login/api", "create App kubeop-acme-shop-pr-login/web"},
			problems: []string{`apps api and web both have login.example.com, because spec.previews.host in project.yaml makes one host of all: write {host} into it in Git, such as "{branch}-{host}"`},
		},
		"another branch": {
			of: "login", there: []client.Object{parent(v1alpha1.ProjectPreviews{Branches: "feature/*"})},
			fails: "login has no preview: spec.previews of no project of repository acme matches it",
		},
		"a branch, where pull requests have previews": {
			of: "login", there: []client.Object{parent(v1alpha1.ProjectPreviews{PullRequests: true})}, fails: "login has no preview: spec.previews of no project of repository acme matches it",
		},
		"too many": {
			of: "login", there: []client.Object{parent(v1alpha1.ProjectPreviews{Branches: "*", Max: 1}), running("shop-pr-a", "a")},
			previews: []string{"shop-pr-login, a preview of shop: there is none, because there are 1 previews, as many as spec.previews.max allows: delete a branch or close a pull request, or raise max"},
		},
		"a pull request whose preview runs": {
			of: "7", there: []client.Object{parent(v1alpha1.ProjectPreviews{PullRequests: true, Max: 1}), running("shop-pr-7", "login"), old},
			previews: []string{"shop-pr-7, a preview of shop, with the apps: api, web"},
			changes:  []string{"create App kubeop-acme-shop-pr-7/api", "create App kubeop-acme-shop-pr-7/web", "delete App kubeop-acme-shop-pr-7/old"},
		},
		"a new pull request beside another": {
			of: "8", there: []client.Object{parent(v1alpha1.ProjectPreviews{PullRequests: true, Max: 1}), running("shop-pr-7", "login")},
			previews: []string{"shop-pr-8, a preview of shop: there is none, because there are 1 previews, as many as spec.previews.max allows: delete a branch or close a pull request, or raise max"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(branch)
			maps.Copy(files, tc.files)
			c := compared(t, v1alpha1.TenantLimits{}, files, tc.there...)
			c.commit.Revision = "login@sha1:2"
			p := &Planner{Clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0))}
			made, err := p.previews(t.Context(), c, tc.of)
			if tc.fails != "" {
				if err == nil || err.Error() != tc.fails {
					t.Errorf("got %v, want %s", err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.problems, made.Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			var changes []string
			for _, change := range made.Changes {
				changes = append(changes, string(change.Action)+" "+change.Object)
			}
			if diff := cmp.Diff(tc.changes, changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if len(made.Previews) != len(tc.previews) {
				t.Fatalf("the previews are %v, want %q", made.Previews, tc.previews)
			}
			for i, want := range tc.previews {
				if got := made.Previews[i].String(); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
			if applied := len(c.apps); applied != strings.Count(strings.Join(changes, " "), "create App") {
				t.Errorf("%d apps are rendered", applied)
			}
		})
	}
}
