package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declaredby"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	gitreport "github.com/kubeop/kubeop/gitops/report"
)

const (
	c1 = "1111111111111111111111111111111111111111"
	c2 = "2222222222222222222222222222222222222222"
	c3 = "3333333333333333333333333333333333333333"
)

// fixture is a Reporter with a cluster and a Git host.
type fixture struct {
	*Reporter
	t     *testing.T
	clock *clocktesting.FakeClock
	kube  client.Client
	host  *httptest.Server

	mu sync.Mutex
	// sent are the statuses as "<commit> <state>: <description>"; answer is that of the Git host.
	sent   []string
	answer int
	woken  int
	// contexts are the names of all statuses.
	contexts []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	b := &fixture{t: t, clock: clocktesting.NewFakeClock(time.Now()), answer: http.StatusCreated}
	b.host = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ State, Description, Context string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.sent = append(b.sent, fmt.Sprintf("%.2s %s: %s", r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], in.State, in.Description))
		b.contexts = append(b.contexts, in.Context)
		w.WriteHeader(b.answer)
	}))
	t.Cleanup(b.host.Close)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	build := fake.NewClientBuilder().WithScheme(scheme)
	for _, o := range []client.Object{&v1alpha1.Tenant{}, &v1alpha1.Project{}, &v1alpha1.App{}} {
		build.WithIndex(o, declaredby.Index, declaredby.Repository)
	}
	b.kube = build.Build()
	b.start()
	return b
}

// start begins with a new process, which knows only the cluster.
func (b *fixture) start() {
	b.Reporter = &Reporter{
		Reader: b.kube, Queue: gitreport.NewQueue(clock.RealClock{}, nil), Clock: b.clock,
		Network: &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Auth: func(context.Context, *v1alpha1.Repository) (transport.Auth, error) {
			return transport.Auth{BearerToken: "a-token"}, nil
		},
		Wake: b.wake,
	}
}

func (b *fixture) wake(name types.NamespacedName) {
	if (name != types.NamespacedName{Name: "acme"}) {
		b.t.Errorf("%v was woken", name)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.woken++
}

// repository creates or changes the Repository acme.
func (b *fixture) repository(change func(*v1alpha1.Repository)) *v1alpha1.Repository {
	b.t.Helper()
	r := &v1alpha1.Repository{}
	err := b.kube.Get(b.t.Context(), client.ObjectKey{Name: "acme"}, r)
	if err != nil {
		r = &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "u1"}, Spec: v1alpha1.RepositorySpec{
			URL: b.host.URL + "/acme/shop.git", CommitStatus: &v1alpha1.CommitStatus{Type: "gitea"},
		}}
		change(r)
		err = b.kube.Create(b.t.Context(), r)
	} else {
		change(r)
		err = b.kube.Update(b.t.Context(), r)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func attempted(commit string, applied bool) func(*v1alpha1.Repository) {
	return func(r *v1alpha1.Repository) {
		r.Status.LastAttemptedRevision = "main@sha1:" + commit
		if applied {
			r.Status.LastAppliedRevision = r.Status.LastAttemptedRevision
		}
	}
}

// app creates or changes an App of a commit.
func (b *fixture) app(name, commit string, ready metav1.ConditionStatus, message string) {
	b.t.Helper()
	a := &v1alpha1.App{}
	err := b.kube.Get(b.t.Context(), client.ObjectKey{Namespace: "kubeop-acme-shop", Name: name}, a)
	a.Annotations = map[string]string{
		v1alpha1.FolderAnnotation: "projects/shop/apps/" + name, v1alpha1.TreeAnnotation: commit, v1alpha1.RevisionAnnotation: "main@sha1:" + commit,
	}
	a.Status.ObservedTree = commit
	a.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: ready, Reason: "Unhealthy", Message: message, LastTransitionTime: metav1.NewTime(b.clock.Now())}}
	if err == nil {
		err = b.kube.Update(b.t.Context(), a)
	} else {
		a.Namespace, a.Name, a.Labels = "kubeop-acme-shop", name, map[string]string{v1alpha1.RepositoryLabel: "acme"}
		err = b.kube.Create(b.t.Context(), a)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// look reconciles after a time, and waits until exactly these statuses were sent since the last look. It returns when to look again.
func (b *fixture) look(after time.Duration, want ...string) time.Duration {
	b.t.Helper()
	b.clock.Step(after)
	b.mu.Lock()
	b.sent, b.woken = nil, 0
	b.mu.Unlock()
	result, err := b.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "acme"}})
	if err != nil {
		b.t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		b.mu.Lock()
		got, woken := slices.Sorted(slices.Values(b.sent)), b.woken // Two commits are independent of each other.
		b.mu.Unlock()
		if slices.Equal(got, want) && woken == len(want) {
			break
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("sent are %q, want %q; the Repository was woken %d times", got, want, woken)
		}
		time.Sleep(time.Millisecond)
	}
	if len(want) == 0 {
		time.Sleep(30 * time.Millisecond)
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.sent) > 0 {
			b.t.Fatalf("sent are %q, want nothing", b.sent)
		}
	}
	return result.RequeueAfter
}

// record writes what the Git host accepted into the status, as the Repository's Reconcile does.
func (b *fixture) record() {
	b.t.Helper()
	b.repository(func(r *v1alpha1.Repository) { _, r.Status.CommitStatuses = b.StatusOf(r, "v1") })
}

func TestACommitIsReportedFromFetchToHealth(t *testing.T) {
	b := newFixture(t)
	b.repository(attempted(c1, false))
	b.look(0, "11 pending: kubeop applies it")
	b.look(time.Second)
	b.app("web", c1, metav1.ConditionUnknown, "")
	b.repository(attempted(c1, true))
	b.look(time.Minute) // A mere change of the text of a commit in progress is not sent.
	b.app("web", c1, metav1.ConditionTrue, "")
	b.look(time.Second, "11 success: applied: 1 app is healthy")
	b.app("web", c1, metav1.ConditionFalse, "a node was lost")
	b.look(time.Hour) // What happens to an app after its delivery does not change the commit's status.
}

// TestARestartSendsNothingAgain: the status of the Repository says what the Git host shows.
func TestARestartSendsNothingAgain(t *testing.T) {
	b := newFixture(t)
	b.app("web", c1, metav1.ConditionFalse, "no image")
	b.repository(attempted(c1, true))
	b.look(0, "11 failure: projects/shop/apps/web/app.yaml: Unhealthy: no image")
	b.record()
	b.start()
	b.look(time.Minute)
	b.app("web", c1, metav1.ConditionTrue, "")
	b.look(time.Minute, "11 success: applied: 1 app is healthy")
	b.record()
	b.start()
	b.look(time.Minute)
	want := []v1alpha1.ReportedStatus{{Commit: c1, State: "success", Description: "applied: 1 app is healthy"}}
	if diff := cmp.Diff(want, b.repository(func(*v1alpha1.Repository) {}).Status.CommitStatuses); diff != "" {
		t.Error(diff)
	}
}

// TestCommitsThatAreReplacedAreNotLeftInProgress: each gets an end, or goes on while apps are at work on it.
func TestCommitsThatAreReplacedAreNotLeftInProgress(t *testing.T) {
	b := newFixture(t)
	b.app("web", c1, metav1.ConditionUnknown, "")
	b.repository(attempted(c1, true))
	b.look(0, "11 pending: waits for projects/shop/apps/web/app.yaml")
	b.app("api", c2, metav1.ConditionUnknown, "")
	b.repository(attempted(c2, true))
	b.look(2*time.Second, "22 pending: waits for projects/shop/apps/api/app.yaml")
	b.record()
	b.start() // A restart does not forget the older one.
	b.look(0)
	b.app("web", c1, metav1.ConditionTrue, "")
	b.look(time.Minute, "11 success: applied: 1 app is healthy")
	b.app("api", c3, metav1.ConditionUnknown, "")
	b.repository(attempted(c3, true))
	b.mu.Lock()
	b.sent, b.woken = nil, 0
	b.mu.Unlock()
	b.look(2*time.Second, "22 error: replaced by 33333333 before it was healthy", "33 pending: waits for projects/shop/apps/api/app.yaml")
}

// TestAFailureThatChangesItsTextIsSentRarely: hosts bound the statuses of a commit.
func TestAFailureThatChangesItsTextIsSentRarely(t *testing.T) {
	b := newFixture(t)
	b.app("web", c1, metav1.ConditionFalse, "text 0")
	b.repository(attempted(c1, true))
	b.look(0, "11 failure: projects/shop/apps/web/app.yaml: Unhealthy: text 0")
	sent := 0
	for i := range 24 * 60 {
		b.app("web", c1, metav1.ConditionFalse, fmt.Sprint("text ", i+1))
		b.clock.Step(time.Minute)
		b.mu.Lock()
		b.sent = nil
		b.mu.Unlock()
		if _, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "acme"}}); err != nil {
			t.Fatal(err)
		}
		b.Reporter.mu.Lock()
		if b.records["acme"].asked[c1].Description == fmt.Sprint("projects/shop/apps/web/app.yaml: Unhealthy: text ", i+1) {
			sent++
		}
		b.Reporter.mu.Unlock()
	}
	if sent < 10 || sent > 40 {
		t.Errorf("%d statuses in a day, want a few", sent)
	}
}

func TestAHeldCommitIsReported(t *testing.T) {
	b := newFixture(t)
	b.repository(func(r *v1alpha1.Repository) {
		attempted(c1, true)(r)
		r.Status.HeldRevision = "main@sha1:" + c2
		r.Status.CommitStatuses = []v1alpha1.ReportedStatus{{Commit: c1, State: "success"}}
		conditions.MarkFalse(r, v1alpha1.AcceptedCondition, v1alpha1.HistoryRewrittenReason, "it does not descend")
	})
	b.look(0, "22 failure: HistoryRewritten: it does not descend")
	b.look(time.Minute)
	b.repository(func(r *v1alpha1.Repository) { // Someone confirmed it.
		attempted(c2, true)(r)
		r.Status.HeldRevision = ""
	})
	b.look(time.Minute, "22 success: applied")
}

func TestAStatusIsSentAgainWhenItsTargetChanges(t *testing.T) {
	b := newFixture(t)
	b.repository(attempted(c1, true))
	b.look(0, "11 pending: kubeop applies it")
	b.look(time.Minute, "11 success: applied")
	b.look(time.Minute)
	b.repository(func(r *v1alpha1.Repository) { r.Spec.CommitStatus.Context = "kubeop-staging/acme" })
	b.look(2*time.Second, "11 success: applied")
	b.repository(func(r *v1alpha1.Repository) {
		r.Spec.CommitStatus.SecretRef = &v1alpha1.LocalSecretReference{Name: "staging"}
	})
	b.look(2*time.Second, "11 success: applied")
	b.repository(func(r *v1alpha1.Repository) {
		r.Spec.CommitStatus.SecretRef = &v1alpha1.LocalSecretReference{Name: "other"}
	})
	b.look(2*time.Second, "11 success: applied")
	b.look(2 * time.Second)
	b.repository(func(r *v1alpha1.Repository) { r.Spec.CommitStatus = nil })
	b.look(time.Minute)
	if note, statuses := b.StatusOf(b.repository(attempted(c2, true)), ""); note.Status != "" || statuses != nil {
		t.Errorf("it still says %+v and %+v", note, statuses)
	}
	b.look(time.Minute)
}

func TestARefusalIsACondition(t *testing.T) {
	b := newFixture(t)
	b.answer = http.StatusForbidden
	b.repository(attempted(c1, false))
	b.look(0, "11 pending: kubeop applies it")
	r := b.repository(func(*v1alpha1.Repository) {})
	note, accepted := b.StatusOf(r, "v1")
	if note.Status != metav1.ConditionTrue || note.Reason != v1alpha1.AuthenticationFailedReason || !strings.Contains(note.Message, "write:repository") {
		t.Errorf("the condition is %+v", note)
	}
	if len(accepted) != 0 {
		t.Errorf("accepted are %+v, although the Git host refused", accepted)
	}

	b.start()
	if again, _ := b.StatusOf(r, "v1"); again != step.Stays(note.Condition) {
		t.Errorf("after a restart the condition is %+v", again)
	}
	b.mu.Lock()
	b.answer = http.StatusCreated
	b.mu.Unlock()
	b.look(time.Second, "11 pending: kubeop applies it")
	if note, _ := b.StatusOf(r, "v1"); note.Status != "" || note.Stays {
		t.Errorf("the condition stays: %+v", note)
	}
}

// TestOneFailureOfTheNetworkIsNoCondition: most end by themselves.
func TestOneFailureOfTheNetworkIsNoCondition(t *testing.T) {
	b := newFixture(t)
	r := b.repository(attempted(c1, false))
	b.StatusOf(r, "v1")
	for i := 1; i <= patience; i++ {
		b.done("acme", r.UID, v1alpha1.ReportedStatus{Commit: c1}, errors.New("connection refused"))
		note, _ := b.StatusOf(r, "v1")
		if got, want := note.Status == metav1.ConditionTrue, i == patience; got != want {
			t.Errorf("after %d failures the condition is %+v", i, note)
		}
	}
}

// TestAChangedTextWaitsAfterAnotherState: the pause between two texts begins with the state, which is sent at once.
func TestAChangedTextWaitsAfterAnotherState(t *testing.T) {
	b := newFixture(t)
	b.app("web", c1, metav1.ConditionFalse, "text 0")
	b.repository(attempted(c1, true))
	b.look(0, "11 failure: projects/shop/apps/web/app.yaml: Unhealthy: text 0")
	b.app("web", c1, metav1.ConditionFalse, "text 1")
	if again := b.look(firstRepeat - time.Second); again != time.Second {
		t.Errorf("it looks again after %s, want 1s", again)
	}
	b.look(time.Second, "11 failure: projects/shop/apps/web/app.yaml: Unhealthy: text 1")
}

func TestAStatusIsNamedAfterItsRepositoryUnlessTheSpecNamesIt(t *testing.T) {
	b := newFixture(t)
	b.repository(attempted(c1, false))
	b.look(0, "11 pending: kubeop applies it")
	b.repository(func(r *v1alpha1.Repository) { r.Spec.CommitStatus.Context = "delivery" })
	b.look(time.Second, "11 pending: kubeop applies it")
	b.mu.Lock()
	defer b.mu.Unlock()
	if diff := cmp.Diff([]string{"kubeop/acme", "delivery"}, b.contexts); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// TestAStatusDoesNotShowTheToken: the text of an app may quote what a Git host answered, and everybody may read the status of a commit.
func TestAStatusDoesNotShowTheToken(t *testing.T) {
	b := newFixture(t)
	b.app("web", c1, metav1.ConditionFalse, "the server says: no access with a-token")
	b.repository(attempted(c1, true))
	b.look(0, "11 failure: projects/shop/apps/web/app.yaml: Unhealthy: the server says: no access with ***")
}
