package release

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	helm "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestANewerInputCancelsAWait(t *testing.T) {
	tm := newTeam(t)
	never := tm.request(sources.ChartFolder(fourObjects(map[string]string{"templates/deployment.yaml": strings.Replace(web(nil)["templates/deployment.yaml"], "replicas: 0", "replicas: 1", 1)})))
	never.Actions.Wait, never.Timeout = true, time.Minute
	if out, err := tm.Reconcile(t.Context(), never); err != nil || !out.Running {
		t.Fatalf("%+v, %v", out, err)
	}
	for tm.versions()["deployments/web"] == "" || tm.pool.Working() > 0 {
		time.Sleep(20 * time.Millisecond)
	}
	next := tm.good("green")
	began := time.Now()
	if out, err := tm.Reconcile(t.Context(), next); err != nil || !out.Running {
		t.Fatalf("%+v, %v", out, err)
	}
	tm.await(next)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the wait ended after %s", took)
	}
	if out := tm.deploy(next); tm.color() != "green" || out.Release.Revision != 2 {
		t.Errorf("got %+v", out)
	}
}

func TestChartTestsAreRunAndReported(t *testing.T) {
	hook := func(object string) string {
		return strings.Replace(object, "metadata:\n", "metadata:\n  annotations:\n    helm.sh/hook: test\n", 1)
	}
	good, bad := hook(configMap), hook(refused)
	tests := map[string]struct {
		files  map[string]string
		change func(*v1alpha1.HelmTest)
		test   string
		failed bool
		ran    bool
	}{
		"none":         {nil, nil, decide.TestSucceeded, false, false},
		"success":      {map[string]string{"templates/t.yaml": good}, nil, decide.TestSucceeded, false, true},
		"failure":      {map[string]string{"templates/t.yaml": bad}, nil, decide.TestFailed, true, false},
		"ignored":      {map[string]string{"templates/t.yaml": bad}, func(h *v1alpha1.HelmTest) { h.IgnoreFailures = true }, decide.TestFailed, false, false},
		"left out":     {map[string]string{"templates/t.yaml": bad + "---\n" + good}, func(h *v1alpha1.HelmTest) { h.Filters = []v1alpha1.TestFilter{{Name: "bad", Exclude: true}} }, decide.TestSucceeded, false, true},
		"only chosen":  {map[string]string{"templates/t.yaml": bad + "---\n" + good}, func(h *v1alpha1.HelmTest) { h.Filters = []v1alpha1.TestFilter{{Name: "a"}} }, decide.TestSucceeded, false, true},
		"chosen badly": {map[string]string{"templates/t.yaml": bad + "---\n" + good}, func(h *v1alpha1.HelmTest) { h.Filters = []v1alpha1.TestFilter{{Name: "bad"}} }, decide.TestFailed, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			r := tm.request(sources.ChartFolder(fourObjects(test.files)))
			r.Actions.Test.Enable = true
			if test.change != nil {
				test.change(&r.Actions.Test)
			}
			r.Policy.Retry = later
			if out := tm.deploy(r); out.Test.Result != "" {
				t.Errorf("before the tests: %q, want none", out.Test.Result)
			}
			if out, err := tm.Test(t.Context(), r); !out.Running || err != nil {
				t.Fatal(out, err)
			}
			tm.await(r)
			out := tm.settle(r)
			if out.Test.Result != test.test || (out.Failed != nil) != test.failed || (out.Test.Why != "") != (test.test == decide.TestFailed) {
				t.Errorf("got %+v", out)
			}
			if test.failed && (out.Environment || out.Retry.Attempts != 1 || !strings.HasPrefix(out.Failed.Error(), "tests failed: ")) {
				t.Errorf("failed with %v: %+v", out.Failed, out)
			}
			if ran := tm.versions()["configmaps/a"] != ""; ran != test.ran {
				t.Errorf("the good test ran: %v, want %v", ran, test.ran)
			}
			tm.requests.take()
			if out, err := tm.Test(t.Context(), r); out.Running || err != nil || len(tm.requests.take()) > 0 || len(tm.notified) > 0 {
				t.Errorf("the tests ran again: %v", err)
			}
		})
	}
}

func TestChartTestsThatTheAPIServerPreventsAreRetriedWithBackoff(t *testing.T) {
	tm := newTeam(t)
	tm.now = func() time.Time { return noon }
	tm.restart("me")
	hook := strings.Replace(configMap, "metadata:\n", "metadata:\n  annotations:\n    helm.sh/hook: test\n", 1)
	r := tm.request(sources.ChartFolder(fourObjects(map[string]string{"templates/t.yaml": hook})))
	r.Actions.Test.Enable, r.Policy.Retry = true, minutes
	tm.deploy(r)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("0")},
	}}
	if _, err := tm.admin.CoreV1().ResourceQuotas(tm.namespace).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tm.awaitQuota()
	if out, err := tm.Test(t.Context(), r); !out.Running || err != nil {
		t.Fatal(out, err)
	}
	tm.await(r)
	for range 2 {
		if out := tm.deploy(r); out.Test.Result != "" {
			t.Errorf("got %+v", out)
		}
		out, err := tm.Test(t.Context(), r)
		if err != nil || out.Running || out.Failed == nil || !out.Environment || !out.Retry.At.Equal(noon.Add(time.Minute)) {
			t.Fatalf("got %+v, %v", out, err)
		}
	}
}

func TestARenamedReleaseUninstallsOrTakesOver(t *testing.T) {
	fixed := map[string]string{"templates/fixed.yaml": strings.Replace(configMap, "name: a", "name: fixed", 1)}
	for name, takeOver := range map[string]bool{"uninstall, then install": false, "take over": true} {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			r := tm.request(sources.ChartFolder(fourObjects(fixed)))
			r.Actions.Install.TakeOwnership = takeOver
			tm.deploy(r)
			before := tm.configMap("fixed")
			tm.catchUp()
			r.Name = "new"
			out := tm.deploy(r)
			after := tm.configMap("fixed")
			if kept := before.UID == after.UID; kept != takeOver || after.Annotations[cluster.NameAnnotation] != "new" {
				t.Errorf("kept: %v, annotations %v", kept, after.Annotations)
			}
			left := tm.versions()
			for key := range left {
				if strings.HasSuffix(key, "/web") || strings.Contains(key, ".web.") {
					t.Errorf("left of the former release: %s", key)
				}
			}
			if out.Release.Name != "new" || out.Release.Revision != 1 || out.Why != renamed || out.Ended.IsZero() {
				t.Errorf("got %+v", out)
			}
			tm.catchUp()
			tm.uninstall(r)
			if left := tm.versions(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestAnInstallContinuesAKeptHistoryIfReplaceIsSet(t *testing.T) {
	for name, replace := range map[string]bool{"begins anew": false, "goes on": true} {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			r := tm.good("blue")
			r.Actions.Uninstall.KeepHistory, r.Actions.Install.Replace = true, replace
			tm.deploy(r)
			tm.uninstall(r)
			status, err := action.NewStatus(tm.helm().config).Run("web")
			if err != nil || status.Info.Status != helm.StatusUninstalled {
				t.Fatalf("helm status: %+v, %v", status, err)
			}
			if left := tm.versions(); len(left) != 1 {
				t.Errorf("left: %v", left)
			}
			tm.requests.take()
			tm.uninstall(r)
			if got := tm.requests.take(); len(got) > 0 {
				t.Errorf("it is gone, and was asked for by %v", got)
			}
			out := tm.deploy(r)
			if !out.Deployed.Installed {
				t.Error("it was installed")
			}
			if want := 1; replace && out.Release.Revision != 2 || !replace && out.Release.Revision != want {
				t.Errorf("revision %d", out.Release.Revision)
			}
		})
	}
}

func TestValuesComeFromFilesThenFromTheAppAndStayOnlyIfPreserved(t *testing.T) {
	tm := newTeam(t)
	files := sources.ChartFolder(fourObjects(map[string]string{"values-prod.yaml": "color: prod\n"}))
	r := tm.request(files)
	r.Input.ValuesFiles = []string{"values-prod.yaml"}
	tm.deploy(r)
	if got := tm.color(); got != "prod" {
		t.Errorf("with a values file of the chart: %s, want %q", got, "prod")
	}
	r.Input.Values = map[string]any{"color": "red"}
	tm.deploy(r)
	if got := tm.color(); got != "red" {
		t.Errorf("with a value over it: %s, want %q", got, "red")
	}
	r.Input.Values, r.Input.ValuesFiles = map[string]any{"other": 1}, nil
	r.Actions.Upgrade.PreserveValues = true
	tm.deploy(r)
	if got := tm.color(); got != "red" {
		t.Errorf("with the last values preserved: %s, want %q", got, "red")
	}
	r.Input.Values, r.Actions.Upgrade.PreserveValues = map[string]any{}, false
	tm.deploy(r)
	if got := tm.color(); got != "blue" {
		t.Errorf("with no values: %s, want %q", got, "blue")
	}
}

// TestAnUninstallLeavesWhatItsObjectsOwnToPropagation: the bodies of the deletions say what becomes of it.
func TestAnUninstallLeavesWhatItsObjectsOwnToPropagation(t *testing.T) {
	for given, want := range map[string]metav1.DeletionPropagation{"": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground, "orphan": metav1.DeletePropagationOrphan} {
		t.Run(cmp.Or(given, "usual"), func(t *testing.T) {
			tm := newTeam(t)
			bodies := make(chan string, 20)
			tm.between = func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/configmaps/web") {
						text, err := io.ReadAll(r.Body)
						if err != nil {
							return nil, err
						}
						bodies <- string(text)
						r.Body = io.NopCloser(bytes.NewReader(text))
					}
					return next.RoundTrip(r)
				})
			}
			tm.restart("me")
			r := tm.good("blue")
			r.Actions.Uninstall.DeletionPropagation = given
			tm.deploy(r)
			if done, err := tm.Uninstall(t.Context(), r); done || err != nil {
				t.Fatal(done, err)
			}
			tm.await(r)
			if len(bodies) == 0 {
				t.Fatal("it was not deleted")
			}
			if got := <-bodies; !strings.Contains(got, string(want)) {
				t.Errorf("got %q, want %s in it", got, want)
			}
		})
	}
}

// TestTheSchemaOfAChartHoldsUnlessThatIsDisabled, for installs and for upgrades by themselves.
func TestTheSchemaOfAChartHoldsUnlessThatIsDisabled(t *testing.T) {
	tm := newTeam(t)
	r := tm.request(sources.ChartFolder(fourObjects(map[string]string{"values.schema.json": `{"required": ["size"]}`})))
	refused := func(when string) {
		t.Helper()
		if out := tm.settle(r); !errors.Is(out.Failed, fault.ErrRender) || !strings.Contains(out.Failed.Error(), "size") {
			t.Errorf("%s: got %+v", when, out)
		}
	}
	r.Actions.Upgrade.DisableSchemaValidation = true
	refused("an install, if it is disabled for upgrades")
	r.Actions.Install.DisableSchemaValidation, r.Actions.Upgrade.DisableSchemaValidation = true, false
	tm.deploy(r)
	r.Input.Values = map[string]any{"color": "red"}
	refused("an upgrade, if it is disabled for installs")
	r.Actions.Upgrade.DisableSchemaValidation = true
	tm.deploy(r)
	if got := tm.color(); got != "red" {
		t.Errorf("the color is %s", got)
	}
}

func TestAFormerReleaseOfWhichTheHistoryIsKeptIsLeftAlone(t *testing.T) {
	tm := newTeam(t)
	r := tm.good("blue")
	r.Actions.Uninstall.KeepHistory = true
	tm.deploy(r)
	tm.catchUp()
	r.Name = "new"
	tm.deploy(r)
	r = tm.knowing(r)
	tm.restart("restarted")
	tm.requests.take()
	tm.deploy(r)
	if got := tm.requests.take(); len(got) > 0 {
		t.Errorf("asked %v", got)
	}
	if tm.versions()["secrets/"+decide.KeyOf("web", 1)] == "" {
		t.Error("the history is gone")
	}
}

func TestAHeldRemovalReadsOnlyRemainingObjects(t *testing.T) {
	tm := newTeam(t)
	r := tm.good("blue")
	tm.deploy(r)
	held := tm.configMap("web")
	held.Finalizers = []string{"example.com/hold"}
	tm.update(held)
	if done, err := tm.Uninstall(t.Context(), r); done || err != nil {
		t.Fatal(done, err)
	}
	tm.await(r)
	for n := range 3 {
		tm.requests.take()
		_, err := tm.Uninstall(t.Context(), r)
		if left := (*fault.Terminating)(nil); !errors.As(err, &left) || len(left.Objects) != 1 || !left.Foreign {
			t.Fatal(err)
		}
		if got := tm.requests.take(); n > 0 && len(got) != 1 {
			t.Errorf("asked %v", got)
		}
	}
	held = tm.configMap("web")
	held.Finalizers = nil
	tm.update(held)
	tm.uninstall(r)
	if left := tm.versions(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestALookThatFailsForgetsNoObject has a request for what a removal left fail: the objects are looked for again.
func TestALookThatFailsForgetsNoObject(t *testing.T) {
	tm := newTeam(t)
	var down atomic.Bool
	tm.between = func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if down.Load() && strings.Contains(r.URL.Path, "/configmaps/web") {
				return nil, errors.New("no way there")
			}
			return next.RoundTrip(r)
		})
	}
	tm.restart("restarted")
	r := tm.good("blue")
	tm.deploy(r)
	held := tm.configMap("web")
	held.Finalizers = []string{"example.com/hold"}
	tm.update(held)
	if done, err := tm.Uninstall(t.Context(), r); done || err != nil {
		t.Fatal(done, err)
	}
	tm.await(r)
	for n, fails := range []bool{false, true, false} {
		down.Store(fails)
		done, err := tm.Uninstall(t.Context(), r)
		if done || err == nil || errors.As(err, new(*fault.Terminating)) == fails {
			t.Errorf("look %d: done %t, %v", n, done, err)
		}
	}
	held = tm.configMap("web")
	held.Finalizers = nil
	tm.update(held)
	tm.uninstall(r)
}
