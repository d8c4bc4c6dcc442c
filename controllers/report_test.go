package controllers

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

// gitHost is a Git host like Gitea: it serves the repository of a team as acme/shop, and takes statuses of its commits.
type gitHost struct {
	*httptest.Server
	mux *http.ServeMux
	mu  sync.Mutex
	// statuses are those of each commit, as "state: description".
	statuses map[string][]string
	contexts map[string]bool
	// refuses, if not 0, is the answer to statuses.
	refuses  int
	requests int
	// pulls are the open pull requests, in JSON.
	pulls string
}

func newGitHost(t *testing.T, n *team) *gitHost {
	t.Helper()
	g := &gitHost{statuses: map[string][]string{}, contexts: map[string]bool{}, pulls: "[]"}
	to, err := url.Parse(n.repo.URL)
	if err != nil {
		t.Fatal(err)
	}
	repository := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host})
		r.Out.URL.Path = strings.Replace(r.In.URL.Path, "/acme/shop.git", to.Path, 1)
	}}
	mux := http.NewServeMux()
	mux.Handle("/acme/shop.git/", repository)
	mux.HandleFunc("POST /api/v1/repos/acme/shop/statuses/{commit}", g.status)
	mux.HandleFunc("GET /api/v1/repos/acme/shop/pulls", g.listPulls)
	g.mux, g.Server = mux, httptest.NewServer(mux)
	t.Cleanup(g.Close)
	return g
}

func (g *gitHost) status(w http.ResponseWriter, r *http.Request) {
	var in struct{ State, Context, Description string }
	err := json.NewDecoder(r.Body).Decode(&in)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests++
	_, _, authorized := r.BasicAuth()
	switch {
	case err != nil || !authorized:
		w.WriteHeader(http.StatusBadRequest)
	case g.refuses != 0:
		w.WriteHeader(g.refuses)
	default:
		g.contexts[in.Context] = true
		g.statuses[r.PathValue("commit")] = append(g.statuses[r.PathValue("commit")], in.State+": "+in.Description)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "{}")
	}
}

func (g *gitHost) listPulls(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, _, authorized := r.BasicAuth()
	switch {
	case g.refuses != 0:
		w.WriteHeader(g.refuses)
	case !authorized || r.URL.Query().Get("state") != "open":
		w.WriteHeader(http.StatusBadRequest)
	default:
		fmt.Fprint(w, g.pulls)
	}
}

// opens sets the open pull requests into main, each as "<number> <repository>:<branch>".
func (g *gitHost) opens(pulls ...string) {
	var all []string
	for _, p := range pulls {
		number, from, _ := strings.Cut(p, " ")
		repository, branch, _ := strings.Cut(from, ":")
		all = append(all, fmt.Sprintf(`{"number": %s, "state": "open", "head": {"ref": %q, "repo": {"full_name": %q}}, "base": {"ref": "main", "repo": {"full_name": "acme/shop"}}}`,
			number, branch, repository))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pulls = "[" + strings.Join(all, ", ") + "]"
}

func (g *gitHost) refuse(status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuses = status
}

// of returns the statuses of the commit in a revision.
func (g *gitHost) of(revision string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, hash, _ := strings.Cut(revision, "sha1:")
	return slices.Clone(g.statuses[hash])
}

// gotStatuses waits until the Git host got exactly these statuses of a commit, of which want has the beginnings.
func (n *team) gotStatuses(g *gitHost, revision string, want ...string) {
	n.t.Helper()
	n.eventually(func() error {
		if got := g.of(revision); !slices.EqualFunc(got, want, strings.HasPrefix) {
			return fmt.Errorf("the statuses of %s are %q, want %q", revision, got, want)
		}
		return nil
	})
}

// gotLastStatus waits until this is the last status of a commit that the Git host got.
func (n *team) gotLastStatus(g *gitHost, revision, want string) {
	n.t.Helper()
	n.eventually(func() error {
		if got := g.of(revision); len(got) == 0 || !strings.HasPrefix(got[len(got)-1], want) {
			return fmt.Errorf("the statuses of %s are %q, want %q", revision, got, want)
		}
		return nil
	})
}

// TestACommitStatusIsSentOnceForEachChange of what becomes of a commit.
func TestACommitStatusIsSentOnceForEachChange(t *testing.T) {
	n := newTeam(t, "reported")
	g := newGitHost(t, n)
	n.tenanted(func(s *v1alpha1.TenantSpec) {
		s.Repository.URL = g.URL + "/acme/shop.git"
		s.Repository.CommitStatus = &v1alpha1.CommitStatus{Type: "gitea"}
	})
	first := n.push(shopFiles("shop", "web", "api"))
	n.ready(n.app("shop", "web"), n.app("shop", "api"))
	n.gotStatuses(g, first, "pending: ", "success: applied: 2 apps are healthy")

	broken := n.push(map[string]string{"projects/shop/apps/web/app.yaml": "spec: {type: Nonsense}"})
	n.synced(broken, metav1.ConditionFalse)
	n.gotStatuses(g, broken, "failure: projects/shop/apps/web/app.yaml:1:")

	fixed := n.push(shopFiles("shop", "web"))
	n.ready(n.repository())
	n.gotLastStatus(g, fixed, "success: applied")
	repository := n.repository()
	n.eventually(func() error {
		err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(repository), repository)
		if got := repository.Status.CommitStatuses; err == nil && (len(got) != 1 || got[0].State != "success" || !strings.HasSuffix(fixed, got[0].Commit)) {
			return fmt.Errorf("the status has %+v", got)
		}
		return err
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	if want := map[string]bool{"kubeop/reported": true}; !cmp.Equal(g.contexts, want) {
		t.Errorf("the contexts are %v, want %v", g.contexts, want)
	}
	if g.requests > 5 {
		t.Errorf("%d requests for three commits", g.requests)
	}
}

// TestAReceiverGetsAFailureOnceAndItsEnd, and deliveries.
func TestAReceiverGetsAFailureOnceAndItsEnd(t *testing.T) {
	n := newTeam(t, "notified")
	received := make(chan string, 100)
	refuses := &atomic.Bool{}
	refuses.Store(true)
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil:
			t.Error(err)
		case refuses.Load():
			w.WriteHeader(http.StatusForbidden)
		default:
			received <- string(body)
		}
	}))
	t.Cleanup(chat.Close)
	receives := func(want string) {
		t.Helper()
		select {
		case got := <-received:
			if !strings.Contains(got, want) {
				t.Errorf("the chat got %s, want %q in it", got, want)
			}
		case <-time.After(60 * time.Second):
			t.Fatalf("nothing came, want %q\n%s", want, n.state())
		}
	}
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"), n.repository())
	n.secret("notified-chat", map[string]string{"address": chat.URL + "/hooks/s3cr3t"})
	n.tenanted(func(s *v1alpha1.TenantSpec) {
		s.Notifications = []v1alpha1.Notification{{Name: "chat", Type: "slack", SecretRef: v1alpha1.LocalSecretReference{Name: "notified-chat"}}}
	})
	n.push(map[string]string{"projects/shop/apps/web/app.yaml": fmt.Sprintf(rawFile, "web", "web", "bye")})
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	message := n.until(tenant, v1alpha1.NotificationFailedCondition, metav1.ConditionTrue, v1alpha1.AuthenticationFailedReason)
	if !strings.Contains(message, "notification chat: ") || strings.Contains(message, "s3cr3t") {
		t.Errorf("the message is %q", message)
	}
	refuses.Store(false)
	receives("notified/shop/web: Delivered")
	n.eventually(func() error { return n.has(v1alpha1.NotificationFailedCondition, tenant) })

	n.push(map[string]string{"projects/shop/apps/web/app.yaml": "spec: {type: Nonsense}"})
	receives("notified: InvalidTree: projects/shop/apps/web/app.yaml:1:")
	n.push(shopFiles("shop", "web"))
	receives("notified: Recovered: ")
}

// TestARefusedCommitStatusIsReported, and does not hold up what is delivered. A corrected Secret is used at once.
func TestARefusedCommitStatusIsReported(t *testing.T) {
	n := newTeam(t, "unreported")
	g := newGitHost(t, n)
	g.refuse(http.StatusForbidden)
	n.secret("unreported-token", map[string]string{"username": "bot", "password": "an-old-token"})
	n.tenanted(func(s *v1alpha1.TenantSpec) {
		s.Repository.URL = g.URL + "/acme/shop.git"
		s.Repository.CommitStatus = &v1alpha1.CommitStatus{Type: "gitea", SecretRef: &v1alpha1.LocalSecretReference{Name: "unreported-token"}}
	})
	pushed := n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"), n.repository())
	message := n.until(n.repository(), v1alpha1.CommitStatusFailedCondition, metav1.ConditionTrue, v1alpha1.AuthenticationFailedReason)
	for _, want := range []string{"write:repository", "/unreported-token", "403"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message is %q, want %q in it", message, want)
		}
	}
	if strings.Contains(message, "an-old-token") {
		t.Errorf("the message has the token: %s", message)
	}
	n.ready(n.repository())
	// After the third failure the next attempt comes 20 seconds later, unless the Secret hurries it.
	n.eventually(func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.requests < 3 {
			return fmt.Errorf("the Git host refused %d statuses, want 3", g.requests)
		}
		return nil
	})

	g.refuse(0)
	secret := &corev1.Secret{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: testenv.Namespace, Name: "unreported-token"}, secret); err != nil {
		t.Fatal(err)
	}
	secret.StringData = map[string]string{"password": "a-new-token"}
	if err := n.admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	n.gotLastStatus(g, pushed, "success: applied: 1 app is healthy")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the corrected Secret was used after %s", took)
	}
	n.eventually(func() error {
		repository := n.repository()
		err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(repository), repository)
		if condition := conditions.Get(repository, v1alpha1.CommitStatusFailedCondition); err == nil && condition != nil {
			err = fmt.Errorf("the condition is still there: %s", condition.Message)
		}
		return err
	})
}
