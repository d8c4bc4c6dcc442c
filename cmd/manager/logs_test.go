package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/manager/logs"
	"github.com/kubeop/kubeop/internal/manager/token"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv"
)

// node answers the API server as a kubelet does, with the logs of its pods.
func node(t *testing.T, plane *testenv.Env, answer http.HandlerFunc) *corev1.Node {
	t.Helper()
	pki := filepath.Join(filepath.Dir(plane.AdminKubeconfig()), "pki")
	certificate, err := tls.LoadX509KeyPair(filepath.Join(pki, "apiserver.crt"), filepath.Join(pki, "apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	kubelet := httptest.NewUnstartedServer(answer)
	kubelet.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	kubelet.StartTLS()
	t.Cleanup(func() {
		kubelet.CloseClientConnections()
		kubelet.Close()
	})
	_, port, err := net.SplitHostPort(kubelet.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Status: corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(number)}},
	}}
}

// logsCluster makes apps of two tenants with a pod each, and returns the configuration of the manager's service account.
func logsCluster(t *testing.T, plane *testenv.Env, at *corev1.Node, values ...string) *rest.Config {
	t.Helper()
	if _, err := plane.InstallChart(t.Context(), append([]string{"manager.enabled=true", "manager.plainHTTP=true"}, values...)...); err != nil {
		t.Fatal(err)
	}
	admin := adminOf(t, plane)
	objects := []client.Object{at}
	for _, tenant := range []string{"acme", "beta"} {
		home, project := v1alpha1.HomeNamespace(tenant), v1alpha1.ProjectNamespace(tenant, "shop")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "web-1", Labels: map[string]string{v1alpha1.AppLabel: "web"}}}
		pod.Spec = corev1.PodSpec{NodeName: at.Name, Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/web:1"}, {Name: "waits", Image: "registry.example.com/web:1"}}}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, {Name: "waits", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}},
		}}
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: project}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "default"}}, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: tenant}},
			&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "shop"}},
			&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "web"}, Spec: v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Path: "chart"}}},
			&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "idle"}, Spec: v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Path: "chart"}}}, pod)
	}
	for _, o := range objects {
		status := o.DeepCopyObject().(client.Object)
		if err := admin.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		switch o.(type) {
		case *corev1.Pod, *corev1.Node:
			status.SetResourceVersion(o.GetResourceVersion())
			status.SetUID(o.GetUID())
			if err := admin.Status().Update(t.Context(), status); err != nil {
				t.Fatal(err)
			}
		}
	}
	return accountOf(t, plane)
}

// logsOf is a manager whose logs are read.
type logsOf struct {
	*testing.T
	*manager
}

// holder stores a token.
func (m *logsOf) holder(id string, scope string) string {
	m.Helper()
	secret, tenant := token.New(), ""
	if scope != "admin" {
		tenant = strings.FieldsFunc(scope, func(r rune) bool { return r == ':' || r == '/' })[1]
	}
	now := time.Now()
	if err := m.store.CreateToken(m.Context(), store.Token{ID: id, Name: id, Hash: token.Hash(secret), Scopes: []string{scope}, Tenant: tenant, Created: now, Expires: now.Add(time.Hour)}, store.Event{}); err != nil {
		m.Fatal(err)
	}
	return secret
}

func (m *logsOf) open(ctx context.Context, secret, path string) *http.Response {
	m.Helper()
	request, err := http.NewRequestWithContext(ctx, "GET", "http://"+m.api.Listener.Addr().String()+path, nil)
	if err != nil {
		m.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		m.Fatal(err)
	}
	return answer
}

func (m *logsOf) read(secret, path string, status int) string {
	m.Helper()
	answer := m.open(m.Context(), secret, path)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		m.Fatalf("%s: %d %s %v, want %d", path, answer.StatusCode, text, err, status)
	}
	return string(text)
}

// TestLogsAreStreamed by the rights of the manager's service account, from a node that answers the API server as a kubelet does, to those who may read them.
func TestLogsAreStreamed(t *testing.T) {
	plane := testenv.Start(t)
	asked := make(chan string, 100)
	more := make(chan string)
	kubelet := node(t, plane, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + "?" + r.URL.RawQuery
		_, _ = fmt.Fprintf(w, "2026-11-28T12:00:00.5Z hello \xff from %s\n%s\n", r.URL.Path, strings.Repeat("x", 40<<10))
		if r.URL.Query().Get("follow") != "true" {
			return
		}
		w.(http.Flusher).Flush()
		for {
			select {
			case text := <-more:
				_, _ = io.WriteString(w, "2026-11-28T12:00:01Z "+text+"\n")
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	account := logsCluster(t, plane, kubelet, "manager.logs.enabled=true")
	c := &config.Manager{APIAddr: "127.0.0.1:0", HealthAddr: "127.0.0.1:0", GracefulTimeout: time.Minute, RequestsPerSecond: 1000, Burst: 1000, DataDir: t.TempDir()}
	served, err := listen(t.Context(), c, account)
	if err != nil {
		t.Fatal(err)
	}
	serveUntilTheEnd(t, served)
	m := &logsOf{t, served}
	for m.cluster.Synced(t.Context()) != nil {
		time.Sleep(20 * time.Millisecond)
	}
	const path = "/v1/apps/acme/shop/web/logs"
	viewer := m.holder("viewer", "project:acme/shop:view")
	text := m.read(viewer, path+"?tail=7&since=60&container=app", http.StatusOK)
	if got := <-asked; !strings.HasPrefix(got, "/containerLogs/kubeop-acme-shop/web-1/app?") || !strings.Contains(got, "tailLines=7") || !strings.Contains(got, "sinceSeconds=60") {
		t.Errorf("the kubelet is asked for %s", got)
	}
	var got []logs.Line
	for event := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		data, is := strings.CutPrefix(event, "event: line\ndata: ")
		var line logs.Line
		if err := json.Unmarshal([]byte(data), &line); err != nil || !is {
			t.Fatalf("%v: %.200s", err, event)
		}
		got = append(got, line)
	}
	if len(got) != 2 || got[0].Text != "hello \uFFFD from /containerLogs/kubeop-acme-shop/web-1/app" || got[0].Pod != "web-1" || got[0].Container != "app" || got[0].Cut ||
		!got[0].Time.Equal(time.Date(2026, 11, 28, 12, 0, 0, 500_000_000, time.UTC)) || !got[1].Cut || len(got[1].Text) > 16<<10 {
		t.Errorf("%.300v", got)
	}
	for role, want := range map[string][2]int{
		"admin": {200, 200}, "tenant:acme:view": {200, 404}, "tenant:acme:edit": {200, 404}, "tenant:acme:admin": {200, 404}, "project:acme/shop:view": {200, 404}, "project:acme/shop:edit": {200, 404},
		"project:acme/shop:deploy": {200, 404}, "project:acme/blog:edit": {404, 404}, "tenant:beta:admin": {404, 200},
	} {
		secret := m.holder(role, role)
		m.read(secret, path, want[0])
		m.read(secret, "/v1/apps/beta/shop/web/logs", want[1])
		m.read(secret, "/v1/apps/none/shop/web/logs", http.StatusNotFound)
	}
	for query, status := range map[string]int{"container=none": 404, "container=waits": 404, "previous=true": 404, "tail=10001": 422, "since=-1": 422, "namespace=kube-system": 422} {
		m.read(viewer, path+"?"+query, status)
	}
	m.read(viewer, "/v1/apps/acme/shop/idle/logs", http.StatusNotFound)
	m.read(viewer, "/v1/apps/acme/shop/none/logs", http.StatusNotFound)
	m.follows(more, path)
}

// follows reads a log while it is written, until the token is revoked, and as many as a tenant may have.
func (m *logsOf) follows(more chan<- string, path string) {
	m.Helper()
	secret := m.holder("follower", "tenant:acme:view")
	ctx, cancel := context.WithTimeout(m.Context(), time.Minute)
	defer cancel()
	answer := m.open(ctx, secret, path+"?follow=true&tail=0")
	defer answer.Body.Close()
	more <- "later"
	events := bufio.NewScanner(answer.Body)
	events.Buffer(nil, 1<<20)
	until := func(want string) {
		m.Helper()
		for events.Scan() {
			if strings.Contains(events.Text(), want) {
				return
			}
		}
		m.Fatalf("the stream ends before %q: %v", want, events.Err())
	}
	until(`"text":"later"`)
	var others []*http.Response
	for range 9 {
		others = append(others, m.open(ctx, secret, path+"?follow=true"))
	}
	m.read(secret, path, http.StatusTooManyRequests)
	m.read(m.holder("other tenant", "tenant:beta:view"), "/v1/apps/beta/shop/web/logs", http.StatusOK)
	for _, other := range others {
		other.Body.Close()
	}
	if err := m.store.RevokeToken(ctx, "", "follower", store.Event{At: time.Now()}); err != nil {
		m.Fatal(err)
	}
	until("event: end")
	until("revoked")
	one := events.Scan()
	if another := events.Scan(); one && another {
		m.Errorf("it goes on: %s", events.Text())
	}
}

// serveUntilTheEnd serves until the test ends.
func serveUntilTheEnd(t *testing.T, m *manager) {
	t.Helper()
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.serve(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
