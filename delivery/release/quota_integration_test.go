package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// The API server counts objects for a quota and answers with a conflict when others are counted at the same time. That counts as no attempt
// and costs no revision.
func TestConflictsOverAQuotaAreRetried(t *testing.T) {
	tm := newTeam(t)
	f := &fought{times: map[string]int{}}
	tm.between = func(next http.RoundTripper) http.RoundTripper { f.next = next; return f }
	tm.restart("me")
	r := tm.request(sources.ChartFolder(web(nil)))
	began, err := tm.Reconcile(t.Context(), r)
	if err != nil || !began.Running {
		t.Fatalf("got %+v, %v", began, err)
	}
	tm.await(r)
	out, err := tm.Reconcile(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if out.Running || out.Failed != nil || out.Release.Status != "deployed" || out.Release.Revision != 1 {
		t.Errorf("after one action it is %+v", out)
	}
	if n := len(f.times); n != 4 {
		t.Errorf("of %d kinds objects were made, want those of the chart and Secrets, for the record: %v", n, f.times)
	}
}

// TestARetriedInstallIsChargedOnce: the API server charges a quota before it finds that an object exists, and nothing takes that back until
// the quota is counted again, after minutes.
func TestARetriedInstallIsChargedOnce(t *testing.T) {
	const what = "count/configmaps"
	tm := newTeam(t)
	quotas := tm.admin.CoreV1().ResourceQuotas(tm.namespace)
	limit := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "limit"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{what: resource.MustParse("100")}}}
	if _, err := quotas.Create(t.Context(), limit, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	charged := func() int64 {
		t.Helper()
		for {
			now, err := quotas.Get(t.Context(), "limit", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if used, counted := now.Status.Used[what]; counted {
				return used.Value()
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	// Each try deletes the ConfigMap of the hook and makes it again. Kubernetes' controller takes the deleted one off the quota a little later.
	settled := func(want int64) (got int64) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			if got = charged(); got == want || time.Now().After(end) {
				return got
			}
		}
	}
	charged()

	bad := tm.request(sources.ChartFolder(web(map[string]string{"templates/stuck.yaml": stuckAt("post-install"), "templates/more.yaml": configMap})))
	bad.Policy.Retry = later
	if out := tm.settle(bad); out.Failed == nil {
		t.Fatalf("got %+v, want a failed install", out)
	}
	first := charged()
	if first < 2 {
		t.Errorf("%d ConfigMaps are charged after the first try, want both of the chart", first)
	}
	bad.Policy.Retry = soon
	for range 2 {
		if again, err := tm.Reconcile(t.Context(), bad); err != nil || !again.Running {
			t.Fatalf("the retry: %+v, %v", again, err)
		}
		tm.await(bad)
	}
	if retried := settled(first); retried != first {
		t.Errorf("%d ConfigMaps are charged after two retries, want %d as after the first try", retried, first)
	}
	tm.deploy(tm.request(sources.ChartFolder(web(map[string]string{"templates/more.yaml": configMap}))))
	if installed := settled(first); installed != first {
		t.Errorf("%d ConfigMaps are charged after the install, want %d as after the first try", installed, first)
	}
}

// fought refuses the first two creations of each kind.
type fought struct {
	next  http.RoundTripper
	mu    sync.Mutex
	times map[string]int
}

func (f *fought) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost || !strings.Contains(r.URL.Path, "/namespaces/") {
		return f.next.RoundTrip(r)
	}
	f.mu.Lock()
	f.times[r.URL.Path]++
	n := f.times[r.URL.Path]
	f.mu.Unlock()
	if n > 2 {
		return f.next.RoundTrip(r)
	}
	status := apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "kubeop", errors.New("the object has been modified")).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	answer, err := json.Marshal(status)
	return &http.Response{
		StatusCode: http.StatusConflict, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(answer)), Request: r,
	}, err
}
