package kube

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubeop/kubeop/internal/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	testenv.Main(m, &env)
}

// admin is the administrator's client.
func admin(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// project makes a namespace whose deployer may do everything in it.
func project(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "kubeop-acme-"}}
	made, err := admin(t).CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	grant(t, made.Name)
	return made.Name
}

func grant(t *testing.T, namespace string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deployer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: Deployers{}.Of(namespace)}},
	}
	if _, err := admin(t).RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func revoke(t *testing.T, namespace string) {
	t.Helper()
	if err := admin(t).RbacV1().RoleBindings(namespace).Delete(t.Context(), "deployer", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// secret makes a Secret with labels, written as key, value, …
func secret(t *testing.T, namespace, name string, labels ...string) {
	t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: labelled(labels), Annotations: map[string]string{"note": strings.Repeat("large ", 100)},
	}}
	if _, err := admin(t).CoreV1().Secrets(namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func labelled(pairs []string) map[string]string {
	labels := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		labels[pairs[i]] = pairs[i+1]
	}
	return labels
}

// line is what stands between an operator and the API server.
type line struct {
	client   *http.Client
	requests atomic.Int64
	silent   atomic.Bool

	mu    sync.Mutex
	asked []string
	cuts  []context.CancelFunc
	// instead of the API server's, this is what requests for a path are answered with.
	path, body string
	code       int
}

// answer has requests for a path answered without the API server; "" none.
func (l *line) answer(path string, code int, body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.path, l.code, l.body = path, code, body
}

func newLine(t *testing.T) *line {
	t.Helper()
	next, err := rest.TransportFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{}
	l.client = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		l.requests.Add(1)
		ctx, cut := context.WithCancel(r.Context())
		l.mu.Lock()
		l.cuts = append(l.cuts, cut)
		l.asked = append(l.asked, r.Method+" "+r.URL.Path)
		path, code, body := l.path, l.code, l.body
		l.mu.Unlock()
		if path != "" && r.URL.Path == path {
			return answered(r, code, body), nil
		}
		if l.silent.Load() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return next.RoundTrip(r.WithContext(ctx))
	})}
	t.Cleanup(l.cut)
	return l
}

// count is how many requests were made to a path.
func (l *line) count(request string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, asked := range l.asked {
		if asked == request {
			n++
		}
	}
	return n
}

// cut ends every request that is under way.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, cut := range l.cuts {
		cut()
	}
	l.cuts = nil
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// text is a log that can be read.
type text struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (x *text) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.lines.WriteString(args + "\n")
	}, funcr.Options{})
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.lines.String()
}

// eventually waits until what is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30s: %s", what)
		}
	}
}

// heap is how much is held, in bytes: the least of several looks, since buffers come and go.
func heap() int64 {
	least := int64(math.MaxInt64)
	for range 10 {
		time.Sleep(100 * time.Millisecond)
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		least = min(least, int64(m.HeapAlloc+m.StackInuse))
	}
	return least
}
