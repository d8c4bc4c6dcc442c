package controllers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

// pulls are the open pull requests of a gitHost, and their comments.
type pulls struct {
	*gitHost
	// open are the pull requests as the API lists them, and comments has their comments by number.
	open     []map[string]any
	comments map[string][]string
	written  int
	// forbids: the token may not write comments.
	forbids bool
}

func newPulls(t *testing.T, n *team) *pulls {
	t.Helper()
	p := &pulls{gitHost: newGitHost(t, n), comments: map[string][]string{}}
	locked := func(answer func(w http.ResponseWriter, r *http.Request) any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if err := json.NewEncoder(w).Encode(answer(w, r)); err != nil {
				t.Error(err)
			}
		}
	}
	const comments = "/api/v1/repos/acme/shop/issues/{number}/comments"
	p.mux.HandleFunc("GET "+comments, locked(func(_ http.ResponseWriter, r *http.Request) any {
		list := []map[string]any{}
		for i, body := range p.comments[r.PathValue("number")] {
			list = append(list, map[string]any{"id": i + 1, "body": body})
		}
		return list
	}))
	p.mux.HandleFunc("DELETE "+comments+"/{id}", locked(func(_ http.ResponseWriter, r *http.Request) any {
		p.comments[r.PathValue("number")] = nil
		return nil
	}))
	p.mux.HandleFunc("POST "+comments, locked(func(w http.ResponseWriter, r *http.Request) any {
		var in struct{ Body string }
		if p.forbids {
			w.WriteHeader(http.StatusForbidden)
			return map[string]string{"message": "no"}
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		p.written++
		p.comments[r.PathValue("number")] = append(p.comments[r.PathValue("number")], in.Body)
		w.WriteHeader(http.StatusCreated)
		return map[string]any{}
	}))
	return p
}

// propose opens a pull request of a branch of a repository into main, or gives it another commit.
func (p *pulls) propose(number int, revision, from string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	branch, hash, _ := strings.Cut(revision, "@sha1:")
	p.open = slices.DeleteFunc(p.open, func(open map[string]any) bool { return open["number"] == number })
	p.open = append(p.open, map[string]any{
		"number": number, "state": "open", "title": "Change",
		"head": map[string]any{"ref": branch, "sha": hash, "repo": map[string]any{"full_name": from}},
		"base": map[string]any{"ref": "main", "repo": map[string]any{"full_name": "acme/shop"}},
	})
	p.list()
}

// close closes all pull requests.
func (p *pulls) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = nil
	p.list()
}

// list has the API list what is open.
func (p *pulls) list() {
	text, err := json.Marshal(p.open)
	if err != nil {
		panic(err)
	}
	p.pulls = string(text)
}

func (p *pulls) forbid(forbids bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forbids = forbids
}

// plans waits until the status has these plans, as "number revision message", of which want has the beginnings.
func (n *team) plans(want ...string) {
	n.t.Helper()
	n.eventually(func() error {
		repository := n.repository()
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(repository), repository); err != nil {
			return err
		}
		var got []string
		for _, plan := range repository.Status.Plans {
			got = append(got, fmt.Sprint(plan.Number, " ", plan.Revision, " ", plan.Message))
		}
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			return fmt.Errorf("the plans are %q, want %q", got, want)
		}
		return nil
	})
}

// of returns the only comment on a pull request.
func (p *pulls) of(number int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if comments := p.comments[fmt.Sprint(number)]; len(comments) == 1 {
		return comments[0]
	}
	return fmt.Sprintf("%q", p.comments[fmt.Sprint(number)])
}

const scaled = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: %d, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}"

// TestAPullRequestGetsItsPlanAsAComment, and nothing of it is written to the cluster. One from a fork gets none, a new commit another, and a closed
// one leaves the status.
func TestAPullRequestGetsItsPlanAsAComment(t *testing.T) {
	n := newTeam(t, "planned")
	p := newPulls(t, n)
	n.tenanted(func(s *v1alpha1.TenantSpec) {
		s.Repository.URL, s.Repository.Previews = p.URL+"/acme/shop.git", v1alpha1.PreviewsPlan
		s.Repository.CommitStatus = &v1alpha1.CommitStatus{Type: "gitea"}
	})
	main := n.push(n.shop("web", fmt.Sprintf(scaled, 0)))
	n.applied("web", main)
	before := n.settled()

	files := n.shop("web", fmt.Sprintf(scaled, 2))
	files["projects/shop/apps/api/app.yaml"] = fmt.Sprintf(rawFile, "api", "api", "hello")
	first := n.repo.PushBranch("scale", files)
	p.propose(7, first, "acme/shop")
	p.propose(8, first, "eve/shop")
	n.reconcile(n.repository())
	n.plans("7 "+first+" 2 to create, 2 to update", "8  not planned: it comes from another repository")
	want := "<!-- kubeop plan of planned -->\n### kubeop plan for `planned`: 2 to create, 2 to update\n"
	got := p.of(7)
	for _, part := range []string{want, "+ App kubeop-planned-shop/api", "! Deployment/web\n-   /spec/replicas: 0\n+   /spec/replicas: 2\n", "App planned/shop/api</summary>", "+ ConfigMap/api"} {
		if !strings.Contains(got, part) {
			t.Errorf("the comment does not have %q:\n%s", part, got)
		}
	}
	if p.of(8) != "[]" {
		t.Errorf("the pull request of a fork has the comment %s", p.of(8))
	}
	if diff := cmp.Diff(before, n.resourceVersions()); diff != "" {
		t.Errorf("a plan changed objects (-before +after):\n%s", diff)
	}
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(n.app("shop", "api")), n.app("shop", "api")); !apierrors.IsNotFound(err) {
		t.Errorf("a planned app: %v", err)
	}

	broken := n.repo.PushBranch("scale", map[string]string{"projects/shop/apps/api/app.yaml": "spec: {type: Nonsense}"})
	p.propose(7, broken, "acme/shop")
	n.reconcile(n.repository())
	n.plans("7 "+broken+" ", "8 ")
	if got := p.of(7); !strings.Contains(got, "projects/shop/apps/api/app.yaml:1:") {
		t.Errorf("the comment does not have the problem of the file:\n%s", got)
	}
	p.close()
	n.reconcile(n.repository())
	n.plans()
	if p.written != 2 {
		t.Errorf("%d comments were written for two commits", p.written)
	}
	n.synced(main, metav1.ConditionTrue)
}

// TestARefusedPlanIsReported, and written when the token may. It delays nothing that is delivered.
func TestARefusedPlanIsReported(t *testing.T) {
	n := newTeam(t, "uncommented")
	p := newPulls(t, n)
	p.forbid(true)
	n.secret("uncommented-token", map[string]string{"username": "bot", "password": "an-old-token"})
	n.tenanted(func(s *v1alpha1.TenantSpec) {
		s.Repository.URL, s.Repository.Previews = p.URL+"/acme/shop.git", v1alpha1.PreviewsPlan
		s.Repository.CommitStatus = &v1alpha1.CommitStatus{Type: "gitea", SecretRef: &v1alpha1.LocalSecretReference{Name: "uncommented-token"}}
	})
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"), n.repository())
	branch := n.repo.PushBranch("api", map[string]string{"projects/shop/apps/api/app.yaml": fmt.Sprintf(rawFile, "api", "api", "hello")})
	p.propose(3, branch, "acme/shop")
	n.reconcile(n.repository())
	message := n.until(n.repository(), v1alpha1.PlanCommentFailedCondition, metav1.ConditionTrue, v1alpha1.AuthenticationFailedReason)
	for _, want := range []string{"write:issue", "/uncommented-token", "403"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message is %q, want %q in it", message, want)
		}
	}
	n.plans("3  2 to create; it could not be written to the pull request: ")
	n.ready(n.repository())
	p.forbid(false)
	secret := &corev1.Secret{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: testenv.Namespace, Name: "uncommented-token"}, secret); err != nil {
		t.Fatal(err)
	}
	secret.StringData = map[string]string{"password": "a-new-token"}
	if err := n.admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	n.plans("3 " + branch + " 2 to create")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the corrected Secret was used after %s", took)
	}
	n.eventually(func() error { return n.has(v1alpha1.PlanCommentFailedCondition, n.repository()) })
}
