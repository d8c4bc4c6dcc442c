package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

// What `make bench-api` measures, and its budgets, issue 17.
const (
	benchApps      = 1000
	benchPage      = 100
	benchPerSecond = 1000
	benchP99       = 50 * time.Millisecond
)

// TestReadsOfALongListTakeLittleTime reads a list of apps in pages, from a manager on one core that follows a real API server. Each request is due at a time of its own,
// and waiting for those before it counts, as it does for callers that do not know of each other. API_SECONDS is how long. Without it the test is skipped: beside
// other tests nothing has a core to itself.
func TestReadsOfALongListTakeLittleTime(t *testing.T) {
	seconds, err := strconv.Atoi(os.Getenv("API_SECONDS"))
	if err != nil {
		t.Skip("make bench-api runs it by itself")
	}
	plane := testenv.Start(t, "--audit")
	config := benchCluster(t, plane)
	b := startBench(t, config)
	pages, size := b.pages(t)
	t.Logf("%d apps in %d pages of %d KB over plain HTTP; the manager is a process of its own on one core, and follows a real API server", benchApps, len(pages), size/1000)
	before := b.requestsToTheAPIServer(t, plane.AuditLog)
	if before == 0 {
		t.Fatal("the audit log does not have how the manager read the cluster")
	}
	b.load(t, pages, 64, benchPerSecond/2, 0) // It opens the connections.
	cpu := b.cpu(t)
	took := b.load(t, pages, 64, benchPerSecond*seconds, benchPerSecond)
	cpu = b.cpu(t) - cpu
	p50, p99 := took[len(took)/2], took[(len(took)-1)*99/100]
	t.Logf("%d requests a second for %d s: p50 %s, p99 %s, at most %s; %.2f cores", benchPerSecond, seconds, p50, p99, took[len(took)-1], cpu.Seconds()/float64(seconds))
	begin := time.Now()
	most := b.load(t, pages, 8, benchPerSecond*seconds, 0)
	t.Logf("8 callers without a pause: %.0f requests a second, p50 %s, p99 %s", float64(len(most))/time.Since(begin).Seconds(), most[len(most)/2], most[(len(most)-1)*99/100])
	asked := b.requestsToTheAPIServer(t, plane.AuditLog) - before
	t.Logf("requests to the API server meanwhile: %d", asked)
	if p99 > benchP99 || asked != 0 {
		t.Errorf("the p99 may be %s, without a request to the API server", benchP99)
	}
}

// benchCluster makes a project with apps, and returns the configuration of the manager's service account.
func benchCluster(t *testing.T, plane *testenv.Env) *rest.Config {
	t.Helper()
	if _, err := plane.InstallChart(t.Context(), "manager.enabled=true", "manager.plainHTTP=true"); err != nil {
		t.Fatal(err)
	}
	admin := adminOf(t, plane)
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-acme"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-acme-shop"}},
		&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}},
	} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var all errgroup.Group
	all.SetLimit(8)
	for i := range benchApps {
		all.Go(func() error { return benchApp(t.Context(), admin, fmt.Sprintf("app-%04d", i)) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	return accountOf(t, plane)
}

// benchApp makes an app with the conditions of one that is ready.
func benchApp(ctx context.Context, admin client.Client, name string) error {
	a := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: name}, Spec: v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Path: "chart"}}}
	if err := admin.Create(ctx, a); err != nil {
		return err
	}
	const revision = "main@sha1:0123456789012345678901234567890123456789"
	a.Status.LastAppliedRevision, a.Status.LastAttemptedRevision, a.Status.URL = revision, revision, "https://"+name+".acme.example"
	for _, c := range []string{meta.ReadyCondition, v1alpha1.DependenciesReadyCondition, v1alpha1.SourceReadyCondition, "Applied", "Healthy"} {
		a.Status.Conditions = append(a.Status.Conditions, metav1.Condition{
			Type: c, Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "Helm release kubeop-acme-shop/" + name + ".v12 with the chart web@1.2.3 is there", ObservedGeneration: a.Generation, LastTransitionTime: metav1.Now(),
		})
	}
	return admin.Status().Update(ctx, a)
}

// bench is a manager that is measured.
type bench struct {
	url, token string
	process    *os.Process
	client     *http.Client
}

// startBench starts a manager, and claims a token when it has read the cluster.
func startBench(t *testing.T, cluster *rest.Config) *bench {
	t.Helper()
	p := startProcess(t, cluster, "GOMAXPROCS=1", "REQUESTS_PER_SECOND=1000000", "REQUEST_BURST=1000000")
	t.Cleanup(func() { p.stop(t, os.Interrupt) })
	b := &bench{process: p.Process, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	b.url = "http://" + p.address(t, "api")
	claim := p.logged(t, `(setup_[A-Za-z0-9_-]{43})`)
	answer, err := http.Post(b.url+"/v1/setup", "application/json", strings.NewReader(`{"name":"bench","code":"`+claim+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var made struct{ Token string }
	if err := json.NewDecoder(answer.Body).Decode(&made); err != nil || made.Token == "" {
		t.Fatalf("%v: the setup is answered by %s", err, answer.Status)
	}
	b.token = made.Token
	for {
		if err := b.get("/v1/tenants", io.Discard); err == nil {
			return b
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// get reads an answer into a writer.
func (b *bench) get(path string, into io.Writer) (err error) {
	r, err := http.NewRequest(http.MethodGet, b.url+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+b.token)
	answer, err := b.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if _, err := io.Copy(into, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is answered by %s", path, answer.Status)
	}
	return nil
}

// pages returns the path of each page, and the size of the first.
func (b *bench) pages(t *testing.T) (paths []string, size int) {
	t.Helper()
	seen := 0
	for next := ""; ; {
		path := fmt.Sprintf("/v1/apps/acme/shop?limit=%d&cursor=%s", benchPage, next)
		var body bytes.Buffer
		if err := b.get(path, &body); err != nil {
			t.Fatal(err)
		}
		var page struct {
			Items []struct{ Name string }
			Next  string
		}
		if err := json.Unmarshal(body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		paths, size, seen, next = append(paths, path), max(size, body.Len()), seen+len(page.Items), page.Next
		if next == "" {
			break
		}
	}
	if seen != benchApps {
		t.Fatalf("the pages have %d apps", seen)
	}
	return paths, size
}

// load sends requests, so many in a second, or without a pause if it is 0, and returns how long each took, sorted.
func (b *bench) load(t *testing.T, pages []string, callers, requests, perSecond int) []time.Duration {
	t.Helper()
	due := make(chan time.Time, requests)
	took := make([][]time.Duration, callers)
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			i := caller
			for at := range due {
				if at.IsZero() {
					at = time.Now()
				}
				if err := b.get(pages[i%len(pages)], io.Discard); err != nil {
					t.Error(err)
					return
				}
				took[caller] = append(took[caller], time.Since(at))
				i++
			}
		})
	}
	begin := time.Now()
	for i := range requests {
		if perSecond == 0 {
			due <- time.Time{}
			continue
		}
		at := begin.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
		time.Sleep(time.Until(at))
		due <- at
	}
	close(due)
	all.Wait()
	sorted := slices.Concat(took...)
	slices.Sort(sorted)
	if len(sorted) != requests {
		t.Fatalf("%d of %d requests were answered", len(sorted), requests)
	}
	return sorted
}

// requestsToTheAPIServer counts what the manager asked it.
func (b *bench) requestsToTheAPIServer(t *testing.T, audit string) int {
	t.Helper()
	text, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte(`"username":"system:serviceaccount:kubeop-system:kubeop-manager"`))
}

// cpu returns how long the manager used a core.
func (b *bench) cpu(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		t.Fatal(err)
	}
	system, err := strconv.Atoi(fields[12])
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // A tick, on every Linux.
}
