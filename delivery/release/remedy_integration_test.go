package release

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	helm "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// refused is an object that the API server rejects.
const refused = "apiVersion: v1\nkind: Service\nmetadata:\n  name: bad\nspec:\n  ports:\n  - port: 99999\n"

// broken is the request for an upgrade that always fails at once.
func (t *team) broken() Request {
	r := t.request(sources.ChartFolder(fourObjects(map[string]string{"templates/z.yaml": refused})), "color=broken")
	r.Policy.Retry = soon
	return r
}

// good is the request that deploys a color.
func (t *team) good(color string) Request {
	r := t.request(sources.ChartFolder(fourObjects(nil)), "color="+color)
	r.Policy.Retry = soon
	return r
}

// knowing returns the request of a caller that has recorded what is deployed.
func (t *team) knowing(r Request) Request {
	t.Helper()
	t.catchUp()
	r.Recorded.Revision, r.Recorded.Content = 0, ""
	if d := decide.StateOf(r.Name, t.indexed("name", r.Name)).Deployed(); d != nil {
		r.Recorded.Revision, r.Recorded.Content = d.Number, d.Content
	}
	return r
}

// settleProven settles a request that reports the deployed revision as proven.
func (t *team) settleProven(r Request) Outcome {
	t.Helper()
	r = t.knowing(r)
	r.Recorded.Proven = true
	return t.settle(r)
}

func (t *team) color() string {
	t.Helper()
	return t.configMap("web").Data["color"]
}

func (t *team) statuses() map[int]string {
	t.Helper()
	t.catchUp()
	return decide.StateOf("web", t.indexed("name", "web")).Statuses()
}

func TestAnUpgradeThatKeepsFailingIsRolledBackAndHeld(t *testing.T) {
	tm := newTeam(t)
	tm.deploy(tm.good("blue"))
	bad := tm.broken()
	out := tm.settleProven(bad)
	if !out.Retry.Held || out.Environment || out.Failed == nil || !strings.Contains(out.Failed.Error(), "bad") {
		t.Fatalf("got %+v", out)
	}
	if r := out.Remediation; r == nil || r.Kind != v1alpha1.RemediationRollback || r.To != 1 || r.Err != nil {
		t.Errorf("remediation %+v", out.Remediation)
	}
	// One install, one try, one retry, the rollback.
	if out.Release.Revision != 4 || out.Deployed.Revision != 4 || tm.color() != "blue" || len(out.Log) == 0 || len(out.Log) > fault.MaxLines {
		t.Errorf("release %+v, color %s, log %q", out.Release, tm.color(), out.Log)
	}
	bad = tm.knowing(bad)
	bad.Recorded.Proven = true
	tm.requests.take()
	tm.settle(bad)
	if got := tm.requests.take(); len(got) > 0 {
		t.Errorf("a held release asked %v", got)
	}

	tm.restart("restarted")
	tm.requests.take()
	again := tm.settle(bad)
	if !again.Retry.Held || again.Failed == nil || !strings.Contains(again.Failed.Error(), "bad") || again.Remediation == nil {
		t.Errorf("after a restart: %+v", again)
	}
	if got := tm.requests.take(); len(got) != 1 {
		t.Errorf("after a restart it asked %v, want only for why it failed", got)
	}

	forced := bad
	forced.Manual.Force, forced.Manual.ID = true, "once more"
	if out = tm.settle(forced); !out.Accepted || !out.Retry.Held || out.Release.Revision != 6 || tm.color() != "blue" {
		t.Errorf("forced once, it is %+v with color %s; want one more try and the rollback", out.Release, tm.color())
	}

	reset := bad
	reset.Manual.Reset, reset.Manual.ID = true, "anew"
	if out = tm.settle(reset); !out.Accepted || !out.Retry.Held || out.Release.Revision != 9 {
		t.Errorf("reset, it is %+v; want two more tries and the rollback", out.Release)
	}

	if out = tm.deploy(tm.good("green")); tm.color() != "green" || out.Retry.Held || out.Remediation != nil {
		t.Errorf("another input: %+v", out)
	}
}

func TestTheStrategyDecidesTheRemedyOfAFailedUpgrade(t *testing.T) {
	tests := map[string]struct {
		strategy v1alpha1.RemediationStrategy
		status   helm.Status
		color    string
	}{
		"none":      {v1alpha1.RemediationNone, helm.StatusFailed, "broken"},
		"uninstall": {v1alpha1.RemediationUninstall, helm.StatusUninstalled, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			tm.deploy(tm.good("blue"))
			bad := tm.broken()
			bad.Actions.Remediation.Strategy = test.strategy
			for range 2 {
				out := tm.settle(bad)
				if !out.Retry.Held || out.Failed == nil || out.Release.Revision != 3 || out.Release.Status != test.status.String() {
					t.Errorf("got %+v", out)
				}
				if _, there := tm.versions()["configmaps/web"]; there != (test.color != "") || there && tm.color() != test.color {
					t.Errorf("objects %v", tm.versions())
				}
				tm.restart("restarted")
			}
			out := tm.deploy(tm.good("green"))
			if tm.color() != "green" || out.Retry.Held {
				t.Errorf("another input: %+v", out)
			}
		})
	}
}

func TestFailuresOfTheEnvironmentAreRetriedWithoutLimit(t *testing.T) {
	tm := newTeam(t)
	tm.deploy(tm.good("blue"))
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("0")},
	}}
	if _, err := tm.admin.CoreV1().ResourceQuotas(tm.namespace).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tm.awaitQuota()
	r := tm.request(sources.ChartFolder(fourObjects(map[string]string{"templates/new.yaml": strings.Replace(configMap, "name: a", "name: new", 1)})))
	var tries atomic.Int32
	r.Policy.Retry = func(attempts int) time.Duration {
		if tries.Store(int32(attempts)); attempts < 7 {
			return 0
		}
		return time.Hour
	}
	out := tm.settle(r)
	if !out.Environment || out.Retry.Held || out.Retry.Attempts != 7 || out.Retry.At.IsZero() || !strings.Contains(out.Failed.Error(), "quota") {
		t.Errorf("got %+v", out)
	}
	if n := len(tm.statuses()); n > maxHistory {
		t.Errorf("%d revisions are kept", n)
	}
}

// awaitQuota waits until the API server enforces a quota that allows no more ConfigMaps. It learns of a new quota from a watch.
func (t *team) awaitQuota() {
	t.Helper()
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
	t.until("the quota is enforced", func(ctx context.Context) (bool, error) {
		_, err := t.admin.CoreV1().ConfigMaps(t.namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			return true, nil
		}
		return false, err
	})
}

func TestRevisionsMarkedAsFailedAreRemediated(t *testing.T) {
	tm := newTeam(t)
	tm.deploy(tm.good("blue"))
	r := tm.good("red")
	if out := tm.settleProven(r); out.Failed != nil {
		t.Fatal(out.Failed)
	}
	for n := range 2 {
		if done, err := tm.MarkFailed(t.Context(), r, "Deployment/web is not ready"); !done || err != nil {
			t.Fatal(done, err)
		}
		if n == 0 {
			tm.deploy(r)
		}
	}
	out := tm.settle(r)
	if !out.Retry.Held || out.Failed.Error() != "Deployment/web is not ready" || out.Remediation == nil || out.Remediation.To != 1 || tm.color() != "blue" {
		t.Errorf("got %+v, color %s", out, tm.color())
	}
	if done, err := tm.MarkFailed(t.Context(), r, "no more"); done || err != nil {
		t.Errorf("marked as failed: %v, %v", done, err)
	}
	if again := tm.settle(r); again.Release != out.Release {
		t.Errorf("a rollback was marked as failed: %+v, want %+v", again.Release, out.Release)
	}
}

func TestAnInstallIsNeverMarkedAsFailed(t *testing.T) {
	tm := newTeam(t)
	bad := tm.broken()
	bad.Policy.Retry = later
	if out := tm.settle(bad); out.Failed == nil || out.Deployed.Revision != 0 {
		t.Fatalf("got %+v", out)
	}
	r := tm.good("blue")
	for range 2 {
		out := tm.deploy(r)
		if !out.Deployed.Installed || out.Deployed.Revision != 2 {
			t.Errorf("installed after a failure: %+v", out)
		}
		if done, err := tm.MarkFailed(t.Context(), r, "not ready"); done || err != nil {
			t.Errorf("marked as failed: %v, %v", done, err)
		}
		tm.restart("restarted")
	}
	if out := tm.deploy(tm.good("red")); out.Deployed.Installed {
		t.Errorf("upgraded: %+v", out)
	}
}

func TestARollbackNeverRestoresATamperedRevision(t *testing.T) {
	tm := newTeam(t)
	for _, color := range []string{"one", "two"} {
		tm.settleProven(tm.good(color))
	}
	person := tm.helm().config.Releases
	second, err := person.Get("web", 2)
	if err != nil {
		t.Fatal(err)
	}
	second.Manifest = strings.ReplaceAll(second.Manifest, "two", "evil")
	if err := person.Update(second); err != nil {
		t.Fatal(err)
	}
	tm.catchUp()
	out := tm.settleProven(tm.broken())
	if !out.Retry.Held || out.Remediation == nil || out.Remediation.To != 1 || tm.color() != "one" {
		t.Errorf("got %+v, color %s", out, tm.color())
	}
}

func TestARollbackIsAdmittedToo(t *testing.T) {
	tm := newTeam(t)
	tm.deploy(tm.good("blue"))
	bad := tm.knowing(tm.broken())
	bad.Recorded.Proven = true
	admit := bad.Policy.Admit
	var refuse atomic.Bool
	bad.Policy.Admit = func(objects []*unstructured.Unstructured) error {
		if refuse.Load() && objects[0].GetName() == "web" && len(objects) == 4 {
			return errors.New("no longer allowed")
		}
		refuse.Store(true)
		return admit(objects)
	}
	bad.Policy.Retry = func(attempts int) time.Duration {
		if attempts > 1 {
			return time.Hour
		}
		return 0
	}
	out := tm.settle(bad)
	if r := out.Remediation; r == nil || r.Err == nil || !strings.Contains(r.Err.Error(), "no longer allowed") || out.Retry.At.IsZero() {
		t.Errorf("got %+v, %+v", out, out.Remediation)
	}
}

func TestRetriesDoNotFillTheHistory(t *testing.T) {
	hook := strings.Replace(refused, "metadata:\n", "metadata:\n  annotations:\n    helm.sh/hook: pre-rollback\n", 1)
	tests := map[string]struct {
		before  map[string]string
		retries int32
		tries   int
	}{
		"installs":  {nil, 1, 20},
		"upgrades":  {map[string]string{}, 10, 9},
		"rollbacks": {map[string]string{"templates/y.yaml": hook}, 0, 8},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			now := noon
			tm.now = func() time.Time { return now }
			tm.restart("me")
			if test.before != nil {
				tm.deploy(tm.request(sources.ChartFolder(fourObjects(test.before))))
			}
			r := tm.knowing(tm.broken())
			r.Recorded.Proven = true
			r.Actions.Remediation.Retries, r.Policy.Retry = &test.retries, minutes
			most, last := 0, 0
			for range test.tries {
				out := tm.settle(r)
				if out.Retry.Held || out.Release.Revision <= last {
					t.Fatalf("after revision %d: %+v, %+v", last, out, out.Remediation)
				}
				last, most = out.Release.Revision, max(most, len(tm.statuses()))
				now = now.Add(time.Hour)
			}
			if most != maxHistory {
				t.Errorf("%d revisions were kept, want %d: %v", most, maxHistory, tm.statuses())
			}
			if test.before != nil && tm.statuses()[1] != helm.StatusDeployed.String() {
				t.Errorf("what a rollback returns to is gone: %v", tm.statuses())
			}
		})
	}
}

func TestARollbackRestoresOnlyProvenRevisions(t *testing.T) {
	for name, marked := range map[string]bool{"not yet judged": false, "marked as failed, then superseded by Helm": true} {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			tm.deploy(tm.good("blue"))
			unhealthy := tm.good("red")
			tm.settleProven(unhealthy)
			if marked {
				if done, err := tm.MarkFailed(t.Context(), unhealthy, "not ready"); !done || err != nil {
					t.Fatal(done, err)
				}
				tm.deploy(tm.knowing(tm.good("green")))
				if got := tm.statuses()[2]; got != helm.StatusFailed.String() {
					t.Errorf("the revision marked as failed is %s, want %s", got, helm.StatusFailed.String())
				}
			}
			out := tm.settle(tm.knowing(tm.broken()))
			if !out.Retry.Held || out.Remediation == nil || out.Remediation.To != 1 || tm.color() != "blue" {
				t.Errorf("got %+v, color %s, statuses %v", out, tm.color(), tm.statuses())
			}
		})
	}
}

func TestARevisionOfAnotherInstallationIsNotRecognized(t *testing.T) {
	tm := newTeam(t)
	r := tm.good("blue")
	out := tm.deploy(r)
	r.Recorded.Revision, r.Recorded.Content = out.Deployed.Revision, out.Deployed.Content
	if _, err := action.NewUninstall(tm.helm().config).Run("web"); err != nil {
		t.Fatal(err)
	}
	tm.restart("restarted")
	again := tm.deploy(r)
	if again.Deployed.Revision != 1 || again.Deployed.Content == out.Deployed.Content || len(again.Deployed.Objects) != 4 {
		t.Errorf("installed anew it is revision %d with content %s and %d objects", again.Deployed.Revision, again.Deployed.Content, len(again.Deployed.Objects))
	}
}

func TestARequestToForceIsCarriedOutOnce(t *testing.T) {
	tm := newTeam(t)
	tm.deploy(tm.good("blue"))
	bad := tm.knowing(tm.broken())
	bad.Recorded.Proven = true
	if out := tm.settle(bad); !out.Retry.Held || out.Release.Revision != 4 {
		t.Fatalf("got %+v", out)
	}
	bad = tm.knowing(bad)
	bad.Manual.Force, bad.Manual.ID, bad.Policy.Retry = true, "2026-05-04T12:00:00Z", later

	// A draining operator starts nothing.
	if err := tm.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := tm.Reconcile(t.Context(), bad); !errors.Is(err, fault.ErrDraining) {
		t.Fatal(err)
	}
	tm.restart("second")
	away := bad
	away.Policy.Admit = func([]*unstructured.Unstructured) error { return errors.New("discovery: not known yet") }
	away.Policy.Refused = func(error) bool { return false }
	for range 2 {
		if out := tm.settle(away); out.Accepted || out.Retry.Held || !out.Environment || out.Retry.At.IsZero() || out.Release.Revision != 4 {
			t.Errorf("an environment failure changed the release or was not retried: %+v", out)
		}
	}
	tm.restart("third")
	if out := tm.settle(bad); !out.Accepted || !out.Retry.Held || out.Release.Revision != 6 {
		t.Errorf("forced: %+v", out)
	}
	tm.restart("fourth")
	if out := tm.settle(bad); !out.Accepted || !out.Retry.Held || out.Release.Revision != 6 {
		t.Errorf("the same request in another process: %+v", out)
	}
	bad.Manual.ID = "2026-05-04T13:00:00Z"
	if out := tm.settle(bad); !out.Accepted || out.Release.Revision != 8 {
		t.Errorf("another request: %+v", out)
	}
}

func TestARefusedForceIsAccepted(t *testing.T) {
	tm := newTeam(t)
	r := tm.good("blue")
	tm.deploy(r)
	r.Manual.Force, r.Manual.ID, r.Policy.Retry = true, "1", later
	r.Policy.Admit = func([]*unstructured.Unstructured) error { return errors.New("not allowed") }
	out := tm.settle(r)
	if !out.Accepted || out.Release.Revision != 1 {
		t.Errorf("got %+v", out)
	}
}
