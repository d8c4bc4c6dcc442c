package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/fence"
	"github.com/kubeop/kubeop/internal/testenv"
)

// TestAnOperatorThatLostItsLeaseWritesNothing stops the leader in the middle of its work for longer than its lease lasts.
// The standby takes over and delivers the next commit. When the first continues, it writes nothing and ends.
func TestAnOperatorThatLostItsLeaseWritesNothing(t *testing.T) {
	d := newOperatorPair(t, "fence")
	leader := d.startOperator()
	d.push(0, fewer)
	d.converges(0)
	refused := 0
	// The operator that takes over in one round loses its lease in the next.
	for round, c := range []struct {
		name string
		// at selects the write after which the leader is stopped. Nil means while a hook runs.
		at func(*http.Request) bool
	}{
		{name: "while a hook runs"},
		{name: "once a revision is recorded", at: nth(1, "POST", "/secrets")},
		{name: "between two objects", at: nth(9, "PATCH", "/configmaps")},
		{name: "once the former revision is superseded", at: nth(1, "PUT", "/secrets")},
	} {
		standby := d.startOperator()
		term := d.lease()
		if c.at == nil {
			d.sleepInHook(leader, 2*round+1)
		} else {
			d.sleepAt(leader, 2*round+1, c.at)
		}
		d.eventually("the other one leads", func() error { return d.leads(term) })
		d.push(2*round+2, fewer)
		d.converges(2*round + 2)
		d.quiet()
		before, term := d.versions(), d.lease()
		n := leader.wakes()
		if diff := cmp.Diff(before, d.versions()); diff != "" {
			t.Errorf("%s: the operator without the lease changed something (-before +after):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(term, d.lease()); diff != "" {
			t.Errorf("%s: the lease changed (-before +after):\n%s", c.name, diff)
		}
		t.Logf("stopped %s: when it continued, %d writes were refused", c.name, n)
		leader, refused = standby, refused+n
	}
	if refused == 0 {
		t.Error("none of them tried to write, so the test proves nothing")
	}
	leader.stops()
	if l := d.lease(); l.Holder != "" {
		t.Errorf("the leader stopped and left the lease as %+v", l)
	}
}

// freeAddress returns an address whose port is not in the kernel's ephemeral range, so that another test's cluster does not get it meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		if listener, err := net.Listen("tcp", address); err == nil {
			listener.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// TestAStandbyPassesAPushOn: a Git host may call any replica. A standby annotates the Repository and writes nothing else.
func TestAStandbyPassesAPushOn(t *testing.T) {
	d := newOperatorPair(t, "standby")
	leader := d.startOperator()
	d.push(0, fewer)
	d.converges(0)
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: "standby-hook"}, StringData: map[string]string{"token": "key"}}
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "standby"}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"repository":{"hookSecretRef":{"name":"standby-hook"}}}}`))
	if err := errors.Join(d.Create(t.Context(), key), d.Patch(t.Context(), tenant, patch)); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	standby := d.startOperator("HOOK_ADDR=" + address)
	look := func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			return // It checks what it may watch, which writes nothing.
		}
		if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/repositories/standby") {
			t.Errorf("the standby sent %s %s", r.Method, r.URL.Path)
		}
	}
	standby.look.Store(&look)
	d.eventually("the standby takes the call", func() error {
		call, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/hook/standby", nil)
		if err != nil {
			return err
		}
		call.Header.Set("X-Gitlab-Token", "key")
		answer, err := http.DefaultClient.Do(call)
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusAccepted {
			return errors.New(answer.Status)
		}
		return nil
	})
	repository := &v1alpha1.Repository{}
	if err := d.Get(t.Context(), client.ObjectKey{Name: "standby"}, repository); err != nil {
		t.Fatal(err)
	}
	if repository.Annotations[meta.ReconcileRequestAnnotation] == "" {
		t.Error("no fetch was requested from the leader")
	}
	standby.stops()
	leader.stops()
}

// TestElectLeavesTheConnectionAlone: it only adds the fence, because the short timeout of lease requests would end every watch within seconds.
func TestElectLeavesTheConnectionAlone(t *testing.T) {
	connection := &rest.Config{Host: env.Config.Host, UserAgent: "kubeop/test"}
	want := rest.CopyConfig(connection)
	c := &config.Operator{Election: config.Election{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Minute, RetryPeriod: 4 * time.Second}}
	if err := elect(c, connection, &leaseEvents{}, &ctrl.Options{}); err != nil {
		t.Fatal(err)
	}
	if connection.WrapTransport == nil {
		t.Error("its writes bypass the fence")
	}
	connection.WrapTransport = nil
	if diff := cmp.Diff(want.String(), connection.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// nth returns a function that is true for the nth write of this method and resource.
func nth(n int32, method, resource string) func(*http.Request) bool {
	seen := &atomic.Int32{}
	return func(r *http.Request) bool {
		return r.Method == method && strings.Contains(r.URL.Path, resource) && seen.Add(1) == n
	}
}

// operatorPair runs two operators on one cluster.
type operatorPair struct {
	*killed
	// hold keeps hooks running.
	hold atomic.Bool
	// tenant is the prefix of the tenant's namespaces.
	tenant   string
	metadata metadata.Interface
	kinds    []schema.GroupVersionResource
}

func newOperatorPair(t *testing.T, tenant string) *operatorPair {
	t.Helper()
	quiet := rest.CopyConfig(env.Config)
	quiet.WarningHandler = rest.NoWarnings{} // Some kinds are deprecated.
	d := &operatorPair{killed: newKilled(t, tenant), metadata: metadata.NewForConfigOrDie(metadata.ConfigFor(quiet)), tenant: "kubeop-" + tenant}
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(env.Config).ServerPreferredNamespacedResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "get"}}, lists) {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			d.kinds = append(d.kinds, group.WithResource(r.Name))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { d.runHooks(ctx) })
	t.Cleanup(func() { cancel(); ended.Wait() })
	d.repo.Push(map[string]string{
		"kubeop.yaml": "layout: v1\n", "projects/shop/project.yaml": projectFile,
		"projects/shop/apps/helm/chart/templates/hook.yaml": strings.Replace(hookPod, "pre-install", "'pre-install,pre-upgrade'", 1),
	})
	return d
}

// runHooks makes the pods of hooks succeed unless hold is set, because there are no nodes.
func (d *operatorPair) runHooks(ctx context.Context) {
	for ctx.Err() == nil {
		pods := &corev1.PodList{}
		if err := d.List(ctx, pods, client.InNamespace(d.namespace)); err != nil && ctx.Err() == nil {
			d.t.Errorf("looking for hooks: %v", err)
		}
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodPending && !d.hold.Load() {
				p.Status.Phase = corev1.PodSucceeded
				_ = d.Status().Update(ctx, &p) // The operator may have deleted it meanwhile.
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// sleepInHook pushes a round and stops the leader while its hook runs.
func (d *operatorPair) sleepInHook(leader *proxiedOperator, round int) {
	d.t.Helper()
	d.hold.Store(true)
	d.push(round, objects)
	d.eventually("the hook runs", func() error {
		pod := &corev1.Pod{}
		if err := d.Get(d.t.Context(), client.ObjectKey{Namespace: d.namespace, Name: "before"}, pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodPending {
			return errors.New("it is the hook of the round before")
		}
		return nil
	})
	leader.signal(syscall.SIGSTOP)
	d.hold.Store(false)
}

// sleepAt pushes a round and stops the leader at one of its writes.
func (d *operatorPair) sleepAt(leader *proxiedOperator, round int, at func(*http.Request) bool) {
	d.t.Helper()
	asleep := make(chan struct{})
	look := func(r *http.Request) {
		if strings.Contains(r.URL.Path, "/namespaces/"+d.namespace+"/") && at(r) {
			leader.signal(syscall.SIGSTOP)
			close(asleep)
		}
	}
	leader.look.Store(&look)
	d.push(round, objects)
	select {
	case <-asleep:
	case <-time.After(time.Minute):
		d.t.Fatal("the leader did not come to the write it was to be stopped at")
	}
}

// term is a lease's holder and transition count.
type term struct {
	Holder      string
	Transitions int32
}

func (d *operatorPair) lease() term {
	d.t.Helper()
	l := &coordinationv1.Lease{}
	if err := d.Get(d.t.Context(), client.ObjectKey{Namespace: testenv.Namespace, Name: leaseName}, l); err != nil {
		d.t.Fatal(err)
	}
	return term{Holder: *l.Spec.HolderIdentity, Transitions: *l.Spec.LeaseTransitions}
}

func (d *operatorPair) leads(before term) error {
	if now := d.lease(); now.Transitions == before.Transitions {
		return fmt.Errorf("the lease is still %+v", now)
	}
	return nil
}

// versions returns the version of every object in the tenant's namespaces, but not of the events about delivered commits: the operator with the
// lease sends each once all apps are done, up to ten seconds after the last one.
func (d *operatorPair) versions() map[string]string {
	d.t.Helper()
	out := map[string]string{}
	for _, kind := range d.kinds {
		list, err := d.metadata.Resource(kind).List(d.t.Context(), metav1.ListOptions{})
		if err != nil {
			d.t.Fatal(err)
		}
		for _, o := range list.Items {
			if strings.HasPrefix(o.Namespace, d.tenant) {
				out[kind.Resource+" "+o.Namespace+"/"+o.Name] = o.ResourceVersion
			}
		}
	}
	events := &corev1.EventList{}
	if err := d.List(d.t.Context(), events, client.MatchingFields{"reason": v1alpha1.DeliveredReason}); err != nil {
		d.t.Fatal(err)
	}
	for _, e := range events.Items {
		delete(out, "events "+e.Namespace+"/"+e.Name)
	}
	return out
}

// quiet waits until no object has changed for a while.
func (d *operatorPair) quiet() {
	d.t.Helper()
	before := d.versions()
	for range 20 {
		time.Sleep(time.Second)
		now := d.versions()
		if maps.Equal(before, now) {
			return
		}
		before = now
	}
	d.t.Fatal("it never gets quiet")
}

// proxiedOperator is an operator whose requests pass through a proxy of the test.
type proxiedOperator struct {
	*exec.Cmd
	t      *testing.T
	stderr bytes.Buffer
	ended  chan error
	// look is called with each write except those of the lease.
	look atomic.Pointer[func(*http.Request)]
	// api is locked by the test while the API server should not answer.
	api sync.RWMutex
}

// startOperator starts an operator with additional settings.
func (d *operatorPair) startOperator(settings ...string) *proxiedOperator {
	d.t.Helper()
	f := &proxiedOperator{t: d.t, ended: make(chan error, 1)}
	proxy := f.proxy()
	config, err := operatorConfig()
	if err != nil {
		d.t.Fatal(err)
	}
	config = rest.CopyConfig(config)
	config.Host, config.TLSClientConfig = proxy.URL, rest.TLSClientConfig{CAData: certificate(proxy)}
	dir := d.t.TempDir()
	if err := testenv.Kubeconfig(filepath.Join(dir, "kubeconfig"), config); err != nil {
		d.t.Fatal(err)
	}
	f.Cmd = d.command(append(settings, "KUBECONFIG="+filepath.Join(dir, "kubeconfig"), "DATA_DIR="+filepath.Join(dir, "data"),
		"LEADER_ELECT=true", "LEASE_DURATION=4s", "RETRY_PERIOD=500ms")...)
	f.Stderr = &f.stderr
	if err := f.Start(); err != nil {
		d.t.Fatal(err)
	}
	go func() { f.ended <- f.Wait(); close(f.ended) }()
	d.t.Cleanup(func() {
		_ = f.Process.Kill() // In most cases it has already ended.
		for range f.ended {
		}
	})
	return f
}

// proxy calls look with each write, and passes all requests to the API server.
func (f *proxiedOperator) proxy() *httptest.Server {
	f.t.Helper()
	server, err := url.Parse(env.Config.Host)
	if err != nil {
		f.t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(server)
	pass.FlushInterval = -1 // Watches are streams.
	pass.ErrorLog = log.New(io.Discard, "", 0)
	if pass.Transport, err = rest.TransportFor(rest.AnonymousClientConfig(env.Config)); err != nil {
		f.t.Fatal(err)
	}
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.api.RLock()
		f.api.RUnlock() //nolint:staticcheck // this only waits
		if look := f.look.Load(); look != nil && r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/leases/"+leaseName) {
			whole(r)
			(*look)(r)
		}
		pass.ServeHTTP(w, r)
	}))
	proxy.EnableHTTP2 = true
	proxy.Config.ErrorLog = pass.ErrorLog
	proxy.StartTLS()
	f.t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	return proxy
}

// whole reads a request to its end, and drops it if it ends early, because the API server would not act on it either.
func whole(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
}

func certificate(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func (f *proxiedOperator) signal(s os.Signal) {
	if err := f.Process.Signal(s); err != nil {
		f.t.Errorf("sending %s: %v", s, err)
	}
}

// wakes lets a stopped operator continue, waits until it ends, and returns how many of its writes were refused.
func (f *proxiedOperator) wakes() (refused int) {
	f.t.Helper()
	write := func(r *http.Request) { f.t.Errorf("it continued and sent %s %s", r.Method, r.URL.Path) }
	f.look.Store(&write)
	f.signal(syscall.SIGCONT)
	select {
	case err := <-f.ended:
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			f.t.Errorf("it ended with %v, want status 1", err)
		}
	case <-time.After(30 * time.Second):
		f.t.Fatal("it did not end")
	}
	if out := f.stderr.String(); !strings.Contains(out, "leader election lost") {
		f.t.Errorf("it ended for another reason: %s", out)
	}
	return strings.Count(f.stderr.String(), fence.ErrFenced.Error())
}

// stops stops the operator with SIGTERM.
func (f *proxiedOperator) stops() {
	f.t.Helper()
	f.signal(syscall.SIGTERM)
	select {
	case err := <-f.ended:
		if err != nil {
			f.t.Errorf("it ended with %v: %s", err, f.stderr.String())
		}
	case <-time.After(30 * time.Second):
		f.t.Fatal("it did not end")
	}
}
