//go:build e2e

package availability

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// mostDelay is the maximum added latency of another tenant's pushes at p99 while one tenant has much work, in seconds.
const mostDelay = 1.0

// working runs beta's pushes and the meter until the test ends. It returns the measurements without other work.
func working(t *testing.T) *window {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var parts sync.WaitGroup
	parts.Go(func() { beta.work(ctx) })
	parts.Go(func() { operator.watch(ctx) })
	t.Cleanup(func() {
		cancel()
		parts.Wait()
	})
	return undisturbed(t, "undisturbed")
}

// delayed checks a window against mostDelay.
func (w *window) delayed(t *testing.T, control *window) {
	t.Helper()
	t.Logf("%s, %.0f s: %s; operator %d MiB (%d)", w.name, w.to.Sub(w.from).Seconds(), w.latency, w.spent.own>>20, control.spent.own>>20)
	if by := w.latency.p99 - control.latency.p99; by > mostDelay {
		t.Errorf("%s: pushes of another tenant took %.2f s longer at p99, at most %.0f are allowed", w.name, by, mostDelay)
	}
	if w.spent.restarts > 0 || w.latency.n == 0 {
		t.Errorf("%s: %d restarts, %d pushes of another tenant", w.name, w.spent.restarts, w.latency.n)
	}
}

const (
	crowdProjects = 20
	crowdApps     = 100 // Of each.
)

// TestAFirstSyncOfThousands adds a tenant with 2,000 apps, which its limits allow.
func TestAFirstSyncOfThousands(t *testing.T) {
	control := working(t)
	ctx, name := t.Context(), "crowd"
	repo, err := newRepository(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	x := &tenant{name: name, repo: repo, limits: "{apps: 2000, storeBytes: 4Gi}"}
	with := files{"kubeop.yaml": []byte("layout: v1\n")}
	for p := range crowdProjects {
		folder := fmt.Sprintf("projects/p%d/", p)
		with[folder+"project.yaml"] = fmt.Appendf(nil, declared, "Project", fmt.Sprint("p", p))
		for a := range crowdApps {
			app := fmt.Sprint("a", a)
			with[folder+"apps/"+app+"/app.yaml"] = []byte(fmt.Sprintf(declared, "App", app) + "spec:\n" + small(a))
		}
	}
	if err := x.commit(ctx, "Begin", with); err != nil {
		t.Fatal(err)
	}
	if err := x.push(ctx); err != nil {
		t.Fatal(err)
	}
	w := &window{name: fmt.Sprintf("first sync of %d apps", crowdProjects*crowdApps)}
	w.begin(t)
	if err := x.welcome(ctx); err != nil {
		t.Fatal(err)
	}
	err = stage.Until(ctx, 5*time.Minute, "all apps are ready", func(ctx context.Context) error {
		time.Sleep(time.Second) // A list of thousands is work for the API server.
		return x.allReady(ctx, crowdProjects*crowdApps)
	})
	if err != nil {
		t.Error(err)
	}
	w.end(t)
	w.delayed(t, control)
}

// allReady checks that so many apps of the tenant are ready.
func (t *tenant) allReady(ctx context.Context, want int) error {
	all := &v1alpha1.AppList{}
	if err := platform.Client.List(ctx, all, client.MatchingLabels{v1alpha1.RepositoryLabel: t.name}); err != nil {
		return err
	}
	ready := 0
	for i := range all.Items {
		for _, c := range all.Items[i].Status.Conditions {
			if c.Type == v1alpha1.ReadyCondition && c.Status == "True" {
				ready++
			}
		}
	}
	if ready < want {
		return fmt.Errorf("%d of %d are", ready, want)
	}
	return nil
}

// floodRate is the number of calls per second, over floodConnections connections.
const (
	floodRate        = 5000
	floodConnections = 50
)

// TestAFloodOfThePushHookDelaysNoOtherTenant calls the hook without a key, and with the caller's own key, while another tenant pushes.
func TestAFloodOfThePushHookDelaysNoOtherTenant(t *testing.T) {
	control := working(t)
	alpha := attackers[0]
	key, err := platform.Kubectl(t.Context(), "get", "secret", alpha.name+"-hook", "-n", stage.Namespace, "-o", "go-template={{.data.token | base64decode}}")
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"ref": "refs/heads/main"}`
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = mac.Write([]byte(body))
	for name, signature := range map[string]string{
		"calls without a signature": "", "calls with a wrong signature": "sha256=" + hex.EncodeToString(make([]byte, 32)),
		"calls with the caller's own key": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			w := &window{name: name}
			w.begin(t)
			answered := flood(ctx, alpha.name, signature, body)
			w.end(t)
			rate := float64(answered) / w.to.Sub(w.from).Seconds()
			t.Logf("%.0f calls a second were answered", rate)
			if rate < floodRate/2 {
				t.Errorf("only %.0f calls a second were answered: this is no flood", rate)
			}
			w.delayed(t, control)
		})
	}
}

// flood calls the hook until the context ends. It returns how many calls were answered.
func flood(ctx context.Context, repository, signature, body string) int64 {
	hook, err := url.Parse(platform.HookURL(repository))
	if err != nil {
		return 0
	}
	call := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: kubeop\r\nContent-Length: %d\r\n", hook.Path, len(body))
	if signature != "" {
		call += "X-Signature: " + signature + "\r\n"
	}
	call += "\r\n" + body
	var answered atomic.Int64
	var callers sync.WaitGroup
	for range floodConnections {
		callers.Go(func() {
			for ctx.Err() == nil {
				answered.Add(callAgain(ctx, hook.Host, call))
			}
		})
	}
	callers.Wait()
	return answered.Load()
}

// callAgain calls the hook at a rate over one connection until it is closed. It returns how many calls were answered.
func callAgain(ctx context.Context, host, call string) (answered int64) {
	conn, err := net.DialTimeout("tcp", host, time.Second)
	if err != nil {
		time.Sleep(10 * time.Millisecond)
		return 0
	}
	defer conn.Close()
	// Reset the connection, so that its port is free at once. A closed connection keeps its port for a minute, and a machine has only 28,000
	// ports for one address. The Git server needs some too.
	if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
		return 0
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	answers, began := bufio.NewReader(conn), time.Now()
	for n := 0; ; n++ {
		time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second * floodConnections / floodRate)))
		if _, err := io.WriteString(conn, call); err != nil {
			return answered
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			return answered
		}
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		answered++
		if err != nil || answer.Close {
			return answered
		}
	}
}
