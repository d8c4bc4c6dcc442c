package controllers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestBadHostsDelayNoOtherTenant pushes to a repository on a healthy host, first alone and then beside 60 repositories on hosts that accept
// connections but never answer and 60 on hosts that refuse connections.
func TestBadHostsDelayNoOtherTenant(t *testing.T) {
	const bad, pushes = 60, 20
	n := newTeam(t, "healthy")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	alone := n.pushes("alone", pushes)

	silent, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	accepted := make(chan net.Conn, 10*bad)
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			accepted <- conn // The connection is kept open without an answer.
		}
	}()
	port := silent.Addr().(*net.TCPAddr).Port
	for i := range bad {
		n.badRepository(fmt.Sprint("hangs", i), fmt.Sprintf("http://127.1.1.%d:%d/app.git", i+1, port))
		n.badRepository(fmt.Sprint("refuses", i), fmt.Sprintf("http://127.1.2.%d:1/app.git", i+1))
	}
	n.eventually(func() error {
		if len(accepted) < bad {
			return fmt.Errorf("%d of %d hosts hang", len(accepted), bad)
		}
		return nil
	})
	beside := n.pushes("beside", pushes)
	for again := 0; again < 3 && beside[pushes-1] > time.Second; again++ { // Tests beside this one may delay a push; what the bad hosts delay, they delay again.
		t.Logf("the slowest push took %s; measuring again", beside[pushes-1])
		beside = n.pushes(fmt.Sprint("again", again), pushes)
	}
	t.Logf("a push until applied: p50 %s, most %s alone; p50 %s, most %s beside %d hanging and %d refusing hosts",
		alone[pushes/2], alone[pushes-1], beside[pushes/2], beside[pushes-1], bad, bad)
	if limit := max(time.Second, 3*alone[pushes/2]); beside[pushes/2] > limit {
		t.Errorf("the median push took %s, want at most %s", beside[pushes/2], limit)
	}
	// The maximum has a limit only if the machine was quiet before.
	if quiet := alone[pushes-1] < 500*time.Millisecond; quiet && beside[pushes-1] > time.Second {
		t.Errorf("the slowest push took %s", beside[pushes-1])
	}
	refused := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "refuses0"}}
	if message, want := n.until(refused, v1alpha1.FetchedCondition, metav1.ConditionFalse, v1alpha1.FetchFailedReason), "http://127.1.2.1:1/app.git"; !strings.Contains(message, want) {
		t.Errorf("the message of the repository is %q, want %q in it", message, want)
	}
	hangs := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "hangs0"}}
	n.until(hangs, v1alpha1.FetchedCondition, metav1.ConditionFalse, v1alpha1.FetchFailedReason)
}

// badRepository declares a repository that cannot be fetched, until the test ends.
func (n *team) badRepository(name, url string) {
	n.t.Helper()
	repository := &v1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RepositorySpec{URL: url, Tenant: name},
	}
	n.create(repository)
	n.t.Cleanup(func() {
		if err := n.admin.Delete(context.Background(), repository); err != nil {
			n.t.Error(err)
		}
	})
}

// pushes times pushes until they are applied, sorted.
func (n *team) pushes(greeting string, times int) []time.Duration {
	n.t.Helper()
	var took []time.Duration
	for i := range times {
		want := fmt.Sprint(greeting, i)
		begin := time.Now()
		n.push(map[string]string{"projects/shop/apps/web/app.yaml": fmt.Sprintf(rawFile, "web", "web", want)})
		for n.configMap("shop", "web").Data["greeting"] != want {
			if time.Since(begin) > 90*time.Second {
				n.t.Fatalf("push %d was not applied\n%s", i, n.state())
			}
			time.Sleep(5 * time.Millisecond)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took
}

// TestARotatedSecretIsUsedAtOnce changes the Secret of a repository with an interval of ten minutes.
func TestARotatedSecretIsUsedAtOnce(t *testing.T) {
	n := newTeam(t, "rotated")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	first := n.synced(n.push(map[string]string{}), metav1.ConditionTrue)
	change := func(password string) {
		t.Helper()
		secret := &corev1.Secret{}
		if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-system", Name: "rotated-git"}, secret); err != nil {
			t.Fatal(err)
		}
		secret.Data["password"] = []byte(password)
		if err := n.admin.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	change("mistyped-4711")
	repository := n.repository()
	message := n.until(repository, v1alpha1.FetchedCondition, metav1.ConditionFalse, v1alpha1.AuthenticationFailedReason)
	if !strings.Contains(message, "kubeop-system/rotated-git") || strings.Contains(message, "mistyped") {
		t.Errorf("the message is %q", message)
	}
	ready := conditions.Get(repository, v1alpha1.ReadyCondition)
	if ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, first.Status.LastAppliedRevision) ||
		!conditions.IsTrue(repository, v1alpha1.SyncedCondition) || repository.Status.LastAppliedRevision != first.Status.LastAppliedRevision {
		t.Errorf("the status does not report the applied revision: %+v", repository.Status)
	}
	n.ready(n.app("shop", "web"))

	// An app that was deleted by hand meanwhile is recreated: the commit is stored.
	web := n.app("shop", "web")
	n.ready(web)
	was := web.UID
	n.delete(web)
	n.eventually(func() error {
		again := n.app("shop", "web")
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(again), again); err != nil || again.UID == was {
			return fmt.Errorf("the app is not back: %w", err)
		}
		return nil
	})
	change(n.repo.Password)
	n.ready(n.repository())
}

// TestAFailedFetchKeepsADeliveredAppReady makes the source of a Git app and of a chart unreachable, and restores it.
func TestAFailedFetchKeepsADeliveredAppReady(t *testing.T) {
	n := newTeam(t, "outage")
	source := n.gitApp(map[string]string{"apps/web/config.yaml": configNamed("web", "hello")}, "path: apps/web")
	app := n.app("shop", "web")
	n.ready(app)
	source.Vanish()
	message := n.until(app, v1alpha1.SourceReadyCondition, metav1.ConditionFalse, v1alpha1.SourceNotFoundReason)
	if !strings.Contains(message, source.URL) {
		t.Errorf("the message of SourceReady is %q, want %q in it", message, source.URL)
	}
	ready := conditions.Get(app, v1alpha1.ReadyCondition)
	if ready.Status != metav1.ConditionTrue || !strings.Contains(ready.Message, v1alpha1.SourceReadyCondition) {
		t.Errorf("Ready is %+v", ready)
	}
	n.eventually(func() error {
		if len(n.events(app, v1alpha1.SourceNotFoundReason)) == 0 {
			return errors.New("no event reports the failed fetch")
		}
		return nil
	})
	config := n.configMap("shop", "web")
	n.delete(config)
	n.eventually(func() error {
		return n.admin.Get(t.Context(), client.ObjectKeyFromObject(config), &corev1.ConfigMap{})
	})
	before := app.ResourceVersion
	n.reconcile(app)
	n.reconcile(app)
	if c := conditions.Get(app, v1alpha1.ReadyCondition); c.Status != metav1.ConditionTrue {
		t.Errorf("after %s, Ready is %+v", before, c)
	}
	source.Return()
	n.until(app, v1alpha1.SourceReadyCondition, metav1.ConditionTrue, "")
	if message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionTrue, ""); strings.Contains(message, v1alpha1.SourceReadyCondition) {
		t.Errorf("the message of Ready is still %q", message)
	}
}

// TestAnAppThatWasNeverDeliveredIsNotReady: its source fails, and the message names both possible causes, because a repository that does
// not exist may answer like one that needs credentials.
func TestAnAppThatWasNeverDeliveredIsNotReady(t *testing.T) {
	n := newTeam(t, "nosource")
	files := shopFiles("shop")
	files["projects/shop/apps/web/app.yaml"] = fmt.Sprintf(gitAppFile, "web", "1h", "{url: '"+n.repo.URL[:strings.LastIndex(n.repo.URL, "/")]+"/nowhere.git'}")
	n.push(files)
	message := n.until(n.app("shop", "web"), v1alpha1.ReadyCondition, metav1.ConditionFalse, "")
	if want := "wants credentials for the Git repository at this URL; some hosts answer so if it does not exist (401): check the URL in Git, or name a Secret"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
	}
}
